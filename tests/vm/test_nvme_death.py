# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
"""The VM of an NVMe target is killed under I/O: I/O waits for the new VM, or fails, as configured."""

import applications
import pytest
import storage
from boots import APPS_PACKAGES, Boot, step_tests
from steps import Step, name_of

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
    fio="fio --filename=/dev/nvme0n1 --direct=1 --ioengine=libaio --bs=16k --iodepth=16"
    until_error="$fio --name=ends --rw=randrw --time_based --runtime=600"
    # replace_target STEP: a new VM takes the target's place, and continues with that step.
    replace_target() { echo ${STEP%%.*}.$1 >$SHARE/resume; labctl start-node 1; }
    """

TARGET = Step("target", FUNCTIONS + """
    [ $NODE = 1 ] || exit 0
    truncate -s 32M $SHARE/disk && target""")
FOR_A_WHILE = Step("killed-for-a-while", FUNCTIONS + """
    [ $NODE = 2 ] || exit 0
    patient_host || exit
    kill_under $fio --name=goes-on --rw=randwrite --size=16m --verify=crc32c --verify_fatal=1 || exit
    until_true 200 state connecting && kill -0 $pid || { cat /sys/class/nvme/nvme0/state /tmp/fio; exit 1; }
    echo $pid >/tmp/fio.pid
    replace_target target-is-back""", 120)
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
    kill_under $until_error || exit
    until_true 300 eval '! kill -0 '$pid || { echo "30 s after the kill fio has no error"; exit 1; }
    cat /tmp/fio
    ! wait $pid && state connecting && test -b /dev/nvme0n1 || exit
    replace_target target-again""", 120)
AGAIN = Step("target-again", FUNCTIONS + """
    if [ $NODE = 1 ]; then target; else until_true 400 state live; fi""")
FIO = Step("fio-once-more", f"[ $NODE != 2 ] || {storage.script('fio')}", 120)
END_AGAIN = Step("disconnect-again", END.script)

LIVED_ON = [TARGET, FOR_A_WHILE, BACK, END, FAST]
ALL_LIVE = [AGAIN, FIO, END_AGAIN]

# The kernel counts attempts to connect, ctrl_loss_tmo / reconnect-delay of them: here one. It ends when the CM gives up a
# host that does not answer, after 100 s.
FOR_GOOD = Step("killed-for-good", FUNCTIONS + """
    [ $NODE = 2 ] || exit 0
    patient_host && echo 1 >/sys/class/nvme/nvme0/ctrl_loss_tmo || exit
    kill_under $until_error || exit
    until_true 2400 eval '! kill -0 '$pid || { echo "240 s after the kill fio has no error"; exit 1; }
    cat /tmp/fio
    ! wait $pid && until_true 100 eval '! test -e /dev/nvme0n1' && until_true 100 no_qp""", 360)

loss = Boot("nvme-loss", packages=APPS_PACKAGES).part([TARGET, FOR_GOOD], long=True)
death = Boot("nvme-death", packages=APPS_PACKAGES).part([*LIVED_ON, *ALL_LIVE], long=True)
test_step, test_run_ended_well = step_tests(loss=[], death=ALL_LIVE)


def test_target_lost_for_good_is_removed(loss):
    assert "Input/output error" in loss.check(FOR_GOOD, nodes=[2])[1].text, loss.explain(FOR_GOOD)


@pytest.mark.parametrize("step", LIVED_ON, ids=name_of)
def test_host(death, step):
    death.check(step, nodes=[2])


def test_programs_get_errors_in_bounded_time(death):
    text = death[FAST][1].text
    assert "ends: (groupid=0, jobs=1): err= 5 " in text and "Input/output error" in text, death.explain(FAST)


def test_io_goes_on_with_the_right_data(death):
    """All blocks, those from before the kill included."""
    text = death[BACK][1].text
    assert "goes-on: (groupid=0, jobs=1): err= 0" in text, death.explain(BACK)
    assert "READ: " in text and "WRITE: " in text and text.count("(16.8MB)") >= 2, death.explain(BACK)


def test_output_is_as_documented(death):
    applications.check_output("fio", death.check(FIO)[1].text)
    applications.check_output("NVMe disconnect", death.check(END)[1].text)
