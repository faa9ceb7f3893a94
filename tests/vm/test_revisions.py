# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
"""Adapters of each virtual hardware version, under our driver and under the kernel's own."""

import pytest
from steps import Step, run_steps
from traffic import DEVINFO

pytestmark = pytest.mark.slow

PINGPONGS = [
    Step("rc", "pingpong 18515 1 2 -c -s 4096 -n 100 && pingpong 18516 2 1 -c -e -s 65536 -n 50"),
    Step("ud", "talk 18517 1 2 ibv_ud_pingpong -d $RDMA_DEV -g $GID_INDEX -s 1024 -n 100"),
]
STEPS = [DEVINFO, *PINGPONGS]
SRQ = Step("srq", "talk 18518 1 2 ibv_srq_pingpong -d $RDMA_DEV -g $GID_INDEX -s 4096 -n 100")

RUNS = {
    "13": ("pvrdma", "hwversion=13", STEPS),
    "13-vmw": ("vmw_pvrdma", "hwversion=13", STEPS),
    "14-v1": ("pvrdma", "hwversion=14,roce=v1", [*STEPS, SRQ]),
    "18": ("pvrdma", "hwversion=18", [*STEPS, SRQ]),
}


@pytest.fixture(scope="module", params=[
    pytest.param(name, marks=[] if name == "13-vmw" else pytest.mark.long) for name in RUNS])
def revision(request, tmp_path_factory):
    driver, settings, steps = RUNS[request.param]
    run = run_steps(tmp_path_factory.mktemp(f"revision-{request.param}"), steps, driver=driver,
                    adapter_settings=settings)
    run.revision, run.steps = request.param, steps
    return run


def test_programs(revision):
    for step in revision.steps:
        revision.check(step.name)


def test_srqs(revision):
    """Hardware version 13 has no SRQs and reports none."""
    for outcome in revision.check("devinfo"):
        has_none = any(line.split() == ["max_srq:", "0"] for line in outcome.text.splitlines())
        assert has_none == revision.revision.startswith("13"), outcome.tail()


def test_roce_version(revision):
    v1 = revision.revision.startswith("13") or revision.revision.endswith("v1")
    for outcome in revision.check("devinfo"):
        assert ("RoCE v2" in outcome.text) != v1, outcome.tail()


def test_run_ended_well(revision):
    revision.check_end()
