# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
"""pvrdmad is killed under traffic and started again, and adapters are plugged into the running VMs.

Doorbells are mapped: otherwise QEMU 11.1 can abort when pvrdmad dies while QEMU sends a message, see docs/reliability.md.
"""

import json

import pytest
from daemon_process import Daemon
from qmp import Qmp
from steps import Step, run_steps
from traffic import ENDLESS

pytestmark = pytest.mark.slow

NODES = (1, 2)
BEFORE = Step("before", "pingpong 18515 1 2 -c -s 4096 -n 50")
# The driver notices within five seconds. Programs that wait for events of the device get one; all programs can end.
DIES = Step("daemon-dies", ENDLESS + """
    fatal() { grep -q DEVICE_FATAL /tmp/events; }
    stdbuf -oL ibv_asyncwatch -d $RDMA_DEV >/tmp/events & watcher=$!
    if [ $NODE = 1 ]; then
        endless -e -s 4096 & pid=$!
        until_true 100 listening 18515 && raise up && await connected && raise now && await now.seen || exit
    else
        await up
        endless -e -s 4096 node1 & pid=$!
        sleep 1
        raise connected
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


def plug_in(folder, daemon):
    """Start pvrdmad again, and give each VM one more adapter: QEMU 11.1 aborts when a vfio-user device is unplugged."""
    daemon.start([daemon.option(node) for node in NODES])
    for node in NODES:
        with Qmp(folder / f"node{node}.qmp") as qemu:
            qemu.execute("device_add", driver="vfio-user-pci", id="second", bus="spare-port",
                         socket={"type": "unix", "path": str(daemon.socket(node))})


class OwnDaemon(Daemon):
    """With the MACs of vmlab's NICs."""

    def option(self, node):
        return f"--adapter=name=node{node},socket={self.socket(node)},mac=52:54:00:77:00:{node:02x},uar=mapped"

    def __init__(self, folder):
        self.folder, self.control, self.log_path = folder, folder / "control", folder / "pvrdmad.log"
        self.start([self.option(node) for node in NODES])


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    folder = tmp_path_factory.mktemp("death")
    (folder / "run").mkdir()
    daemon = OwnDaemon(folder)
    watch = {"daemon-dies.now": lambda _: daemon.kill(),
             "plugged-in-again.now": lambda _: plug_in(folder, daemon)}
    try:
        yield run_steps(folder / "run", STEPS, watch, qmp=folder, pvrdmad_control=daemon.control,
                        adapter_socket=[daemon.socket(node) for node in NODES])
    finally:
        daemon.stop()


@pytest.mark.parametrize("step", [step.name for step in STEPS])
def test_step(run, step):
    run.check(step)


def test_run_ended_well(run):
    """Both VMs shut down, with an adapter each."""
    run.check_end()
