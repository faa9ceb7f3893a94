# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
"""Our driver with Debian's provider, and with both. The stock driver with our provider is in test_stock.py."""

import pytest
from boots import Boot, step_tests
from steps import Step, our_provider
from traffic import COMPLAINTS

pytestmark = pytest.mark.slow

STEPS = [
    Step("polling", "pingpong 18515 1 2 -c -s 4096 -n 200 && pingpong 18516 2 1 -c -s 65536 -n 50"),
    Step("events", "pingpong 18515 1 2 -c -e -s 4096 -n 200 && pingpong 18516 2 1 -c -e -s 65536 -n 50"),
    Step("ib_write_lat", "perftest 18515 1 2 ib_write_lat -s 8 -n 200"),
    Step("one-has-our-provider", """
        [ $NODE = 1 ] || { install -m 644 $SHARE/libpvrdma-rdmav34.so $ibverbs/; provider pvrdma; }
        pingpong 18515 1 2 -c -s 4096 -n 200"""),
    Step("both-have-our-provider", """
        [ $NODE = 2 ] || { install -m 644 $SHARE/libpvrdma-rdmav34.so $ibverbs/; provider pvrdma; }
        pingpong 18515 1 2 -c -s 4096 -n 200"""),
    COMPLAINTS,
]
# A boot of its own, with posted writes off: Debian's provider rings a doorbell for each empty poll, and QEMU's queue of posted
# writes has no bound (docs/vmlab.md). So no step may switch to that provider in a boot of ours.
mixed = Boot("mixed", provider="debian").part(STEPS, files=our_provider)
test_step, test_run_ended_well = step_tests(mixed=STEPS)
