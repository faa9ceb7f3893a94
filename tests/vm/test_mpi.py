# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
"""Open MPI over openib, two VMs with two processes each, as an ordinary user; that its bytes went through the device; and with a
node that has none."""

import re

import applications
import mpi
import pytest
from boots import APPS, each_run, each_step
from steps import Step, guest_programs

pytestmark = pytest.mark.slow

CHECKED = "An MPI program with openib's defaults"
PROGRAMS = {heading: mpi.documented(heading, 180) for heading in (
    CHECKED, "VMware's parameters", "Connections by udcm", "NetPIPE")}
BEFORE = mpi.noted("before")
QP_GONE = mpi.nothing_left("nothing-left")
WITHOUT = Step("adapter-gone", "[ $NODE != 2 ] || unload")
NO_ADAPTER = mpi.failing("node-without-adapter", f"{mpi.OPENIB} {mpi.RING}", 90)
NO_ADAPTER_LEFT = mpi.nothing_left("nothing-left-without-adapter")
ADAPTER_BACK = Step("adapter-back", "[ $NODE != 2 ] || load")
STEPS = [BEFORE, mpi.PREPARED, mpi.RAISED, PROGRAMS[CHECKED], QP_GONE, mpi.COMPLAINTS]
LONG = [BEFORE, mpi.PREPARED, mpi.RAISED, *(step for heading, step in PROGRAMS.items() if heading != CHECKED), QP_GONE,
        WITHOUT, NO_ADAPTER, NO_ADAPTER_LEFT, mpi.COMPLAINTS, ADAPTER_BACK]


def files():
    return [*guest_programs(), *mpi.openib_files()]


two_by_two = APPS.part(STEPS, mpi.watched(BEFORE, QP_GONE), files)
two_by_two_long = APPS.part(LONG, mpi.watched(BEFORE, QP_GONE, NO_ADAPTER_LEFT), files, long=True)

BOTH = pytest.mark.parametrize("run", each_run("two_by_two", "two_by_two_long"), indirect=True)
EACH_PROGRAM = pytest.mark.parametrize("run, heading", each_step(
    two_by_two=[CHECKED], two_by_two_long=[heading for heading in PROGRAMS if heading != CHECKED]), indirect=["run"])


@pytest.mark.parametrize("run, step", each_step(two_by_two=STEPS, two_by_two_long=LONG), indirect=["run"])
def test_mpi(run, step):
    run.check(step)


@EACH_PROGRAM
def test_output_is_as_documented(run, heading):
    """The output has no other lines."""
    text = run.check(PROGRAMS[heading].name)[0].text
    applications.check_output(heading, text)
    mpi.check_silence(text)


@EACH_PROGRAM
def test_bytes_went_through_the_device(run, heading):
    mpi.check_bytes(run.check(PROGRAMS[heading].name), least=10 << 20)


@BOTH
@pytest.mark.parametrize("what", mpi.OBJECTS)
def test_nothing_is_left_in_the_daemon(run, what):
    run.check(QP_GONE.name)
    assert mpi.objects(run.seen, QP_GONE, what) == mpi.objects(run.seen, BEFORE, what)


@pytest.mark.long
def test_node_without_adapter_is_named(two_by_two_long):
    text = two_by_two_long.check(NO_ADAPTER.name)[0].text
    assert re.search(r"unable to reach each other.*node2", text, re.DOTALL), text


@pytest.mark.long
@pytest.mark.parametrize("what", mpi.OBJECTS)
def test_node_without_adapter_leaves_nothing_in_the_daemon(two_by_two_long, what):
    two_by_two_long.check(NO_ADAPTER_LEFT.name)
    before = mpi.objects(two_by_two_long.seen, BEFORE, what)
    assert mpi.objects(two_by_two_long.seen, NO_ADAPTER_LEFT, what) == {**before, "node2": 0}


@BOTH
def test_run_ended_well(run):
    run.check_end()
