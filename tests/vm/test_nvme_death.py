# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
"""The VM of an NVMe target is killed under I/O: I/O waits for the new VM, or fails, as configured."""

import applications
import apps
import pytest
import storage
from steps import Step, ids, run_steps

pytestmark = pytest.mark.long

# A RAM disk loses its data with its VM; a file of the host keeps them.
FILE = "/dev/ram0", "$SHARE/disk"
assert FILE[0] in storage.FUNCTIONS
FUNCTIONS = storage.FUNCTIONS.replace(*FILE).replace("echo 1 >subsystems/ram/namespaces/1/enable", """\
echo 1 >subsystems/ram/namespaces/1/buffered_io
echo 1 >subsystems/ram/namespaces/1/enable""") + """
    # kill_under COMMAND...: start it in the background, and kill the target when it is at work.
    kill_under() {
        setsid "$@" >/tmp/fio 2>&1 & pid=$!
        until_true 200 sectors_done 2000 && kill -0 $pid && labctl kill-node 1
    }
    """

TARGET = Step("target", FUNCTIONS + """
    [ $NODE = 1 ] || exit 0
    truncate -s 32M $SHARE/disk && target""")
FOR_A_WHILE = Step("killed-for-a-while", FUNCTIONS + """
    [ $NODE = 2 ] || exit 0
    patient_host || exit
    kill_under fio --name=goes-on --filename=/dev/nvme0n1 --direct=1 --ioengine=libaio --rw=randwrite --bs=16k \
        --iodepth=16 --size=16m --verify=crc32c --verify_fatal=1 || exit
    until_true 200 state connecting && kill -0 $pid || { cat /sys/class/nvme/nvme0/state /tmp/fio; exit 1; }
    echo $pid >/tmp/fio.pid
    echo target-is-back >$SHARE/resume
    labctl start-node 1""", 120)
BACK = Step("target-is-back", FUNCTIONS + """
    if [ $NODE = 1 ]; then target; exit; fi
    until_true 400 state live && until_true 600 eval '! kill -0 $(cat /tmp/fio.pid)'; status=$?
    cat /tmp/fio
    exit $status""", 240)
END = Step("disconnect", FUNCTIONS + "[ $NODE != 2 ] || { host_end && until_true 50 no_qp; }")
# Keep-alive and the time until I/O fails are less than these 30 s.
FAST = Step("errors-without-target", FUNCTIONS + """
    [ $NODE = 2 ] || exit 0
    patient_host && echo 5 >/sys/class/nvme/nvme0/fast_io_fail_tmo || exit
    kill_under fio --name=ends --filename=/dev/nvme0n1 --direct=1 --ioengine=libaio --rw=randrw --bs=16k --iodepth=16 \
        --time_based --runtime=600 || exit
    until_true 300 eval '! kill -0 '$pid || { echo "30 s after the kill fio has no error"; exit 1; }
    cat /tmp/fio
    ! wait $pid && state connecting && test -b /dev/nvme0n1 || exit
    echo target-again >$SHARE/resume
    labctl start-node 1""", 120)
AGAIN = Step("target-again", FUNCTIONS + """
    if [ $NODE = 1 ]; then target; else until_true 400 state live; fi""")
FIO = Step("fio-once-more", f"[ $NODE != 2 ] || {storage.script('fio')}", 120)
END_AGAIN = Step("disconnect-again", END.script)

STEPS = [TARGET, FOR_A_WHILE, BACK, END, FAST, AGAIN, FIO, END_AGAIN]
LIVED_ON = [TARGET, FOR_A_WHILE, BACK, END, FAST]

# The kernel counts attempts to connect, ctrl_loss_tmo / reconnect-delay of them: here one. It ends when the CM gives up a
# host that does not answer, after 100 s.
FOR_GOOD = Step("killed-for-good", FUNCTIONS + """
    [ $NODE = 2 ] || exit 0
    patient_host && echo 1 >/sys/class/nvme/nvme0/ctrl_loss_tmo || exit
    kill_under fio --name=ends --filename=/dev/nvme0n1 --direct=1 --ioengine=libaio --rw=randrw --bs=16k --iodepth=16 \
        --time_based --runtime=600 || exit
    until_true 2400 eval '! kill -0 '$pid || { echo "240 s after the kill fio has no error"; exit 1; }
    cat /tmp/fio
    ! wait $pid && until_true 100 eval '! test -e /dev/nvme0n1' && until_true 100 no_qp""", 360)


@pytest.fixture(scope="module")
def loss(tmp_path_factory):
    return run_steps(tmp_path_factory.mktemp("nvme-loss"), [TARGET, FOR_GOOD], packages=apps.PACKAGES)


def test_target_lost_for_good_is_removed(loss):
    host = loss[FOR_GOOD.name][1]
    assert host.status == 0 and "Input/output error" in host.text, loss.explain(FOR_GOOD.name)
    loss.check_end()


@pytest.fixture(scope="module")
def death(tmp_path_factory):
    return run_steps(tmp_path_factory.mktemp("nvme-death"), STEPS, packages=apps.PACKAGES)


@pytest.mark.parametrize("step", ids(LIVED_ON))
def test_host(death, step):
    assert death[step][1].status == 0, death.explain(step)


@pytest.mark.parametrize("step", ids(step for step in STEPS if step not in LIVED_ON))
def test_both(death, step):
    death.check(step)


def test_programs_get_errors_in_bounded_time(death):
    text = death[FAST.name][1].text
    assert "ends: (groupid=0, jobs=1): err= 5 " in text and "Input/output error" in text, death.explain(FAST.name)


def test_io_goes_on_with_the_right_data(death):
    """All blocks, those from before the kill included."""
    text = death[BACK.name][1].text
    assert "goes-on: (groupid=0, jobs=1): err= 0" in text, death.explain(BACK.name)
    assert "READ: " in text and "WRITE: " in text and text.count("(16.8MB)") >= 2, death.explain(BACK.name)


def test_output_is_as_documented(death):
    applications.check_output("fio", death.check(FIO.name)[1].text)
    applications.check_output("NVMe disconnect", death.check(END.name)[1].text)


def test_run_ended_well(death):
    death.check_end()
