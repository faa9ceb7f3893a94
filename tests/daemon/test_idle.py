# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
"""Idle, the daemon uses no CPU and is not woken."""

import re
import time

from vfio_user import Client, memfd


def sample(daemon):
    """(CPU ticks, context switches) so far."""
    fields = open(f"/proc/{daemon.child.pid}/stat", encoding="ascii").read().rsplit(")", 1)[1].split()
    status = open(f"/proc/{daemon.child.pid}/status", encoding="ascii").read()
    switches = sum(map(int, re.findall(r"ctxt_switches:\s*(\d+)", status)))
    return int(fields[11]) + int(fields[12]), switches


def assert_idle(daemon):
    time.sleep(1.5)  # the stall guard's last signal
    before = sample(daemon)
    time.sleep(2)
    assert sample(daemon) == before


def test_without_clients(daemon):
    assert_idle(daemon)


def test_with_a_vm_that_does_nothing(daemon):
    with Client(daemon.socket()) as client:
        client.negotiate()
        client.map(0, 1 << 20, [memfd(1 << 20)])
        assert client.read_reg(0) == 20
        assert_idle(daemon)


def test_after_vms_have_left(daemon):
    for _ in range(10):
        with Client(daemon.socket()) as client:
            client.negotiate()
    assert_idle(daemon)
