# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
"""Commands and interrupts through the whole daemon, driven by a tiny driver."""

import fcntl
import os
import struct
import time

import pytest

import vfio_user as v
from conftest import wait_until
from guest import DSR, RESP, Guest


@pytest.fixture
def guest(client):
    made = Guest(client)
    yield made
    made.close()


def test_driver_starts(daemon, guest):
    assert guest.start() == 0
    assert guest.get(DSR + 72 + 203, "B") == (2,), "caps: RoCE v2"
    assert daemon.ctl("adapters").stdout.splitlines()[1].split()[3] == "active"


def test_command_raises_vector_0(guest):
    assert guest.start() == 0
    guest.interrupts(0)
    error, (cookie, ack, _) = guest.query_port()
    assert (error, cookie, ack) == (0, 0x1234, 0x80000000)
    assert guest.interrupts(0) == 1


def test_link_change_raises_vector_1(daemon, guest):
    assert guest.start() == 0
    guest.interrupts(1)
    daemon.ctl("link", "node1", "down")
    wait_until(lambda: guest.interrupts(1), "an interrupt for the event")


def test_without_bus_master_there_is_no_dma(guest, client):
    assert guest.start() == 0
    client.write_config(4, 2, 2)
    guest.put(RESP, "Q", 0x77)
    guest.query_port()
    assert guest.get(RESP, "Q") == (0x77,)


def test_reset_stops_dma(guest, client):
    assert guest.start() == 0
    client.call(v.RESET)
    guest.put(RESP, "Q", 0x77)
    error, _ = guest.query_port()
    assert error != 0
    assert guest.get(RESP, "Q") == (0x77,)


def test_unmapped_ram_is_not_touched(guest, client):
    assert guest.start() == 0
    client.unmap(0, 16 << 20)
    guest.put(RESP, "Q", 0x77)
    error, _ = guest.query_port()
    assert error != 0
    assert guest.get(RESP, "Q") == (0x77,)


def test_vectors_taken_away(guest, client):
    assert guest.start() == 0
    guest.interrupts(0)
    client.set_irqs(v.MSIX, 0, 0, flags=v.TRIGGER | v.NONE)
    assert guest.query_port()[0] == 0
    assert guest.interrupts(0) == 0


def test_interrupt_that_nobody_reads(guest, neighbour):
    """The counter at its limit: the write would block, and does not."""
    assert guest.start() == 0
    guest.interrupts(0)
    os.eventfd_write(guest.vectors[0], 0xFFFFFFFFFFFFFFFE)
    assert guest.query_port()[0] == 0
    neighbour()


def test_interrupt_made_to_block(daemon, guest, client, neighbour):
    """A QEMU that turns its eventfd back to blocking is noticed, and thrown out."""
    assert guest.start() == 0
    guest.interrupts(0)
    os.eventfd_write(guest.vectors[0], 0xFFFFFFFFFFFFFFFE)
    flags = fcntl.fcntl(guest.vectors[0], fcntl.F_GETFL)
    fcntl.fcntl(guest.vectors[0], fcntl.F_SETFL, flags & ~os.O_NONBLOCK)
    guest.put_query_port()
    client.write(v.BAR_REGS, 0x10, struct.pack("<I", 0), posted=True)
    time.sleep(0.1)
    neighbour()
    assert client.is_gone()
    daemon.wait_for_log("is thrown out: its interrupt eventfd blocks")


def test_ram_truncated_under_a_running_driver(daemon, guest, client, neighbour):
    assert guest.start() == 0
    os.ftruncate(guest.fd, 0)
    client.write(v.BAR_REGS, 0x10, struct.pack("<I", 0), posted=True)
    assert client.is_gone()
    daemon.wait_for_log("its RAM was truncated")
    neighbour()


def test_ram_truncated_in_the_middle(daemon, guest, client, neighbour):
    """The pages in front of the hole stay as they are."""
    assert guest.start() == 0
    os.ftruncate(guest.fd, RESP)
    guest_command = struct.pack("<QIIBBBB", 1, 0, 0, 1, 0, 0, 0)
    os.pwrite(guest.fd, guest_command, 17 * 4096)
    client.write(v.BAR_REGS, 0x10, struct.pack("<I", 0), posted=True)
    assert client.is_gone()
    daemon.wait_for_log("its RAM was truncated")
    neighbour()
