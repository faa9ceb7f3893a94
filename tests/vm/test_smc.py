# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
"""SMC-R: the kernel's RDMA connections for TCP programs, as docs/applications.md says. Its first version needs RoCE v1."""

import applications
import pytest
from boots import Boot, step_tests
from pvrdmactl import at_now, noted, reply
from steps import Step, guest_programs

pytestmark = [pytest.mark.slow, pytest.mark.long]

HEADING = "iperf over SMC-R"
# Guests of Debian 12 have no smc-tools: this is their smc_run.
SET_UP = Step("set-up", r"""
    modprobe smc && install -m 755 $SHARE/smc_socket.so /usr/local/lib || exit
    printf '#!/bin/sh\nLD_PRELOAD=/usr/local/lib/smc_socket.so exec "$@"\n' >/usr/local/bin/smc_run
    chmod 755 /usr/local/bin/smc_run""")
BEFORE, IPERF, AFTER = noted("before"), applications.meet(HEADING, 5002, 120, "serve"), noted("after")
LINKED = Step("linked", "dmesg | grep 'smc: SMC-R lg .* link added: .* ibdev '")
UNLOAD = Step("unload", "until_true 100 rmmod smc; rdma resource show qp | grep -c 'type RC' | grep -x 0")
# SMC logs its devices and links at the level of warnings.
COMPLAINTS = Step("complaints", "! complaints | grep -v ' smc: '")
STEPS = [SET_UP, BEFORE, IPERF, AFTER, LINKED, UNLOAD, COMPLAINTS]
WATCH = at_now([BEFORE, AFTER], "--json", "paths")

smc_long = Boot("smc", adapter_settings="roce=v1", packages="iperf").part(STEPS, WATCH, files=guest_programs, long=True)
test_step, test_run_ended_well = step_tests(smc_long=STEPS)


def test_output(smc_long):
    applications.check_output(HEADING, smc_long.check(IPERF)[1].text)


def test_data_went_through_the_device(smc_long):
    moved = []
    for step in (BEFORE, AFTER):
        smc_long.check(step)
        moved.append(sum(path["bytes"] for path in reply(smc_long, step)["paths"] if path["from"] != path["to"]))
    assert moved[1] - moved[0] > 64 << 20, moved
