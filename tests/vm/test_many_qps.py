# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
"""1,000 QPs in each of two VMs, created, connected with each other, used and destroyed ten times over.

A round leaves no objects, and no round costs more work than the rounds before it.
"""

import pathlib
import re
import statistics

import pytest
from boots import Boot, step_tests
from steps import Step, guest_programs, name_of, pids_of
from traffic import COMPLAINTS
from vmlab_lib.process import cpu_nanoseconds

pytestmark = pytest.mark.long

ROUNDS = 10
QPS = 1000
# The first two rounds fill caches, which stay.
SETTLED = 2

# Memory that a round leaves: no page caches, no freed objects that wait for RCU.
STATE = """
    sync; echo 3 >/proc/sys/vm/drop_caches; sleep 0.5
    rdma resource show "$RDMA_DEV" | sed 's/^/resource: /'
    sed -n 's/^\\(SUnreclaim\\|MemFree\\): */meminfo: \\1 /p' /proc/meminfo"""
ROUND = """
    [ $NODE != 1 ] || {{ raise begin; await begin.seen; }}
    talk {port} 1 2 $SHARE/pvr_many -n {qps} -r {number} || exit
    [ $NODE != 1 ] || {{ raise end; await end.seen; }}""" + STATE
EACH = [Step(f"round-{number}", ROUND.format(port=18700 + number, qps=QPS, number=number), 120)
        for number in range(1, ROUNDS + 1)]
BEFORE = Step("before", STATE)
STEPS = [BEFORE, *EACH, COMPLAINTS]


def anonymous_kib(pid):
    return int(re.search(r"^RssAnon:\s+(\d+) kB", pathlib.Path(f"/proc/{pid}/status").read_text(), re.MULTILINE)[1])


def usage(vmlab_pid):
    daemon, = pids_of(vmlab_pid, "pvrdmad")
    return {"cpu": cpu_nanoseconds(daemon), "kib": anonymous_kib(daemon)}


WATCH = {f"{step.name}.{flag}": usage for step in EACH for flag in ("begin", "end")}
many = Boot("many").part(STEPS, WATCH, guest_programs, long=True)
test_step, test_run_ended_well = step_tests(many=STEPS)


@pytest.mark.parametrize("step", EACH, ids=name_of)
def test_round_has_all_queue_pairs(many, step):
    many.check_each(step, f"many: {QPS} QPs")


def states(run, what):
    """Per node: the numbers of all rounds."""
    rounds = [[int(re.search(rf"^meminfo: {what} (\d+)", outcome.text, re.MULTILINE)[1]) for outcome in run.check(step)]
              for step in EACH]
    return zip(*rounds)


def test_no_resource_of_the_guest_is_left(many):
    before, after = ([re.findall("^resource: .*", outcome.text, re.MULTILINE) for outcome in many.check(step)]
                     for step in (BEFORE, EACH[-1]))
    assert before == after and all(before)


def test_slab_of_the_guests_does_not_grow(many):
    """2^20 bytes in eight rounds are 131 per QP."""
    for kib in states(many, "SUnreclaim"):
        assert kib[-1] - kib[SETTLED - 1] < 1024, kib


def test_pages_of_the_guests_do_not_go(many):
    """One page per QP is 32 MB."""
    for kib in states(many, "MemFree"):
        assert kib[SETTLED - 1] - kib[-1] < 8192, kib


def test_memory_of_the_daemon_does_not_grow(many):
    many.check(EACH[-1])
    kib = [many.seen[f"{step.name}.end"]["kib"] for step in EACH]
    assert kib[-1] - kib[SETTLED - 1] < 512, kib


def test_last_rounds_are_no_more_work_than_the_first(many, capsys):
    """Compared is the CPU time of the daemon: the clock of a busy machine proves nothing."""
    many.check(EACH[-1])
    work = [(many.seen[f"{step.name}.end"]["cpu"] - many.seen[f"{step.name}.begin"]["cpu"]) / 1e6 for step in EACH]
    with capsys.disabled():
        print("\nCPU ms of pvrdmad per round of 2 x 1000 QPs:", " ".join(f"{ms:.0f}" for ms in work), end=" ")
    assert statistics.median(work[-3:]) <= 2 * statistics.median(work[:3]), work
