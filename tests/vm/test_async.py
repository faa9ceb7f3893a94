# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
"""async=on: doorbells in memory, with our driver and provider and with the kernel's and rdma-core's.

Few iterations: where no core is free for the worker, it and two vCPUs share what there is.
"""

import pathlib

import pytest
from steps import Step, ids, run_steps

pytestmark = pytest.mark.slow

STEPS = [
    Step("polling", """
        [ $NODE != 1 ] || { raise begin; await begin.seen; }
        pingpong 18515 1 2 -c -s 4096 -n 100""", 120),
    Step("events", "pingpong 18515 2 1 -c -e -s 4096 -n 100", 120),
    Step("events-ud", "talk 18515 1 2 ibv_ud_pingpong -d $RDMA_DEV -g $GID_INDEX -s 1024 -e -n 100"),
    Step("srq", "talk 18515 1 2 ibv_srq_pingpong -d $RDMA_DEV -g $GID_INDEX -q 4 -n 100"),
    Step("srq-events", "talk 18515 1 2 ibv_srq_pingpong -d $RDMA_DEV -g $GID_INDEX -q 4 -e -n 100"),
    Step("write", "perftest 18515 1 2 ib_write_bw -q 8 -s 65536 -n 100"),
    Step("connections", "talk 7174 1 2 rping_end"),
    Step("complaints", "! complaints"),
]


def who_maps_doorbells(vmlab_pid):
    """How many of vmlab's children: pvrdmad and, if doorbells are no messages, each QEMU."""
    found = 0
    for status in pathlib.Path("/proc").glob("[0-9]*/status"):
        try:
            if f"\nPPid:\t{vmlab_pid}\n" in status.read_text():
                found += "memfd:pvrdma-uar" in (status.parent / "maps").read_text()
        except OSError:
            continue
    return found


def run(tmp_path_factory, driver):
    return run_steps(tmp_path_factory.mktemp("async"), STEPS, watch={"polling.begin": who_maps_doorbells},
                     driver=driver, adapter_settings="async=on")


def check_end(finished):
    finished.check_end()
    assert finished.seen["polling.begin"] == 3


@pytest.fixture(scope="module")
def ours(tmp_path_factory):
    return run(tmp_path_factory, "pvrdma")


@pytest.fixture(scope="module")
def stock(tmp_path_factory):
    return run(tmp_path_factory, "vmw_pvrdma")


@pytest.mark.parametrize("step", ids(STEPS))
def test_our_driver(ours, step):
    ours.check(step)


def test_our_run_ended_well(ours):
    check_end(ours)


@pytest.mark.parametrize("step", ids(STEPS))
def test_stock_driver(stock, step):
    stock.check(step)


def test_stock_run_ended_well(stock):
    check_end(stock)
