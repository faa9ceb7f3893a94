# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
"""Our driver with Debian's provider, and with both. The stock driver with our provider is in test_stock.py."""

import dataclasses

import pytest
from boots import STOCK, step_tests
from steps import Step, our_module, our_provider
from traffic import COMPLAINTS

pytestmark = pytest.mark.slow

# The other steps of the boot have left warnings of the kernel's driver.
OUR_DRIVER = Step("our-driver", """
    unload && dmesg -C && insmod $SHARE/pvrdma.ko && RDMA_DEV=$(ls /sys/class/infiniband) &&
        until_true 100 has_ip_gid $RDMA_DEV && rdma link show | grep "link pvrdma0/1 state ACTIVE" """)
DEVICE = "RDMA_DEV=$(ls /sys/class/infiniband) GID_INDEX=$(gid_index_of pvrdma0)\n"
PINGPONGS = [
    Step("polling", "pingpong 18515 1 2 -c -s 4096 -n 200 && pingpong 18516 2 1 -c -s 65536 -n 50"),
    Step("events", "pingpong 18515 1 2 -c -e -s 4096 -n 200 && pingpong 18516 2 1 -c -e -s 65536 -n 50"),
    Step("ib_write_lat", "perftest 18515 1 2 ib_write_lat -s 8 -n 200"),
    Step("one-has-our-provider", """
        [ $NODE = 1 ] || { install -m 644 $SHARE/libpvrdma-rdmav34.so $ibverbs/; provider pvrdma; }
        pingpong 18515 1 2 -c -s 4096 -n 200"""),
    Step("both-have-our-provider", """
        [ $NODE = 2 ] || { install -m 644 $SHARE/libpvrdma-rdmav34.so $ibverbs/; provider pvrdma; }
        pingpong 18515 1 2 -c -s 4096 -n 200"""),
]
STEPS = [OUR_DRIVER, *(dataclasses.replace(step, script=DEVICE + step.script) for step in PINGPONGS), COMPLAINTS]
# In the boot of the kernel's driver, which has posted writes off: Debian's provider rings a doorbell for each empty poll, and
# QEMU's queue of posted writes has no bound (docs/vmlab.md). So no step may switch to that provider in a boot of ours.
mixed = STOCK.part(STEPS, files=lambda: [*our_module(), *our_provider()])
test_step, test_run_ended_well = step_tests(mixed=STEPS)
