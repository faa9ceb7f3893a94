# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
"""The operator takes a link down, and a whole adapter away, under a running VM."""

import pytest
from boots import PAIR, step_tests
from disturbances import AFTER, LINK_DOWN, LINK_UP, LOAD, OPERATOR, UNLOAD, VANISH
from steps import guest_module

pytestmark = pytest.mark.slow

STEPS = [LINK_DOWN, LINK_UP, VANISH, AFTER, UNLOAD, LOAD]

vanish = PAIR.part(STEPS, OPERATOR, guest_module)
test_step, test_run_ended_well = step_tests(vanish=STEPS)


def test_kernel_says_that_the_device_is_gone(vanish):
    """On removal, and when the driver probes a device that is gone."""
    assert "the device is removed: is pvrdmad running" in vanish.check(LOAD)[0].text, vanish.explain(LOAD)
    assert "device failed: registers read all ones" in vanish.result.log("node1.console")


def test_kernel_consumer_gets_the_last_event_of_its_srq(vanish):
    """The event comes once, and requests that no QP has taken are not flushed; see tests/guest/kmod/srq.c."""
    assert "ok 1 - srq-of-a-dead-device" in vanish.check(VANISH)[0].text.splitlines(), vanish.explain(VANISH)


def test_pvrdmactl_succeeded(vanish):
    assert {status for status, _ in vanish.seen.values()} == {0}, vanish.seen
