# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
"""What an operator sees in the guest: counters after traffic of known size, and the link."""

import pytest
from boots import PAIR, step_tests
from counters import IN_USE, PORT, QP_COUNTER
from steps import Step
from traffic import COMPLAINTS

pytestmark = pytest.mark.slow

LINK = Step("link", """
    rdma link show | tee /dev/stderr | grep "$RDMA_DEV/1 state ACTIVE physical_state LINK_UP netdev $NETDEV" &&
        ip link set $NETDEV down && rdma link show | grep "$RDMA_DEV/1 state DOWN" && ip link set $NETDEV up &&
        until_true 50 has_gid""")
PORT_AGAIN = Step("port-again", PORT.script)
STEPS = [PORT, QP_COUNTER, IN_USE, LINK, PORT_AGAIN, COMPLAINTS]

counters = PAIR.part(STEPS)
test_step, test_run_ended_well = step_tests(counters=STEPS)
