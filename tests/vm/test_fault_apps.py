# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
"""NVMe over fabrics and Open MPI in VMs while messages fail: they recover as from a real network, or name the error."""

import re

import mpi
import pytest
import storage
from boots import APPS_PACKAGES
from faulty_daemon import NOW, FaultyDaemon
from steps import Step, run_steps

pytestmark = [pytest.mark.slow, pytest.mark.long]

FIO = ("fio --name=verified --filename=/dev/nvme0n1 --direct=1 --ioengine=libaio --rw=randwrite --bs=16k --iodepth=8 "
       "--size=16m --verify=crc32c --verify_fatal=1 --do_verify=1")
TARGET = Step("target", storage.FUNCTIONS + "[ $NODE != 1 ] || target")
CONNECT = Step("connect", storage.FUNCTIONS + "[ $NODE != 2 ] || patient_host", 60)
END = Step("disconnect", storage.FUNCTIONS + "[ $NODE != 2 ] || { host_end && until_true 50 no_qp; }")
TARGET_END = Step("target-end", storage.FUNCTIONS + "[ $NODE != 1 ] || target_end")
RING = f"{mpi.OPENIB} {mpi.RING}"


def disk(name):
    """fio writes, reads back and compares."""
    return Step(name, storage.FUNCTIONS + NOW + f"[ $NODE != 2 ] || {FIO}", 180)


def ring(name):
    return Step(name, NOW + mpi.run(name, RING).script, 240)


def ring_fails(name):
    return Step(name, NOW + mpi.failing(name, RING, 120).script, 300)


# Each new queue pair of NVMe-oF gets the error again, after some hundred messages.
RECOVERS = disk("nvme-error")
UNREACHED = ring_fails("mpi-drop-all")
OVERFLOW = ring_fails("mpi-cq-overflow")
CASES = [
    (disk("nvme-drop-and-delay"), ["drop=0.1%", "delay=50us+-20us"], ["dropped", "delayed"]),
    (disk("nvme-rnr-and-nak"), ["rnr=every:50", "nak=sequence,every=50"], ["rnr_naks", "seq_naks"]),
    (RECOVERS, ["--from", "node2", "error=REM_ACCESS_ERR,after=400"], ["failed"]),
    (ring("mpi-drop-and-delay"), ["drop=0.1%", "delay=50us+-20us"], ["dropped", "delayed"]),
    (ring("mpi-rnr-and-nak"), ["rnr=every:5", "nak=sequence,every=50"], ["rnr_naks", "seq_naks"]),
    (UNREACHED, ["--from", "node2", "drop=100%"], ["dropped"]),
    (OVERFLOW, ["--from", "node2", "cq-overflow=after:10"], ["failed"]),
]
BY_NAME = {step.name: step for step, *_ in CASES}
DISK = [step for step, *_ in CASES if step.name.startswith("nvme")]
CLEAR = Step("clear", NOW)
STEPS = [TARGET, CONNECT, *DISK, CLEAR, END, TARGET_END, mpi.PREPARED, mpi.RAISED,
         *(step for step, *_ in CASES if step not in DISK)]


@pytest.fixture(scope="module")
def daemon_and_run(tmp_path_factory):
    folder = tmp_path_factory.mktemp("fault-apps")
    (folder / "run").mkdir()
    daemon = FaultyDaemon(folder)
    watch = {f"{step.name}.now": daemon.change(step, words) for step, words, _ in [*CASES, (CLEAR, None, None)]}
    try:
        run = run_steps(folder / "run", STEPS, watch, mpi.files(), packages=APPS_PACKAGES, **daemon.options())
        daemon.note()
        yield daemon, run
    finally:
        daemon.stop()


@pytest.fixture(scope="module")
def apps(daemon_and_run):
    return daemon_and_run[1]


@pytest.mark.parametrize("step", [step.name for step in STEPS])
def test_step(apps, step):
    apps.check(step)


@pytest.mark.parametrize("step, counters", [(step.name, counters) for step, _, counters in CASES])
def test_fault_is_counted(daemon_and_run, step, counters):
    daemon, run = daemon_and_run
    run.check(step)
    fault, = daemon.seen[step]
    assert all(fault[counter] for counter in counters), fault


def test_initiator_has_connected_again(daemon_and_run):
    """One error for each connection that had enough messages."""
    daemon, run = daemon_and_run
    run.check(RECOVERS.name)
    assert daemon.seen[RECOVERS.name][0]["failed"] >= 2


def test_open_mpi_names_the_error(apps):
    """openib ends at the first error that it polls: of the lost request, or of a receive request flushed to its other CQ."""
    assert re.search("(RETRY EXCEEDED|WORK REQUEST FLUSHED) ERROR", apps[UNREACHED.name][0].text), apps.explain(UNREACHED.name)


def test_open_mpi_names_the_error_of_an_overflow(apps):
    """The lost request has no completion. Its queue pair fails, so others of that connection are flushed to the other CQ."""
    assert "WORK REQUEST FLUSHED ERROR" in apps[OVERFLOW.name][0].text, apps.explain(OVERFLOW.name)
