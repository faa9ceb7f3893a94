# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
"""Debian's Open MPI over UCX and libfabric, and its MPICH, as they are: the bytes went through the device."""

import applications
import mpi
import pytest
from boots import Boot, each_step, step_tests
from pvrdmactl import OBJECTS, check_daemon_is_as_before, noted, nothing_left, stats_at_now
from steps import guest_programs
from traffic import COMPLAINTS

pytestmark = [pytest.mark.slow, pytest.mark.long]

PACKAGES = "libfabric-bin,mpich,netpipe-mpich2,openmpi-bin,openssh-client,openssh-server"
PROGRAMS = ("Open MPI over UCX", "Open MPI over libfabric", "MPICH")
DOCUMENTED = {heading: mpi.documented(heading, 180) for heading in PROGRAMS}
HEADINGS = {step.name: heading for heading, step in DOCUMENTED.items()}
BEFORE, LEFT = noted("before"), nothing_left("nothing-left")
STEPS = [BEFORE, mpi.RAISED, *DOCUMENTED.values(), LEFT, COMPLAINTS]

ucx_long = Boot("mpi-ucx", packages=PACKAGES).part(STEPS, stats_at_now(BEFORE, LEFT), guest_programs, long=True)
test_step, test_run_ended_well = step_tests(ucx_long=STEPS)
EACH_PROGRAM = pytest.mark.parametrize("run, step", each_step(ucx_long=DOCUMENTED.values()), indirect=["run"])


@EACH_PROGRAM
def test_output_is_as_documented(run, step):
    applications.check_output(HEADINGS[step], run.check(step)[0].text)


@EACH_PROGRAM
def test_bytes_went_through_the_device(run, step):
    mpi.check_bytes(run.check(step), least=10 << 20)


@pytest.mark.parametrize("what", OBJECTS)
def test_nothing_is_left_in_the_daemon(ucx_long, what):
    check_daemon_is_as_before(ucx_long, BEFORE, LEFT, what)
