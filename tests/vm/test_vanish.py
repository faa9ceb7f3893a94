# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
"""The operator takes a link down, and a whole adapter away, under a running VM."""

import pytest
from boots import DISTURB
from disturbances import AFTER, LINK_DOWN, LINK_UP, LOAD, UNLOAD, VANISH
from pvrdmactl import pvrdmactl
from steps import guest_module, ids

pytestmark = pytest.mark.slow


STEPS = [LINK_DOWN, LINK_UP, VANISH, AFTER, UNLOAD, LOAD]

vanish = DISTURB.part(STEPS, files=lambda: [guest_module()], watch={
    "link-down.now": pvrdmactl("link", "node1", "down"),
    "link-up.now": pvrdmactl("link", "node1", "up"),
    "adapter-vanishes.now": pvrdmactl("remove-adapter", "node1")})


@pytest.mark.parametrize("step", ids(STEPS))
def test_vanish(vanish, step):
    vanish.check(step)


def test_kernel_says_that_the_device_is_gone(vanish):
    """On removal, and when the driver probes a device that is gone."""
    assert "the device is removed: is pvrdmad running" in vanish.check(LOAD.name)[0].text, vanish.explain(LOAD.name)
    assert "device failed: registers read all ones" in vanish.result.log("node1.console")


def test_kernel_consumer_is_told_the_end_of_its_srq(vanish):
    """The event comes once, and requests that no QP has taken are not flushed; see tests/guest/kmod/srq.c."""
    assert "ok 1 - srq-of-a-dead-device" in vanish.check(VANISH.name)[0].text.splitlines(), vanish.explain(VANISH.name)


def test_pvrdmactl_did_as_it_was_told(vanish):
    assert {status for status, _ in vanish.seen.values()} == {0}, vanish.seen


def test_run_ended_well(vanish):
    vanish.check_end()
