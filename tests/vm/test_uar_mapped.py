# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
"""uar=mapped: doorbells in memory, with our driver and provider and with the kernel's and rdma-core's.

Few iterations: where no core is free for the worker, it and two vCPUs share the cores.
"""

import pathlib

import pytest
from steps import Step, ids, run_steps
from traffic import COMPLAINTS

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
    COMPLAINTS,
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


@pytest.fixture(scope="module", params=["vmw_pvrdma", pytest.param("pvrdma", marks=pytest.mark.long)])
def run(request, tmp_path_factory):
    return run_steps(tmp_path_factory.mktemp("uar_mapped"), STEPS, watch={"polling.begin": who_maps_doorbells},
                     driver=request.param, adapter_settings="uar=mapped")


@pytest.mark.parametrize("step", ids(STEPS))
def test_uar_mapped(run, step):
    run.check(step)


def test_run_ended_well(run):
    run.check_end()
    assert run.seen["polling.begin"] == 3
