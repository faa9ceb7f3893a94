# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
"""An ordinary user provokes the device, while another user's stream runs through the same adapter, and never stops."""

import pytest
from boots import VERIFY, each_run, step_tests
from harm import UNHARMED, beside_a_stream, check_random_verbs, check_stream, random_verbs
from steps import Step, guest_programs

pytestmark = pytest.mark.slow

REBIND, REBIND_LONG = (beside_a_stream("rebind", f"$SHARE/pvr_rebind {seconds}", 120) for seconds in (5, 30))
# debug_kernel.py has it for an hour, with other seeds.
RANDOM, RANDOM_LONG = (random_verbs(seconds, 7) for seconds in (10, 60))
# ib_core warns of a program's PSN with more than 24 bits.
COMPLAINTS = Step("complaints", "! complaints | grep -vE '_ib_modify_qp [rs]q_psn overflow'")
STEPS = [REBIND, RANDOM, UNHARMED, COMPLAINTS]
LONG = [REBIND_LONG, RANDOM_LONG, UNHARMED, COMPLAINTS]

harm = VERIFY.part(STEPS, files=guest_programs)
harm_long = VERIFY.part(LONG, files=guest_programs, long=True)
test_step, test_run_ended_well = step_tests(harm=STEPS, harm_long=LONG)
EACH_RUN = pytest.mark.parametrize("run", each_run("harm", "harm_long"), indirect=True)


@EACH_RUN
@pytest.mark.parametrize("step", [REBIND, RANDOM], ids=lambda step: step.name)
def test_stream_is_whole(run, step):
    check_stream(run, step)


@EACH_RUN
def test_user_has_bound_windows(run):
    run.check_each(REBIND, r"^rebind: [1-9]\d* regions, \d+ times busy, [1-9]\d* windows, [1-9]\d* bound")


@EACH_RUN
def test_user_has_called_verbs(run):
    check_random_verbs(run, RANDOM)
