# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
"""NVMe over fabrics: the kernel's own target on one VM, its initiator on the other, as docs/applications.md says."""

import itertools

import applications
import pytest
import storage
from boots import APPS, step_tests
from pvrdmactl import NOW, OBJECTS, check_daemon_is_as_before, stats_at_now
from steps import Step, name_of
from traffic import COMPLAINTS

pytestmark = pytest.mark.slow

# With a shared receive queue at the target: the documented commands find the module loaded.
THERE_AND_BACK = storage.FUNCTIONS + """
    there_and_back() {
        head -c 24M /dev/urandom >/tmp/sent
        dd if=/tmp/sent of=/dev/nvme0n1 bs=1M oflag=direct && dd if=/tmp/sent of=/dev/nvme0n1 bs=12K oflag=direct &&
            dd if=/dev/nvme0n1 of=/tmp/back bs=256K iflag=direct count=96 && cmp /tmp/sent /tmp/back
    }
    if [ $NODE = 1 ]; then
        modprobe nvmet-rdma use_srq=1 && target && raise up || { raise dead; exit 1; }
        await over dead
        target_end
    else
        await up dead; raised up || exit
        host && there_and_back; status=$?
        host_end && modprobe -r nvme_rdma || status=1
        raise over; exit $status
    fi"""
TARGET = Step("target", storage.FUNCTIONS + "[ $NODE != 1 ] || target")
CONNECT = Step("connect", storage.FUNCTIONS + "[ $NODE != 2 ] || host")
FIO = Step("fio", f"[ $NODE != 2 ] || {storage.script('fio')}", 120)
JOBS = {block: storage.jobs(block) for block in storage.BLOCKS}
MATRIX = {block: Step(f"blocks-of-{block}", f"[ $NODE != 2 ] || {storage.fio(jobs)}", 120) for block, jobs in JOBS.items()}
# fio ends because of its errors, not because its time is up; requests in flight fail, none is lost.
DISCONNECT = Step("disconnect-under-io", storage.FUNCTIONS + """
    [ $NODE = 2 ] || exit 0
    fio --name=under-way --filename=/dev/nvme0n1 --direct=1 --ioengine=libaio --rw=randrw --bs=16k --iodepth=32 \
        --time_based --runtime=600 >/tmp/fio 2>&1 & pid=$!
    until_true 100 sectors_done 2000; begun=$?
    host_end || exit
    wait $pid; status=$?
    cat /tmp/fio
    [ $begun = 0 ] && [ $status != 0 ] && until_true 50 eval '! test -e /dev/nvme0n1' && until_true 50 no_qp""", 60)
REFUSED = """
    [ $NODE = 2 ] || exit 0
    modprobe nvme-rdma
    for i in $(seq {}); do {} && exit 1; done
    dmesg | tail -n 2; until_true 50 no_qp"""
UNKNOWN = "An NVMe target that does not exist"
WRONG_NAME_REASON = 'Connect Invalid Data Parameter, subsysnqn "absent"'
# The first failure leaves permanent objects, such as a pool of CQs. They are no leak: their number does not grow.
FIRST_REFUSED = Step("first-wrong-name", storage.FUNCTIONS + REFUSED.format(1, storage.script(UNKNOWN)))
BEFORE, AFTER = (Step(name, NOW + "; rdma resource") for name in ("before-wrong-names", "after-wrong-names"))
WRONG_NAME = Step("wrong-names", storage.FUNCTIONS + REFUSED.format(20, storage.script(UNKNOWN)))
WRONG_PORT = Step("wrong-ports", storage.FUNCTIONS + REFUSED.format(
    20, "nvme connect -t rdma -a 10.77.0.1 -s 4421 -n ram"))
WRONG_ADDRESS = Step("wrong-address", storage.FUNCTIONS + REFUSED.format(
    1, "nvme connect -t rdma -a 10.77.0.99 -s 4420 -n ram"))
TARGET_END = Step("target-end", storage.FUNCTIONS + "[ $NODE != 1 ] || target_end")
NOTHING_LEFT = Step("nothing-left", storage.FUNCTIONS + "no_qp")

DISCONNECT_HOST = Step("disconnect", storage.FUNCTIONS + "[ $NODE != 2 ] || host_end")
STEPS = [
    Step("there-and-back-with-srq", THERE_AND_BACK, 120),
    TARGET, CONNECT, FIO, DISCONNECT_HOST, COMPLAINTS, FIRST_REFUSED, TARGET_END, NOTHING_LEFT,
]
LONG = [
    TARGET, CONNECT, *MATRIX.values(), DISCONNECT,
    Step("connect-again", CONNECT.script), Step("fio-again", FIO.script, 120), DISCONNECT_HOST, COMPLAINTS,
    FIRST_REFUSED, BEFORE, WRONG_NAME, WRONG_PORT, WRONG_ADDRESS, AFTER,
    TARGET_END, NOTHING_LEFT,
]

nvme = APPS.part(STEPS)
nvme_long = APPS.part(LONG, stats_at_now(BEFORE, AFTER), long=True)
test_step, test_run_ended_well = step_tests(nvme=STEPS, nvme_long=LONG)


@pytest.mark.parametrize("heading, step", [("fio", FIO), (UNKNOWN, FIRST_REFUSED)])
def test_output_is_as_documented(nvme, heading, step):
    applications.check_output(heading, nvme.check(step)[1].text)


@pytest.mark.long
def test_output_is_as_documented_again_and_again(nvme_long):
    applications.check_output(UNKNOWN, nvme_long.check(WRONG_NAME)[1].text)


@pytest.mark.long
@pytest.mark.parametrize("job", itertools.chain.from_iterable(JOBS.values()), ids=name_of)
def test_fio(nvme_long, job):
    storage.check_job(job, storage.fio_results(nvme_long.check(MATRIX[job.block])[1].text))


def test_reason_of_a_refusal_is_in_the_kernel_log(nvme):
    assert WRONG_NAME_REASON in nvme.check(FIRST_REFUSED)[1].text


@pytest.mark.long
def test_reason_of_each_refusal_is_in_the_kernel_log(nvme_long):
    assert WRONG_NAME_REASON in nvme_long.check(WRONG_NAME)[1].text
    assert "invalid service ID" in nvme_long.check(WRONG_PORT)[1].text


@pytest.mark.long
def test_refusals_leave_nothing_in_the_guests(nvme_long):
    """Connection ids included."""
    before, after = ([outcome.text for outcome in nvme_long.check(step)] for step in (BEFORE, AFTER))
    assert before == after and all("cm_id" in text for text in before)


@pytest.mark.long
@pytest.mark.parametrize("what", [*OBJECTS, "mws"])
def test_refusals_leave_nothing_in_the_daemon(nvme_long, what):
    check_daemon_is_as_before(nvme_long, BEFORE, AFTER, what)
