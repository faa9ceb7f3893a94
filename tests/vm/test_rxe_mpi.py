# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
"""Open MPI over openib between an adapter and Soft-RoCE, as docs/applications.md says, and between two nodes with Soft-RoCE."""

import applications
import mpi
import pytest
from boots import APPS_PACKAGES, Boot, step_tests
from traffic import COMPLAINTS

pytestmark = [pytest.mark.slow, pytest.mark.long]

HEADING = "An MPI program with a peer that has Soft-RoCE"
PROGRAM = mpi.documented(HEADING)
COMMAND = applications.example(HEADING).commands[0].text
ATOMICS = [mpi.failing(name, COMMAND.replace("ring allreduce alltoall put_get", name), 120) for name in ("accumulate", "tickets")]
STEPS = [mpi.PREPARED, mpi.RAISED, PROGRAM, COMPLAINTS]
ALONE = [mpi.PREPARED, mpi.RAISED, PROGRAM, *ATOMICS]


def _part(steps, driver):
    return Boot(f"rxe-mpi-{driver}", driver=driver, smp=2, packages=APPS_PACKAGES).part(steps, files=mpi.files, long=True)


mixed_long, alone_long = _part(STEPS, "pvrdma,rxe"), _part(ALONE, "rxe")
test_step, test_run_ended_well = step_tests(mixed_long=STEPS, alone_long=ALONE)


def test_output_is_as_documented(mixed_long):
    applications.check_output(HEADING, mixed_long.check(PROGRAM)[0].text)


@pytest.mark.parametrize("step", ATOMICS, ids=lambda step: step.name)
def test_atomics_of_openib_fail_with_soft_roce_alone(alone_long, step):
    """Once they work there, the program between an adapter and Soft-RoCE can have them, too."""
    assert "WORK REQUEST FLUSHED ERROR" in alone_long.check(step)[0].text
