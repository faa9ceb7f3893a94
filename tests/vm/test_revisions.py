# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
"""Adapters of each virtual hardware version, under our driver and under the kernel's own."""

import pytest
from boots import OLD, Boot, each_run, step_tests
from steps import Step
from traffic import DEVINFO

pytestmark = pytest.mark.slow

PINGPONGS = [
    Step("rc", "pingpong 18515 1 2 -c -s 4096 -n 100 && pingpong 18516 2 1 -c -e -s 65536 -n 50"),
    Step("ud", "talk 18517 1 2 ibv_ud_pingpong -d $RDMA_DEV -g $GID_INDEX -s 1024 -n 100"),
]
STEPS = [DEVINFO, *PINGPONGS]
SRQ = Step("srq", "talk 18518 1 2 ibv_srq_pingpong -d $RDMA_DEV -g $GID_INDEX -s 4096 -n 100")

RUNS = {"of_13_mapped_long": STEPS, "of_13_vmw_long": STEPS, "of_13_long": STEPS, "of_14_v1_long": [*STEPS, SRQ], "of_18_long": [*STEPS, SRQ]}


def part(name, driver, settings):
    boot = Boot(f"revision-{name}", driver=driver, adapter_settings=settings)
    return boot.part(RUNS[name], long=True)


of_13_mapped_long = OLD.part(STEPS, long=True)
of_13_vmw_long = part("of_13_vmw_long", "vmw_pvrdma", "hwversion=13")
of_13_long = part("of_13_long", "pvrdma", "hwversion=13")
of_14_v1_long = part("of_14_v1_long", "pvrdma", "hwversion=14,roce=v1")
of_18_long = part("of_18_long", "pvrdma", "hwversion=18")
test_step, test_run_ended_well = step_tests(**RUNS)
EACH_RUN = pytest.mark.parametrize("run", each_run(*RUNS), indirect=True)


@EACH_RUN
def test_srqs(run):
    """Hardware version 13 has no SRQs and reports none."""
    for outcome in run.check(DEVINFO):
        has_none = any(line.split() == ["max_srq:", "0"] for line in outcome.text.splitlines())
        assert has_none == run.options["adapter_settings"].startswith("hwversion=13"), outcome.tail()


@EACH_RUN
def test_roce_version(run):
    for outcome in run.check(DEVINFO):
        assert ("RoCE v2" in outcome.text) == (run.options["adapter_settings"] == "hwversion=18"), outcome.tail()
