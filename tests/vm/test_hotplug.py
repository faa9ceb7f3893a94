# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
"""An adapter is unplugged from a running VM under traffic, and plugged in again, with interrupts=msi.

QEMU 11.1 aborts if it unplugs a vfio-user device with MSI-X, see docs/reliability.md.
"""

import pytest
from boots import step_tests
from own_daemon import UNPLUGGED, own_daemon
from steps import Step
from traffic import ENDLESS
from vmlab_lib.qmp import Qmp

pytestmark = pytest.mark.slow

# Programs hold queue pairs of the device when it goes, and end by themselves or by a signal.
PLUG = ENDLESS + """
    active() {
        for RDMA_DEV in $(ls /sys/class/infiniband); do has_gid 2>/dev/null && return; done
        return 1
    }
    no_device() { ! ls /sys/class/infiniband | grep .; }
    is_rts() { rdma resource show qp link $RDMA_DEV/1 | grep -q 'type RC state RTS'; }
    plug() {
        endless -e -s 4096 & pid=$!
        until_true 100 listening 18515 && raise up$1 && await connected$1 && raise out$1 && await out$1.seen || return
        until_true 100 no_device || { echo "round $1: the device is still there"; return 1; }
        kill $pid 2>/dev/null
        wait $pid
        raise in$1
        await in$1.seen && until_true 200 active || { ls /sys/bus/pci/devices; dmesg | tail -n 20; return 1; }
        raise over$1
    }
    peer() {
        await up$1
        endless -e -s 4096 node1 & pid=$!
        until_true 200 is_rts || return
        raise connected$1
        await over$1
        kill $pid 2>/dev/null
        wait $pid
        true
    }
"""


def plug(times):
    return Step(f"plug-{times}", PLUG + f"""
    for round in $(seq {times}); do
        if [ $NODE = 1 ]; then plug $round; else peer $round; fi || {{ echo "round $round failed"; raise over$round; exit 1; }}
    done
    [ $NODE = 2 ] || {{ grep pvrdma /proc/interrupts; lspci 2>/dev/null | grep -c 0820; }}
    true""", 60 + 20 * times)


# What still works after the last round, in both directions, and with a driver that is loaded again.
AFTER = Step("after", """
    for RDMA_DEV in $(ls /sys/class/infiniband); do has_gid 2>/dev/null && break; done
    pingpong 18515 1 2 -c -s 4096 -n 100 && pingpong 18516 2 1 -c -e -s 65536 -n 50 &&
        { [ $NODE = 2 ] || { unload && load; }; }""", 120)
ONE_VECTOR = Step("one-vector", """
    lines=$(grep -c pvrdma /proc/interrupts)
    grep pvrdma /proc/interrupts
    [ $lines = 1 ] && pingpong 18515 1 2 -c -e -s 4096 -n 200""")
NOTHING_LEFT = Step("nothing-left", "rdma resource show qp; ! complaints | grep -v -i 'device is gone\\|fatal'")


def watch(times):
    """Node 1's QEMU unplugs and plugs. The path of the socket is the same each time."""
    def watchers(folder, daemon):
        device = {"driver": "vfio-user-pci", "id": "adapter", "bus": "adapter-port",
                  "socket": {"type": "unix", "path": str(daemon.socket(1))}}

        def unplug(_):
            with Qmp(folder / "node1.qmp") as qemu:
                qemu.execute("device_del", id="adapter")
                qemu.wait_for("DEVICE_DELETED", "adapter")

        def plug_in(_):
            with Qmp(folder / "node1.qmp") as qemu:
                qemu.execute("device_add", **device)

        flags = {}
        for number in range(1, times + 1):
            flags |= {f"plug-{times}.out{number}": unplug, f"plug-{times}.in{number}": plug_in}
        return flags
    return watchers


def steps(times):
    return [ONE_VECTOR, plug(times), AFTER, NOTHING_LEFT]


unplugged = UNPLUGGED.part(steps(3), watch(3))
test_step, test_run_ended_well = step_tests(unplugged=steps(3))


@pytest.fixture(scope="module")
def long_run(tmp_path_factory):
    with own_daemon(tmp_path_factory, "hotplug-long", steps(50), "interrupts=msi", watch(50)) as run:
        yield run


@pytest.mark.long
@pytest.mark.parametrize("step", [step.name for step in steps(50)])
def test_step_of_fifty_times(long_run, step):
    long_run.check(step)


@pytest.mark.long
def test_long_run_ended_well(long_run):
    long_run.check_end()
