# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
"""Open MPI over openib in four VMs, connections by rdma_cm and by udcm, with openib's defaults and with VMware's parameters."""

import applications
import apps
import mpi
import pytest
from steps import guest_programs, ids, run_steps

pytestmark = pytest.mark.long

NODES = 4
DOCUMENTED = "An MPI program in four VMs"
COMMAND = applications.example(DOCUMENTED).commands[0].text
VMWARES = [word for word in applications.example("VMware's parameters").commands[0].text.split("--mca ")
           if word.startswith("btl_openib")]
PROGRAMS = [
    mpi.documented(DOCUMENTED),
    mpi.run("four-by-udcm", COMMAND.replace("--mca btl ", "--mca btl_openib_cpc_include udcm --mca btl ")),
    mpi.run("four-with-vmwares-parameters", COMMAND.replace(
        "--mca btl ", " ".join(f"--mca {word.replace('$SHARE/pvr_mpi', '').strip()}" for word in VMWARES) + " --mca btl ")),
]
BEFORE = mpi.noted("before")
QP_GONE = mpi.nothing_left("nothing-left")
STEPS = [BEFORE, mpi.PREPARED, mpi.RAISED, *PROGRAMS, QP_GONE, mpi.COMPLAINTS]


@pytest.fixture(scope="module")
def four(tmp_path_factory):
    return run_steps(tmp_path_factory.mktemp("mpi-four"), STEPS, nodes=NODES, packages=apps.PACKAGES,
                     files=[*guest_programs(), *mpi.openib_files()], watch=mpi.watched(BEFORE, QP_GONE))


@pytest.mark.parametrize("step", ids(STEPS))
def test_four(four, step):
    four.check(step)


@pytest.mark.parametrize("step", PROGRAMS, ids=lambda step: step.name)
def test_output_is_as_documented(four, step):
    text = four.check(step.name)[0].text
    applications.check_output(DOCUMENTED, text)
    mpi.check_silence(text)


@pytest.mark.parametrize("step", PROGRAMS, ids=lambda step: step.name)
def test_bytes_went_through_the_device(four, step):
    mpi.check_bytes(four.check(step.name), least=10 << 20)


@pytest.mark.parametrize("what", mpi.OBJECTS)
def test_nothing_is_left_in_the_daemon(four, what):
    four.check(QP_GONE.name)
    before = mpi.objects(four.seen, BEFORE, what)
    assert len(before) == NODES and mpi.objects(four.seen, QP_GONE, what) == before


def test_run_ended_well(four):
    four.check_end()
