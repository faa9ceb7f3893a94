# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
"""Open MPI over openib, two VMs with two processes each, as an ordinary user; that its bytes went through the device; and with a
node that has none."""

import re

import applications
import apps
import mpi
import pytest
from steps import Step, guest_programs, ids, run_steps

pytestmark = pytest.mark.slow

PROGRAMS = {heading: mpi.documented(heading, 180) for heading in (
    "An MPI program with openib's defaults", "VMware's parameters", "Connections by udcm", "NetPIPE")}
BEFORE = mpi.noted("before")
LEFT = mpi.nothing_left("nothing-left")
WITHOUT = Step("adapter-gone", "[ $NODE != 2 ] || unload")
NO_ADAPTER = mpi.failing("node-without-adapter", f"{mpi.OPENIB} {mpi.RING}", 90)
NO_ADAPTER_LEFT = mpi.nothing_left("nothing-left-without-adapter")
STEPS = [BEFORE, mpi.PREPARED, mpi.RAISED, *PROGRAMS.values(), LEFT, WITHOUT, NO_ADAPTER, NO_ADAPTER_LEFT, mpi.COMPLAINTS]


@pytest.fixture(scope="module")
def two_by_two(tmp_path_factory):
    return run_steps(tmp_path_factory.mktemp("mpi"), STEPS, packages=apps.PACKAGES,
                     files=[*guest_programs(), *mpi.openib_files()],
                     watch=mpi.watched(BEFORE, LEFT, NO_ADAPTER_LEFT))


@pytest.mark.parametrize("step", ids(STEPS))
def test_mpi(two_by_two, step):
    two_by_two.check(step)


@pytest.mark.parametrize("heading", PROGRAMS)
def test_output_is_as_documented(two_by_two, heading):
    applications.check_output(heading, two_by_two.check(PROGRAMS[heading].name)[0].text)


@pytest.mark.parametrize("heading", PROGRAMS)
def test_nothing_is_said_beside(two_by_two, heading):
    mpi.check_silence(two_by_two.check(PROGRAMS[heading].name)[0].text)


@pytest.mark.parametrize("heading", PROGRAMS)
def test_bytes_went_through_the_device(two_by_two, heading):
    mpi.check_bytes(two_by_two.check(PROGRAMS[heading].name), least=10 << 20)


@pytest.mark.parametrize("what", mpi.OBJECTS)
def test_nothing_is_left_in_the_daemon(two_by_two, what):
    two_by_two.check(LEFT.name)
    assert mpi.objects(two_by_two.seen, LEFT, what) == mpi.objects(two_by_two.seen, BEFORE, what)


def test_node_without_adapter_is_named(two_by_two):
    text = two_by_two.check(NO_ADAPTER.name)[0].text
    assert re.search(r"unable to reach each other.*node2", text, re.DOTALL), text


@pytest.mark.parametrize("what", mpi.OBJECTS)
def test_node_without_adapter_leaves_nothing_in_the_daemon(two_by_two, what):
    two_by_two.check(NO_ADAPTER_LEFT.name)
    before = mpi.objects(two_by_two.seen, BEFORE, what)
    assert mpi.objects(two_by_two.seen, NO_ADAPTER_LEFT, what) == {**before, "node2": 0}


def test_run_ended_well(two_by_two):
    two_by_two.check_end()
