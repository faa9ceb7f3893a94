# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
"""pvrdmad is killed under traffic and started again, and adapters are plugged into the running VMs. NVMe-oF reconnects by itself.

Doorbells are mapped: otherwise QEMU 11.1 can abort when pvrdmad dies while QEMU sends a message, see docs/reliability.md.
"""

import pytest
import storage
from boots import APPS_PACKAGES, step_tests
from own_daemon import NODES, UNPLUGGED, own_daemon
from steps import Step
from traffic import ENDLESS
from vmlab_lib.qmp import Qmp

pytestmark = pytest.mark.slow

# DIES reads the messages from here on.
BEFORE = Step("before", "dmesg -C; pingpong 18515 1 2 -c -s 4096 -n 50")
# The driver notices within five seconds. Programs that wait for events of the device get one; all programs can end.
DIES = Step("daemon-dies", ENDLESS + """
    fatal() { grep -q DEVICE_FATAL /tmp/events; }
    is_rts() { rdma resource show qp link $RDMA_DEV/1 | grep -q 'type RC state RTS'; }
    stdbuf -oL ibv_asyncwatch -d $RDMA_DEV >/tmp/events & watcher=$!
    until_true 200 grep -q 'async event FD' /tmp/events || exit
    if [ $NODE = 1 ]; then
        endless -e -s 4096 & pid=$!
        until_true 100 listening 18515 && raise up && await connected && raise now && await now.seen || exit
    else
        await up
        endless -e -s 4096 node1 & pid=$!
        until_true 200 is_rts && raise connected || exit
        await now.seen
    fi
    until_true 200 fatal && until_true 50 eval "dmesg | grep -q 'port 1: down'"; status=$?
    cat /tmp/events
    kill -KILL $pid $watcher
    wait $pid $watcher
    ! rdma link show | grep ACTIVE && exit $status""", 120)
# While the driver holds the dead device, and after it has gone.
PROGRAMS_FAIL = Step("programs-fail", "! timeout 30 ibv_rc_pingpong -d $RDMA_DEV -g $GID_INDEX")
UNLOAD = Step("unload", "[ $NODE = 2 ] || unload", 60)
# The new adapter comes while node 1 has no driver, and while the driver of node 2 still has the dead device.
AGAIN = Step("plugged-in-again", """
    [ $NODE = 2 ] || raise now
    await now.seen || exit
    [ $NODE = 2 ] || load || exit
    active() {
        for RDMA_DEV in $(ls /sys/class/infiniband); do has_gid 2>/dev/null && return; done
        return 1
    }
    until_true 200 active || { ls /sys/bus/pci/devices /sys/class/infiniband; dmesg | tail -n 20; exit 1; }
    pingpong 18515 1 2 -c -s 4096 -n 50 && pingpong 18516 2 1 -c -e -s 65536 -n 20""", 120)
STEPS = [BEFORE, DIES, PROGRAMS_FAIL, UNLOAD, AGAIN]

# The target, too, loses its adapter. fio waits for the new ones, and then continues. Linux' target listens again only if its
# address is the wildcard.
ADDRESS = "echo 10.77.0.1 >ports/1/addr_traddr"
assert ADDRESS in storage.FUNCTIONS
TARGET = Step("target", storage.FUNCTIONS.replace(ADDRESS, "echo 0.0.0.0 >ports/1/addr_traddr") + "[ $NODE != 1 ] || target")
STORAGE_DIES = Step("storage-dies", storage.FUNCTIONS + """
    if [ $NODE = 2 ]; then
        patient_host || exit
        setsid fio --name=goes-on --filename=/dev/nvme0n1 --direct=1 --ioengine=libaio --bs=16k --iodepth=16 \
            --rw=randwrite --size=16m --verify=crc32c --verify_fatal=1 >/tmp/fio 2>&1 & echo $! >/tmp/fio.pid
        until_true 200 sectors_done 2000 && kill -0 $(cat /tmp/fio.pid) || exit
        raise now
    fi
    await now.seen
    until_true 200 eval "! ls /sys/class/infiniband | grep ." || exit
    [ $NODE = 1 ] || { until_true 200 state connecting && kill -0 $(cat /tmp/fio.pid); }""", 120)
STORAGE_AGAIN = Step("storage-again", storage.FUNCTIONS + """
    [ $NODE = 1 ] || { raise now; await now.seen; }
    [ $NODE = 2 ] || exit 0
    until_true 600 state live && until_true 600 eval '! kill -0 $(cat /tmp/fio.pid)'; status=$?
    cat /tmp/fio /sys/class/nvme/nvme0/state
    host_end && exit $status""", 240)
STORAGE_STEPS = [TARGET, STORAGE_DIES, STORAGE_AGAIN]


def plug_in(folder, daemon):
    """Start pvrdmad again, and give each VM one more adapter: QEMU 11.1 aborts when a vfio-user device is unplugged.

    QEMU 11.1 gives devices with the same socket path the same eventfds, so the path is not that of the dead device.
    """
    daemon.start_again()
    for node in NODES:
        with Qmp(folder / f"node{node}.qmp") as qemu:
            qemu.execute("device_add", driver="vfio-user-pci", id="second", bus="spare-port",
                         socket={"type": "unix", "path": f"{folder}/./{daemon.socket(node).name}"})


def watch(dies, again):
    """In dies the daemon is killed, in again it starts again."""
    def watchers(folder, daemon):
        return {f"{dies.name}.now": lambda _: daemon.kill(), f"{again.name}.now": lambda _: plug_in(folder, daemon)}
    return watchers


# Both VMs shut down, with an adapter each.
death = UNPLUGGED.part(STEPS, watch(DIES, AGAIN))
test_step, test_run_ended_well = step_tests(death=STEPS)


@pytest.fixture(scope="module")
def storage_run(tmp_path_factory):
    with own_daemon(tmp_path_factory, "storage-death", STORAGE_STEPS, "uar=mapped", watch(STORAGE_DIES, STORAGE_AGAIN),
                    packages=APPS_PACKAGES) as run:
        yield run


@pytest.mark.long
@pytest.mark.parametrize("step", [step.name for step in STORAGE_STEPS])
def test_storage_step(storage_run, step):
    storage_run.check(step)


@pytest.mark.long
def test_storage_goes_on_with_the_right_data(storage_run):
    text = storage_run[STORAGE_AGAIN][1].text
    assert "goes-on: (groupid=0, jobs=1): err= 0" in text, storage_run.explain(STORAGE_AGAIN)
    storage_run.check_end()
