# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
"""An ordinary user provokes the device, while another user's stream runs through the same adapter, and never stops."""

import pytest
from boots import VERIFY, step_tests
from harm import UNHARMED, beside_a_stream, check_random_verbs, check_stream, random_verbs
from steps import Step, guest_programs

pytestmark = pytest.mark.slow

REBIND = beside_a_stream("rebind", "$SHARE/pvr_rebind 10", 120)
# debug_kernel.py has it for an hour, with other seeds.
RANDOM = random_verbs(30, 7)
# ib_core warns of a program's PSN with more than 24 bits.
COMPLAINTS = Step("complaints", "! complaints | grep -vE '_ib_modify_qp [rs]q_psn overflow'")
STEPS = [REBIND, RANDOM, UNHARMED, COMPLAINTS]

harm = VERIFY.part(STEPS, files=guest_programs)
test_step, test_run_ended_well = step_tests(harm=STEPS)


@pytest.mark.parametrize("step", [REBIND, RANDOM], ids=lambda step: step.name)
def test_stream_is_whole(harm, step):
    check_stream(harm, step)


def test_user_has_bound_windows(harm):
    harm.check_each(REBIND, r"^rebind: [1-9]\d* regions, \d+ times busy, [1-9]\d* windows, [1-9]\d* bound")


def test_user_has_called_verbs(harm):
    check_random_verbs(harm, RANDOM)
