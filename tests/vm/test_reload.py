# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
"""The driver comes and goes: again and again, under load, and when its device or its netdev goes first."""

import pytest
from boots import PAIR, step_tests
from disturbances import (NETDEV_DOWN, NETDEV_GONE, NETDEV_RENAMED, PINGPONG_AFTER, READDRESSED, UNLOAD_UNDER_LOAD,
                          UNLOAD_UNDER_POLLING, UNPLUG_UNDER_LOAD, reloads)
from steps import Step
from traffic import COMPLAINTS

pytestmark = pytest.mark.slow


def pingpong_after(step):
    return Step(f"pingpong-after-{step.name}", PINGPONG_AFTER)


TWENTY_TIMES = reloads(20, 120)
LONG = [TWENTY_TIMES, pingpong_after(TWENTY_TIMES), COMPLAINTS]
DISTURBANCES = [reloads(5, 60), NETDEV_DOWN, NETDEV_RENAMED, READDRESSED, UNLOAD_UNDER_LOAD, UNLOAD_UNDER_POLLING,
                UNPLUG_UNDER_LOAD, NETDEV_GONE]
STEPS = [step for each in DISTURBANCES for step in (each, pingpong_after(each))] + [COMPLAINTS]

reload = PAIR.part(STEPS)
reload_long = PAIR.part(LONG, long=True)
test_step, test_run_ended_well = step_tests(reload=STEPS, reload_long=LONG)
