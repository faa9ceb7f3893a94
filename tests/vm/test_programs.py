# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
"""Programs of other packages between two VMs, as docs/applications.md says: fio, rsockets, iperf, qperf, libfabric, UCX."""

import applications
import pytest
from boots import Boot, step_tests
from traffic import COMPLAINTS

pytestmark = [pytest.mark.slow, pytest.mark.long]

# Port and kind of each server, see applications.meet().
PROGRAMS = {
    "fio: SEND": (7204, "meet"),
    "fio: WRITE": (7204, "meet"),
    "fio: READ": (7204, "meet"),
    "rstream": (7471, "meet"),
    "riostream": (7472, "meet"),
    "iperf over rsockets": (5001, "serve"),
    "qperf": (19765, "serve"),
    "libfabric: messages": (47592, "meet"),
    "libfabric: reliable datagrams": (47592, "meet"),
    "UCX with its defaults": (13349, "meet"),
    "UCX over reliable connections": (13349, "meet"),
    "UCX over datagrams": (13349, "meet"),
}
STEPS = {heading: applications.meet(heading, port, 240, how) for heading, (port, how) in PROGRAMS.items()}

programs_long = Boot("programs", packages="fio,qperf,libfabric-bin,iperf,ucx-utils").part([*STEPS.values(), COMPLAINTS], long=True)
test_step, test_run_ended_well = step_tests(programs_long=[*STEPS.values(), COMPLAINTS])


@pytest.mark.parametrize("heading", PROGRAMS)
def test_output(programs_long, heading):
    client = applications.example(heading).commands[1].node
    applications.check_output(heading, programs_long.check(STEPS[heading])[client - 1].text)
