# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
"""On-demand paging: regions whose memory is not pinned, between programs of one VM."""

import pytest
from boots import ALONE, Boot, step_tests
from disturbances import ODP_BLOCKED, ODP_RIGHTS
from steps import Step, file_system, guest_module, guest_programs
from traffic import COMPLAINTS

pytestmark = pytest.mark.slow

STEPS = [Step("odp", "$SHARE/pvr_odp", 240), ODP_RIGHTS, ODP_BLOCKED, COMPLAINTS]
of_6_1 = ALONE.part(STEPS, files=lambda: [*guest_programs(), *guest_module(), *file_system()])
of_7_2_long = Boot("odp-7.2", kernel="7.2").part(
    STEPS, files=lambda: [*guest_programs(), *guest_module("7.2"), *file_system()], long=True)
test_step, test_run_ended_well = step_tests(of_6_1=STEPS, of_7_2_long=STEPS)
