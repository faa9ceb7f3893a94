# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
"""Programs of other packages between two VMs, as docs/applications.md says: fio, rsockets, iperf, qperf, libfabric, UCX."""

import applications
import pytest
from boots import Boot, step_tests
from steps import Step
from traffic import COMPLAINTS

pytestmark = [pytest.mark.slow, pytest.mark.long]

# Port and kind of each server, see applications.meet().
PROGRAMS = {
    "fio: SEND": (7204, "meet"),
    "fio: WRITE": (7204, "meet"),
    "fio: READ": (7204, "meet"),
    "rstream": (7471, "meet"),
    "riostream": (7472, "meet"),
    "rcopy": (7427, "serve"),
    "iperf over rsockets": (5001, "serve"),
    "qperf": (19765, "serve"),
    "libfabric: messages": (47592, "meet"),
    "libfabric: reliable datagrams": (47592, "meet"),
    "libfabric: datagrams": (47592, "meet"),
    "UCX with its defaults": (13349, "meet"),
    "UCX over reliable connections": (13349, "meet"),
    "UCX over datagrams": (13349, "meet"),
}
STEPS = {heading: applications.meet(heading, port, 240, how) for heading, (port, how) in PROGRAMS.items()}
COPIED = Step("rcopy-has-copied", "[ $NODE = 2 ] || seq 2000000 | cmp - /tmp/numbers.copy")


def under_load(number):
    """fio's SEND beside two busy loops in each VM: its receiver posts late, and fio allows no RNR retry."""
    step = STEPS["fio: SEND"]
    return Step(f"{step.name}-under-load-{number}", f"""
        for loop in 1 2; do while :; do :; done & busy+=" $!"; done
        {step.script}
        status=$?
        kill $busy
        exit $status""", step.seconds)


UNDER_LOAD = [under_load(number) for number in range(1, 6)]
ALL = [*STEPS.values(), COPIED, *UNDER_LOAD, COMPLAINTS]

programs_long = Boot("programs", packages="fio,qperf,libfabric-bin,iperf,ucx-utils").part(ALL, long=True)
test_step, test_run_ended_well = step_tests(programs_long=ALL)


@pytest.mark.parametrize("heading", PROGRAMS)
def test_output(programs_long, heading):
    client = applications.example(heading).commands[1].node
    applications.check_output(heading, programs_long.check(STEPS[heading])[client - 1].text)


@pytest.mark.parametrize("step", UNDER_LOAD, ids=lambda step: step.name)
def test_fio_needs_no_rnr_retry_under_load(programs_long, step):
    applications.check_output("fio: SEND", programs_long.check(step)[1].text)
