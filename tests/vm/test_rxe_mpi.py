# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
"""Open MPI over openib between an adapter and Soft-RoCE of each kernel, as docs/applications.md says, and between two nodes with
Soft-RoCE."""

import re

import applications
import mpi
import pytest
from boots import APPS_PACKAGES, RXE, Boot, each_run, step_tests
from traffic import COMPLAINTS

pytestmark = [pytest.mark.slow, pytest.mark.long]

HEADING = "An MPI program with a peer that has Soft-RoCE"
PROGRAM = mpi.documented(HEADING)
COMMAND = applications.example(HEADING).commands[0].text
ATOMICS = [mpi.failing(name, COMMAND.replace("ring allreduce alltoall put_get", name), 120) for name in ("accumulate", "tickets")]
STEPS = [mpi.PREPARED, mpi.RAISED, PROGRAM, COMPLAINTS]
ALONE = [mpi.PREPARED, mpi.RAISED, PROGRAM, *ATOMICS]


def _part(steps, driver, kernel):
    return Boot(f"rxe-mpi-{kernel}-{driver}", driver=driver, kernel=kernel, smp=2, packages=APPS_PACKAGES).part(
        steps, files=mpi.files, long=True)


mixed_6_1_long, mixed_6_12_long, mixed_7_2_long = (_part(STEPS, "pvrdma,rxe", kernel) for kernel in RXE)
alone_6_1_long, alone_6_12_long, alone_7_2_long = (_part(ALONE, "rxe", kernel) for kernel in RXE)
MIXED_RUNS, ALONE_RUNS = ([f"{what}_{kernel.replace('.', '_')}_long" for kernel in RXE] for what in ("mixed", "alone"))
test_step, test_run_ended_well = step_tests(**dict.fromkeys(MIXED_RUNS, STEPS), **dict.fromkeys(ALONE_RUNS, ALONE))


@pytest.mark.parametrize("run", each_run(*MIXED_RUNS), indirect=True)
def test_output_is_as_documented(run):
    applications.check_output(HEADING, run.check(PROGRAM)[0].text)


@pytest.mark.parametrize("run", each_run(*ALONE_RUNS), indirect=True)
@pytest.mark.parametrize("step", ATOMICS, ids=lambda step: step.name)
def test_atomics_of_openib_fail_with_soft_roce_alone(run, step):
    """Mostly by WORK REQUEST FLUSHED ERROR. Once they work there, the program between an adapter and Soft-RoCE can have them, too."""
    assert re.search("error polling .P CQ with status .* ERROR", run.check(step)[0].text)
