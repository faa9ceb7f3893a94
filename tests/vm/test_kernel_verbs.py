# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
"""Kernel verbs, memory regions, and what interrupts verbs: one VM whose device talks to itself."""

import functools
import re

import pytest
from boots import ALONE
from steps import Step, guest_module, guest_programs, ids
from traffic import COMPLAINTS
from vmlab_run import ROOT

pytestmark = pytest.mark.slow

KTEST_MAIN = ROOT / "tests" / "guest" / "kmod" / "main.c"

# The module fails to load if one of its tests failed; its output is checked below.
KTEST = Step("ktest", """
    insmod $SHARE/pvr_ktest.ko device=$RDMA_DEV gid=$GID_INDEX && rmmod pvr_ktest
    dmesg | sed -n 's/.*pvr_ktest: //p'""", 120)
RESOURCES = """
    resources() { rdma resource show $RDMA_DEV | sed "s/^[0-9]*: //"; }
    before=$(resources)
    same() { [ "$(resources)" = "$before" ] || { echo "before: $before; after: $(resources)"; return 1; }; }
"""
SIGNALS = Step("signals-during-verbs", RESOURCES + "$SHARE/pvr_faults signals && same", 120)
KILLED = Step("killed-during-verbs", RESOURCES + """
    for i in $(seq 20); do
        $SHARE/pvr_faults forever & pid=$!
        sleep 0.$((RANDOM % 5))$((RANDOM % 10))
        kill -0 $pid || exit
        kill -KILL $pid; wait $pid
    done 2>/dev/null
    until_true 50 same >/dev/null; same""", 120)
BAD_RESPONSE = Step("answer-that-cannot-be-given", RESOURCES + "$SHARE/pvr_faults bad-response && same", 120)
REGIONS = [Step(f"region-{name}", f"echo 16 >/proc/sys/vm/nr_hugepages; $SHARE/pvr_regions {name}", 60)
           for name in ("iova", "zero-based", "huge-pages", "above-1-gib", "rereg", "rereg-fails", "bound-window")]
LARGE = Step("region-of-16-gib", "$SHARE/pvr_regions time $((16 << 30))", 240)
STEPS = [KTEST, *REGIONS, SIGNALS, KILLED, BAD_RESPONSE, COMPLAINTS]


@functools.cache
def ktest_names():
    return re.findall(r'^\t\{ "([^"]+)", kt_', KTEST_MAIN.read_text(), re.MULTILINE)


alone = ALONE.part(STEPS, files=lambda: [guest_module(), *guest_programs()])
large = ALONE.part([LARGE, COMPLAINTS], files=guest_programs, long=True)


@pytest.fixture(scope="module")
def tap(alone):
    """Name of a test of the module -> its lines, the reasons for failing first."""
    found, reasons = {}, []
    for line in alone["ktest"][0].text.splitlines():
        test = re.match(r"(?:not )?ok \d+ - (.*)", line)
        reasons.append(line)
        if test:
            found[test[1]], reasons = reasons, []
    return found


def test_the_module_ran_all_its_tests(alone, tap):
    assert f"1..{len(ktest_names())}" in alone["ktest"][0].text, alone.explain("ktest")
    assert list(tap) == ktest_names(), alone.explain("ktest")


@pytest.mark.parametrize("name", ktest_names())
def test_kernel_verb(alone, tap, name):
    assert name in tap, alone.explain("ktest")
    assert tap[name][-1].startswith("ok "), "\n".join(tap[name])


@pytest.mark.parametrize("step", ids(REGIONS))
def test_region(alone, step):
    alone.check(step)


def test_signals_do_not_fail_verbs(alone):
    alone.check("signals-during-verbs")


def test_killed_programs_leave_nothing(alone):
    alone.check("killed-during-verbs")


def test_answers_that_cannot_be_given_leave_nothing(alone):
    """The test repeats more often than there are doorbell pages."""
    alone.check("answer-that-cannot-be-given")


def test_no_complaints(alone):
    alone.check("complaints")


@pytest.mark.long
def test_large_region_costs_little_memory(large):
    """The kernel's own list of pages has 32 bytes for each, ours and the device's 8."""
    found = re.search(r"(\d+) MiB: registered in .* s, (-?\d+) KiB of memory used", large.check("region-of-16-gib")[0].text)
    assert int(found[1]) == 16384
    assert int(found[2]) < 16384 * 16, found[0]


def test_run_ended_well(alone):
    alone.check_end()


@pytest.mark.long
def test_run_with_a_large_region_ended_well(large):
    large.check("complaints")
    large.check_end()
