# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
"""Kernel verbs, memory regions, and what interrupts verbs: one VM whose device talks to itself."""

import functools
import re

import pytest
from boots import ALONE, step_tests
from steps import Step, guest_module, guest_programs
from traffic import COMPLAINTS
from vmlab_run import ROOT

pytestmark = pytest.mark.slow

KTEST_MAIN = ROOT / "tests" / "guest" / "kmod" / "main.c"

# The module fails to load if one of its tests failed; its output is checked below.
KTEST = Step("ktest", """
    insmod $SHARE/pvr_ktest.ko device=$RDMA_DEV gid=$GID_INDEX && rmmod pvr_ktest
    dmesg | sed -n 's/.*pvr_ktest: //p'""", 120)
# Without the driver's reload a device that was shut down stays so.
SHUTDOWN = Step("ktest-shutdown", """
    insmod $SHARE/pvr_ktest.ko device=$RDMA_DEV gid=$GID_INDEX shutdown=1 && rmmod pvr_ktest; status=$?
    dmesg | sed -n 's/.*pvr_ktest: //p' | tail -n 3
    unload && load && pingpong 18515 1 1 -n 50 && exit $status""", 60)
# The driver checks within 5 s whether its device was reset.
RESET = Step("reset-behind-the-driver", """
    works() { has_gid 2>/dev/null && dmesg | grep -q "$1"; }
    insmod $SHARE/pvr_ktest.ko device=$RDMA_DEV reset=1 && rmmod pvr_ktest || exit
    until_true 200 works "device failed: it was reset" && until_true 200 works "restart 1 of at most 5" &&
        pingpong 18515 1 1 -n 50""", 90)
# QEMU 11.1 migrates a VM without its device, and the one at the destination has no BARs.
LEFT_BEHIND = Step("left-behind", """
    works() { has_gid 2>/dev/null && dmesg | grep -q "$1"; }
    config=$(readlink -f /sys/class/infiniband/$RDMA_DEV/device)/config
    clear() { head -c $2 /dev/zero | dd of=$config bs=$2 seek=$(($1 / $2)) conv=notrunc status=none; }
    echo "left behind" >/dev/kmsg
    clear 4 2
    for bar in 16 20 24 28 32 36; do clear $bar 4; done
    until_true 100 eval "dmesg | grep -q 'device failed: registers read zeros'" &&
        until_true 200 works "restart 2 of at most 5" && pingpong 18515 1 1 -n 50; status=$?
    dmesg | sed '1,/left behind$/!d' | tail -n 1
    dmesg | sed '1,/left behind$/d'
    exit $status""", 90)
NOTICED_RESET = Step("reset-with-notice", """
    index() { rdma dev show $RDMA_DEV | cut -d: -f1; }
    before=$(index)
    insmod $SHARE/pvr_ktest.ko device=$RDMA_DEV reset=2 && rmmod pvr_ktest && until_true 100 has_gid || exit
    [ "$(index)" != "$before" ] && pingpong 18515 1 1 -n 50""", 60)
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
# It repeats more often than there are doorbell pages.
BAD_RESPONSE = Step("answer-that-cannot-be-given", RESOURCES + "$SHARE/pvr_faults bad-response && same", 120)
MODERATION = Step("moderation", RESOURCES + "$SHARE/pvr_moderation && same")
TIMESTAMPS = Step("timestamps", RESOURCES + "$SHARE/pvr_timestamps && same")
XRC = Step("xrc", RESOURCES + "$SHARE/pvr_xrc /tmp/xrc-domain && same")
CONDUCT = [Step(name, RESOURCES + f"$SHARE/pvr_threads {argument} && same", 120)
           for name, argument in (("two-threads-on-each-object", "objects"), ("event-not-acknowledged", "unacked"), ("fork", "fork"),
                                   ("fork-init", "fork-init"))]
REGIONS = [Step(name, f"echo 16 >/proc/sys/vm/nr_hugepages; $SHARE/pvr_regions {name.removeprefix('region-')}", 60)
           for name in ("region-iova", "region-zero-based", "region-huge-pages", "region-above-1-gib", "region-rereg",
                        "region-rereg-fails", "region-bound-window", "region-memory-of-regions")]
LARGE = Step("region-of-16-gib", "$SHARE/pvr_regions time $((16 << 30))", 240)
STEPS = [KTEST, *REGIONS, SIGNALS, KILLED, MODERATION, TIMESTAMPS, XRC, *CONDUCT, BAD_RESPONSE, NOTICED_RESET, SHUTDOWN, COMPLAINTS, RESET, LEFT_BEHIND]


@functools.cache
def ktest_names():
    return re.findall(r'^\t\{ "([^"]+)", kt_', KTEST_MAIN.read_text(), re.MULTILINE)


alone = ALONE.part(STEPS, files=lambda: [*guest_module(), *guest_programs()])
large_long = ALONE.part([LARGE, COMPLAINTS], files=guest_programs, long=True)
test_step, test_run_ended_well = step_tests(alone=STEPS, large_long=[LARGE, COMPLAINTS])


@pytest.fixture(scope="module")
def tap(alone):
    """Name of a test of the module -> its lines, the reasons for failing first."""
    found, reasons = {}, []
    for line in alone[KTEST][0].text.splitlines():
        test = re.match(r"(?:not )?ok \d+ - (.*)", line)
        reasons.append(line)
        if test:
            found[test[1]], reasons = reasons, []
    return found


def test_the_module_ran_all_its_tests(alone, tap):
    assert f"1..{len(ktest_names())}" in alone[KTEST][0].text, alone.explain(KTEST)
    assert list(tap) == ktest_names(), alone.explain(KTEST)


@pytest.mark.parametrize("name", ktest_names())
def test_kernel_verb(alone, tap, name):
    assert name in tap, alone.explain(KTEST)
    assert tap[name][-1].startswith("ok "), "\n".join(tap[name])


def test_missing_bars_are_noticed_within_5_s(alone):
    text = alone.check(LEFT_BEHIND)[0].text
    when = [float(re.search(rf"\[ *([\d.]+)\][^\n]*{what}", text)[1])
            for what in ("left behind", "device failed: registers read zeros")]
    assert when[1] - when[0] <= 5, text
    assert "a new device is in its place: its BARs are mapped again" in text, text


@pytest.mark.long
def test_large_region_costs_little_memory(large_long):
    """The kernel's own list of pages has 32 bytes for each, ours and the device's 8."""
    found = re.search(r"(\d+) MiB: registered in .* s, (-?\d+) KiB of memory used", large_long.check(LARGE)[0].text)
    assert int(found[1]) == 16384
    assert int(found[2]) < 16384 * 16, found[0]
