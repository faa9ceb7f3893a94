# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
"""1,000 QPs in each of two VMs, created, connected with each other, used and destroyed ten times over.

A round leaves no objects, and no round costs more work than the rounds before it.
"""

import pathlib
import re
import statistics

import pytest
from steps import Step, guest_programs, pids_of, run_steps

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
STEPS = [Step("before", STATE),
         *(Step(f"round-{number}", ROUND.format(port=18700 + number, qps=QPS, number=number), 120)
           for number in range(1, ROUNDS + 1)),
         Step("complaints", "! complaints")]


def cpu_nanoseconds(pid):
    tasks = pathlib.Path(f"/proc/{pid}/task").iterdir()
    return sum(int((task / "schedstat").read_text().split()[0]) for task in tasks)


def anonymous_kib(pid):
    return int(re.search(r"^RssAnon:\s+(\d+) kB", pathlib.Path(f"/proc/{pid}/status").read_text(), re.MULTILINE)[1])


def usage(vmlab_pid):
    daemon, = pids_of(vmlab_pid, "pvrdmad")
    return {"cpu": cpu_nanoseconds(daemon), "kib": anonymous_kib(daemon)}


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    watch = {f"round-{number}.{flag}": usage for number in range(1, ROUNDS + 1) for flag in ("begin", "end")}
    return run_steps(tmp_path_factory.mktemp("many"), STEPS, watch=watch, files=guest_programs())


@pytest.mark.parametrize("number", range(1, ROUNDS + 1))
def test_round(run, number):
    for outcome in run.check(f"round-{number}"):
        assert f"many: {QPS} QPs" in outcome.text, outcome.tail()


def states(run, what):
    """Per node: the numbers of all rounds."""
    found = []
    for node in range(2):
        texts = [run.check(f"round-{number}")[node].text for number in range(1, ROUNDS + 1)]
        found.append([int(re.search(rf"^meminfo: {what} (\d+)", text, re.MULTILINE)[1]) for text in texts])
    return found


def test_no_resource_of_the_guest_is_left(run):
    shown = [[re.findall("^resource: .*", outcome.text, re.MULTILINE) for outcome in run.check(step)]
             for step in ("before", f"round-{ROUNDS}")]
    assert shown[0] == shown[1] and all(shown[0])


def test_slab_of_the_guests_does_not_grow(run):
    """2^20 bytes in eight rounds are 131 per QP."""
    for kib in states(run, "SUnreclaim"):
        assert kib[-1] - kib[SETTLED - 1] < 1024, kib


def test_pages_of_the_guests_do_not_go(run):
    """One page per QP is 32 MB."""
    for kib in states(run, "MemFree"):
        assert kib[SETTLED - 1] - kib[-1] < 8192, kib


def test_memory_of_the_daemon_does_not_grow(run):
    run.check(f"round-{ROUNDS}")
    kib = [run.seen[f"round-{number}.end"]["kib"] for number in range(1, ROUNDS + 1)]
    assert kib[-1] - kib[SETTLED - 1] < 512, kib


def test_last_rounds_are_no_more_work_than_the_first(run, capsys):
    """Compared is the CPU time of the daemon: the clock of a busy machine proves nothing."""
    run.check(f"round-{ROUNDS}")
    work = [(run.seen[f"round-{number}.end"]["cpu"] - run.seen[f"round-{number}.begin"]["cpu"]) / 1e6
            for number in range(1, ROUNDS + 1)]
    with capsys.disabled():
        print("\nCPU ms of pvrdmad per round of 2 x 1000 QPs:", " ".join(f"{ms:.0f}" for ms in work), end=" ")
    assert statistics.median(work[-3:]) <= 2 * statistics.median(work[:3]), work


def test_kernels_have_no_complaints(run):
    run.check("complaints")


def test_run_ended_well(run):
    run.check_end()
