# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
"""NVMe over fabrics: the kernel's own target on one VM, its initiator on the other, as docs/applications.md says."""

import json

import applications
import pytest
import storage
from boots import APPS, each_run, each_step
from pvrdmactl import pvrdmactl
from steps import Step
from traffic import COMPLAINTS

pytestmark = pytest.mark.slow

PAIRS = storage.pairs()

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
MATRIX = Step("matrix", f"[ $NODE != 2 ] || {storage.fio(PAIRS)}", 240)
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
QP_GONE = "[ $NODE != 2 ] || {{ raise {0}; await {0}.seen; }}; rdma resource"
REFUSED = """
    [ $NODE = 2 ] || exit 0
    modprobe nvme-rdma
    for i in $(seq {}); do {} && exit 1; done
    dmesg | tail -n 2; until_true 50 no_qp"""
UNKNOWN = "An NVMe target that does not exist"
WRONG_NAME_REASON = 'Connect Invalid Data Parameter, subsysnqn "absent"'
# The first failure leaves permanent objects, such as a pool of CQs. They are no leak: their number does not grow.
FIRST_REFUSED = Step("first-wrong-name", storage.FUNCTIONS + REFUSED.format(1, storage.script(UNKNOWN)))
BEFORE = Step("before-wrong-names", QP_GONE.format("look"))
WRONG_NAME = Step("wrong-names", storage.FUNCTIONS + REFUSED.format(20, storage.script(UNKNOWN)))
WRONG_PORT = Step("wrong-ports", storage.FUNCTIONS + REFUSED.format(
    20, "nvme connect -t rdma -a 10.77.0.1 -s 4421 -n ram"))
WRONG_ADDRESS = Step("wrong-address", storage.FUNCTIONS + REFUSED.format(
    1, "nvme connect -t rdma -a 10.77.0.99 -s 4420 -n ram"))
AFTER = Step("after-wrong-names", QP_GONE.format("look"))
TARGET_END = Step("target-end", storage.FUNCTIONS + "[ $NODE != 1 ] || target_end")
NOTHING_LEFT = Step("nothing-left", storage.FUNCTIONS + "no_qp")

DISCONNECT_HOST = Step("disconnect", storage.FUNCTIONS + "[ $NODE != 2 ] || host_end")
STEPS = [
    Step("there-and-back-with-srq", THERE_AND_BACK, 120),
    TARGET, CONNECT, FIO, DISCONNECT_HOST, COMPLAINTS, FIRST_REFUSED, TARGET_END, NOTHING_LEFT,
]
LONG = [
    TARGET, CONNECT, MATRIX, DISCONNECT,
    Step("connect-again", CONNECT.script), Step("fio-again", FIO.script, 120), DISCONNECT_HOST, COMPLAINTS,
    FIRST_REFUSED, BEFORE, WRONG_NAME, WRONG_PORT, WRONG_ADDRESS, AFTER,
    TARGET_END, NOTHING_LEFT,
]

STATS = pvrdmactl("--json", "stats")
nvme = APPS.part(STEPS)
nvme_long = APPS.part(LONG, {f"{step.name}.look": STATS for step in (BEFORE, AFTER)}, long=True)


@pytest.mark.parametrize("run, step", each_step(nvme=STEPS, nvme_long=LONG), indirect=["run"])
def test_nvme(run, step):
    run.check(step)


@pytest.mark.parametrize("step", [FIO, FIRST_REFUSED], ids=lambda step: step.name)
def test_output_is_as_documented(nvme, step):
    applications.check_output("fio" if step is FIO else UNKNOWN, nvme.check(step.name)[1].text)


@pytest.mark.long
def test_output_is_as_documented_again_and_again(nvme_long):
    applications.check_output(UNKNOWN, nvme_long.check(WRONG_NAME.name)[1].text)


@pytest.mark.long
@pytest.mark.parametrize("job", PAIRS, ids=lambda job: job.name)
def test_fio(nvme_long, job):
    storage.check_job(job, storage.fio_results(nvme_long.check(MATRIX.name)[1].text))


def test_reason_of_a_refusal_is_in_the_kernel_log(nvme):
    assert WRONG_NAME_REASON in nvme.check(FIRST_REFUSED.name)[1].text


@pytest.mark.long
def test_reason_of_each_refusal_is_in_the_kernel_log(nvme_long):
    assert WRONG_NAME_REASON in nvme_long.check(WRONG_NAME.name)[1].text
    assert "invalid service ID" in nvme_long.check(WRONG_PORT.name)[1].text


OBJECTS = ("contexts", "pds", "mrs", "mws", "cqs", "qps", "srqs")


@pytest.mark.long
def test_refusals_leave_nothing(nvme_long):
    """No objects are left in the guests, connection ids included, nor in the daemon."""
    before, after = ([outcome.text for outcome in nvme_long.check(step.name)] for step in (BEFORE, AFTER))
    assert before == after and all("cm_id" in text for text in before)
    objects = []
    for step in (BEFORE, AFTER):
        status, text = nvme_long.seen[f"{step.name}.look"]
        assert status == 0, text
        objects.append([{name: adapter[name] for name in OBJECTS} for adapter in json.loads(text)["adapters"]])
    assert objects[0] == objects[1] and len(objects[0]) == 2


@pytest.mark.parametrize("run", each_run("nvme", "nvme_long"), indirect=True)
def test_run_ended_well(run):
    run.check_end()
