# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
"""uar=mapped: doorbells in memory, with our driver and provider and with the kernel's and rdma-core's; the latter also on
hardware without SRQs.

Few iterations: where no core is free for the worker, it and two vCPUs share the cores.
"""

import pathlib

import pytest
from boots import OLD, Boot, each_run, step_tests
from pvrdmactl import NOW
from steps import Step, pids_of
from traffic import COMPLAINTS

pytestmark = pytest.mark.slow

STEPS = [
    Step("polling", """
        %s
        pingpong 18515 1 2 -c -s 4096 -n 100""" % NOW, 120),
    Step("events", "pingpong 18515 2 1 -c -e -s 4096 -n 100", 120),
    Step("events-ud", "talk 18515 1 2 ibv_ud_pingpong -d $RDMA_DEV -g $GID_INDEX -s 1024 -e -n 100"),
    Step("srq", "talk 18515 1 2 ibv_srq_pingpong -d $RDMA_DEV -g $GID_INDEX -q 4 -n 100"),
    Step("srq-events", "talk 18515 1 2 ibv_srq_pingpong -d $RDMA_DEV -g $GID_INDEX -q 4 -e -n 100"),
    Step("write", "perftest 18515 1 2 ib_write_bw -q 8 -s 65536 -n 100"),
    Step("connections", "talk 7174 1 2 rping_end"),
    COMPLAINTS,
]
WITHOUT_SRQS = [step for step in STEPS if not step.name.startswith("srq")]


def processes_with_mapped_doorbells(vmlab_pid):
    """How many of vmlab's children: pvrdmad and, if doorbells are no messages, each QEMU."""
    maps = [pathlib.Path(f"/proc/{pid}/maps").read_text() for pid in pids_of(vmlab_pid)]
    return sum("memfd:pvrdma-uar" in text for text in maps)


WATCH = {"polling.now": processes_with_mapped_doorbells}


def part_long(driver):
    return Boot(f"uar-mapped-{driver}", driver=driver, adapter_settings="uar=mapped").part(STEPS, WATCH, long=True)


old_long = OLD.part(WITHOUT_SRQS, WATCH, long=True)
stock_long, ours_long = part_long("vmw_pvrdma"), part_long("pvrdma")
RUNS = {"old_long": WITHOUT_SRQS, "stock_long": STEPS, "ours_long": STEPS}
test_step, test_run_ended_well = step_tests(**RUNS)


@pytest.mark.parametrize("run", each_run(*RUNS), indirect=True)
def test_doorbells_are_mapped(run):
    run.check("polling")
    assert run.seen["polling.now"] == 3
