# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
"""The operator takes a link down, and a whole adapter away, under a running VM."""

import pathlib
import subprocess

import pytest
from conftest import ROOT
from steps import Step, ids, pids_of, run_steps

pytestmark = pytest.mark.slow


def pvrdmactl(*words):
    """A watcher for run_steps: pvrdmactl WORDS at the daemon of that vmlab."""
    def run(vmlab_pid):
        daemon, = pids_of(vmlab_pid, "pvrdmad")
        argv = pathlib.Path(f"/proc/{daemon}/cmdline").read_text().split("\0")
        control = argv[argv.index("--control") + 1]
        done = subprocess.run([ROOT / "build" / "host" / "pvrdmactl", "--control", control, *words],
                              capture_output=True, text=True, timeout=20, check=False)
        return done.returncode, done.stdout + done.stderr
    return run


LINK_DOWN = Step("link-down", """
    state=/sys/class/infiniband/$RDMA_DEV/ports/1/state
    [ $NODE = 2 ] || raise now
    await now.seen
    [ $NODE = 2 ] || until_true 50 grep -q DOWN $state || { cat $state; exit 1; }
    [ $NODE = 1 ] || grep ACTIVE $state""")
LINK_UP = Step("link-up", """
    [ $NODE = 2 ] || raise now
    await now.seen
    until_true 50 has_gid && pingpong 18515 1 2 -c -s 4096 -n 100""")
# No event reports the removal of the device: registers read all ones, commands time out. A kernel consumer with an
# SRQ waits for that.
VANISH = Step("adapter-vanishes", """
    if [ $NODE = 2 ]; then
        await up
        ibv_rc_pingpong -d $RDMA_DEV -g $GID_INDEX -n 100000000 node1 & pid=$!
        sleep 1; raise connected; await over; kill $pid; wait $pid; exit 0
    fi
    ibv_rc_pingpong -d $RDMA_DEV -g $GID_INDEX -n 100000000 & pid=$!
    until_true 100 listening 18515 && raise up && await connected || exit
    insmod $SHARE/pvr_ktest.ko device=$RDMA_DEV gid=$GID_INDEX vanish=1 & ktest=$!
    until_true 200 eval "dmesg | grep -q 'the device may go'" && raise now && await now.seen || exit
    sleep 2
    kill -KILL $pid
    wait $pid
    raise over
    wait $ktest && rmmod pvr_ktest; status=$?
    dmesg | sed -n 's/.*pvr_ktest: //p'
    exit $status""")
AFTER = Step("vm-goes-on", """
    [ $NODE = 1 ] || { rdma link show | grep ACTIVE; exit; }
    ping -c 3 -W 5 node2 && timeout 30 ibv_devinfo; true""")
UNLOAD = Step("unload-without-device", """
    [ $NODE = 1 ] || exit 0
    unload""", 60)
LOAD = Step("load-without-device", """
    [ $NODE = 1 ] || exit 0
    insmod $driver 2>&1
    dmesg | tail -n 5""", 60)

STEPS = [LINK_DOWN, LINK_UP, VANISH, AFTER, UNLOAD, LOAD]


@pytest.fixture(scope="module")
def vanish(tmp_path_factory):
    built = subprocess.run([ROOT / "scripts" / "build/guest-modules"], stdout=subprocess.PIPE, text=True,
                           check=True, stdin=subprocess.DEVNULL)
    module = pathlib.Path(built.stdout.strip())
    return run_steps(tmp_path_factory.mktemp("vanish"), STEPS, files=[module], watch={
        "link-down.now": pvrdmactl("link", "node1", "down"),
        "link-up.now": pvrdmactl("link", "node1", "up"),
        "adapter-vanishes.now": pvrdmactl("remove-adapter", "node1")})


@pytest.mark.parametrize("step", ids(STEPS))
def test_vanish(vanish, step):
    vanish.check(step)


def test_kernel_says_that_the_device_is_gone(vanish):
    """When it goes, and when the driver comes to a device that is not there."""
    assert "the device is removed: is pvrdmad running" in vanish.check(LOAD.name)[0].text, vanish.explain(LOAD.name)
    assert "device failed: registers read all ones" in vanish.result.log("node1.console")


def test_kernel_consumer_is_told_the_end_of_its_srq(vanish):
    """Once, and requests that no QP took are not flushed; see tests/guest/kmod/srq.c."""
    assert "ok 1 - srq-of-a-dead-device" in vanish.check(VANISH.name)[0].text.splitlines(), vanish.explain(VANISH.name)


def test_pvrdmactl_did_as_it_was_told(vanish):
    assert {status for status, _ in vanish.seen.values()} == {0}, vanish.seen


def test_run_ended_well(vanish):
    vanish.check_end()
