# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
"""A VM whose DMA goes through bounce buffers, as that of a VM with encrypted memory: programs are refused."""

import pytest
from boots import Boot, step_tests
from steps import Step

pytestmark = pytest.mark.long

REFUSED = Step("refused", """
    for i in 1 2 3; do ibv_rc_pingpong -d $RDMA_DEV -g $GID_INDEX -n 1 && exit 1; done
    ibv_devinfo -d $RDMA_DEV && dmesg | grep 'only bounce buffers'
    [ "$(dmesg | grep -c 'only bounce buffers')" = 1 ] && ! dmesg | grep 'swiotlb buffer is full'""")
STEPS = [REFUSED]
bounce = Boot("bounce", nodes=1, append="swiotlb=force").part(STEPS, long=True)
test_step, test_run_ended_well = step_tests(bounce=STEPS)


def test_program_gets_an_error(bounce):
    assert "Couldn't register MR" in bounce.check(REFUSED)[0].text
