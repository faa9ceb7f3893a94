# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
"""Idle, the daemon uses no CPU and does not wake up."""

from daemon_idle import assert_idle
from vfio_user import Client, memfd


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
