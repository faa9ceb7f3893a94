# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
"""Failures of Open MPI over openib: each ends in time, is reported where openib reports it, and leaves no objects."""

import re

import applications
import apps
import mpi
import pytest
from steps import Step, guest_programs, ids, run_steps

pytestmark = pytest.mark.long

RING = f"{mpi.OPENIB} {mpi.RING}"
DEBIANS = mpi.failing("debians-openib", RING, 90)
LIMITED = mpi.documented("Locked memory for MPI as it is")
HANGS = mpi.run("too-little-locked-memory", f"timeout 20 {RING}; [ $? = 124 ]", 90)

# Killed amid its messages: the other processes end, too, and soon.
KILLED = Step("process-killed", f"""{mpi.SHELL}
    if [ $NODE = 1 ]; then
        (as_login '{RING} $(yes ring | head -n 1000)')
        status=$?
        echo "status $status"
        [ $status != 0 ]
    elif [ $NODE = 2 ]; then
        until_true 600 pgrep pvr_mpi && sleep 2 && pkill -KILL pvr_mpi
    fi""", 120)
AFTERWARDS = mpi.run("afterwards", RING, 120)
BEFORE = mpi.noted("before")
QP_GONE = mpi.nothing_left("nothing-left")
STEPS = [BEFORE, mpi.LIMIT, DEBIANS, mpi.PREPARED, LIMITED, HANGS, mpi.RAISED, KILLED, AFTERWARDS, QP_GONE, mpi.COMPLAINTS]


@pytest.fixture(scope="module")
def failures(tmp_path_factory):
    return run_steps(tmp_path_factory.mktemp("mpi-failures"), STEPS, packages=apps.PACKAGES,
                     files=[*guest_programs(), *mpi.openib_files()],
                     watch=mpi.watched(BEFORE, QP_GONE))


@pytest.mark.parametrize("step", ids(STEPS))
def test_failures(failures, step):
    failures.check(step)


def test_debians_openib_says_why_it_cannot(failures):
    """It has nothing but udcm, which refuses Ethernet."""
    text = failures.check(DEBIANS.name)[0].text
    assert "No OpenFabrics connection schemes" in text and re.search(r"CPCs attempted: +udcm$", text, re.MULTILINE), text


def test_limit_shows_as_documented(failures):
    applications.check_output("Locked memory for MPI as it is", failures.check(LIMITED.name)[0].text)


def test_too_little_locked_memory_is_not_told(failures):
    """As documented: if this test fails, correct the document."""
    assert "ring: ok" not in failures.check(HANGS.name)[0].text


@pytest.mark.parametrize("what", mpi.OBJECTS)
def test_nothing_is_left_in_the_daemon(failures, what):
    failures.check(QP_GONE.name)
    assert mpi.objects(failures.seen, QP_GONE, what) == mpi.objects(failures.seen, BEFORE, what)


def test_run_ended_well(failures):
    failures.check_end()
