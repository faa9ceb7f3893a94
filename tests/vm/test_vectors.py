# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
"""A VM with more CPUs than the host: the driver has a completion vector for each of them."""

import pytest
from boots import Boot, step_tests
from steps import Step, guest_programs
from traffic import COMPLAINTS

pytestmark = pytest.mark.slow

CPUS = 12
VECTORS = Step("vectors", f"$SHARE/pvr_vectors {CPUS}", 120)
RELOADED = Step("vectors-after-a-reload", f"unload && load && $SHARE/pvr_vectors {CPUS}", 120)
STEPS = [VECTORS, RELOADED, COMPLAINTS]

many_long = Boot("vectors", nodes=1, smp=CPUS).part(STEPS, files=guest_programs, long=True)
test_step, test_run_ended_well = step_tests(many_long=STEPS)
