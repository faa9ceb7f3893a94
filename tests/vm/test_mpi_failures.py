# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
"""Failures of Open MPI over openib: each ends in time, is reported where openib reports it, and leaves no objects."""

import re

import applications
import mpi
import pytest
from boots import APPS_PACKAGES, Boot, step_tests
from pvrdmactl import OBJECTS, check_daemon_is_as_before, noted, nothing_left, stats_at_now
from steps import Step
from traffic import COMPLAINTS

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
BEFORE = noted("before")
QP_GONE = nothing_left("nothing-left")
STEPS = [BEFORE, mpi.LIMIT, DEBIANS, mpi.PREPARED, LIMITED, HANGS, mpi.RAISED, KILLED, AFTERWARDS, QP_GONE, COMPLAINTS]

failures = Boot("mpi-failures", packages=APPS_PACKAGES).part(STEPS, stats_at_now(BEFORE, QP_GONE), mpi.files, long=True)
test_step, test_run_ended_well = step_tests(failures=STEPS)


def test_debians_openib_says_why_it_cannot(failures):
    """It has nothing but udcm, which refuses Ethernet."""
    text = failures.check(DEBIANS)[0].text
    assert "No OpenFabrics connection schemes" in text and re.search(r"CPCs attempted: +udcm$", text, re.MULTILINE), text


def test_limit_shows_as_documented(failures):
    applications.check_output("Locked memory for MPI as it is", failures.check(LIMITED)[0].text)


def test_too_little_locked_memory_has_no_message(failures):
    """As documented: if this test fails, correct the document."""
    assert "ring: ok" not in failures.check(HANGS)[0].text


@pytest.mark.parametrize("what", OBJECTS)
def test_nothing_is_left_in_the_daemon(failures, what):
    check_daemon_is_as_before(failures, BEFORE, QP_GONE, what)
