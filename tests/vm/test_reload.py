# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
"""The driver comes and goes: again and again, under load, and when its device or its netdev goes first."""

import pytest
from disturbances import (NETDEV_DOWN, NETDEV_GONE, NETDEV_RENAMED, PINGPONG_AFTER, READDRESSED, UNLOAD_UNDER_LOAD,
                          UNLOAD_UNDER_POLLING, UNPLUG_UNDER_LOAD)
from steps import Step, ids, run_steps

pytestmark = pytest.mark.slow

TWENTY_TIMES = Step("twenty-times", """
    for i in $(seq 20); do
        unload && load || { echo "time $i"; exit 1; }
    done""", 120)
COMPLAINTS = Step("complaints", "! complaints")


def pingpong_after(step):
    return Step(f"pingpong-after-{step.name}", PINGPONG_AFTER)


DISTURBANCES = [TWENTY_TIMES, NETDEV_DOWN, NETDEV_RENAMED, READDRESSED, UNLOAD_UNDER_LOAD, UNLOAD_UNDER_POLLING,
                UNPLUG_UNDER_LOAD, NETDEV_GONE]
STEPS = [step for each in DISTURBANCES for step in (each, pingpong_after(each))] + [COMPLAINTS]


@pytest.fixture(scope="module")
def reload(tmp_path_factory):
    return run_steps(tmp_path_factory.mktemp("reload"), STEPS)


@pytest.mark.parametrize("step", ids(STEPS))
def test_reload(reload, step):
    reload.check(step)


def test_run_ended_well(reload):
    reload.check_end()
