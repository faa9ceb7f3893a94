# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
"""rdma_cm finds the adapter through whatever network interface has the address: here a vmxnet3."""

import applications
import pytest
from steps import Step, ids, run_steps

pytestmark = pytest.mark.slow

STEPS = [
    Step("netdev", "ls -l /sys/class/net/$NETDEV/device/driver | grep vmxnet3"),
    applications.meet("rping", 7174),
    applications.meet("rping by IPv6", 7174),
    applications.meet("udaddy", 7174),
    Step("complaints", "! complaints"),
]


@pytest.fixture(scope="module")
def netdev(tmp_path_factory):
    return run_steps(tmp_path_factory.mktemp("cm-netdev"), STEPS, nic="vmxnet3")


@pytest.mark.parametrize("step", ids(STEPS))
def test_netdev(netdev, step):
    netdev.check(step)


def test_run_ended_well(netdev):
    netdev.check_end()
