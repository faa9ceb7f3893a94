# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
"""Commands and interrupts through the whole daemon, driven by a tiny driver."""

import fcntl
import os
import struct
import time

import pytest

import vfio_user as v
from daemon_idle import sleeps, wait_quiet
from daemon_process import wait_until
from guest import CMD, DSR, PAGE, RESP, RING_PAGES, Guest
from sender import CREATE_PD, MODIFY_QP, QP_RINGS, create_ud_qp
from vfio_user import attach

VECTOR_RING = 64 * PAGE
CREATE_MR, SET_CQ_RING = 4, 21
EXT_MW, EXT_CQ_VECTORS, FLAG_MW1 = 1 << 4, 1 << 6, 1 << 3
ERROR = 6


def test_driver_starts(daemon, guest):
    assert guest.get(DSR + 72 + 203, "B") == (2,), "caps: RoCE v2"
    assert daemon.table("adapters")[0]["STATE"] == "active"


def test_stats_count_memory_windows_apart(daemon, new_guest):
    new_guest.start(EXT_MW)
    domain, _ = new_guest.command(CREATE_PD)
    for _ in range(3):
        new_guest.command(CREATE_MR, "QQQIIII", 0, 0, 0, domain, 0, FLAG_MW1, 0)
    counters = daemon.counters()
    assert (counters["mws"], counters["mrs"], counters["pds"]) == (3, 0, 1)
    assert counters["features"] == EXT_MW


def test_command_raises_vector_0(guest):
    guest.interrupts(0)
    error, (cookie, ack, _) = guest.query_port()
    assert (error, cookie, ack) == (0, 0x1234, 0x80000000)
    assert guest.interrupts(0) == 1


def test_link_change_raises_vector_1(daemon, guest):
    guest.interrupts(1)
    daemon.must("link", "node1", "down")
    wait_until(lambda: guest.interrupts(1), "an interrupt for the event")


@pytest.mark.parametrize("stop", [lambda client: client.write_config(4, 2, 2), lambda client: client.call(v.RESET),
                                  lambda client: client.unmap(0, 16 << 20)], ids=["no bus master", "reset", "no RAM"])
def test_there_is_no_dma_after(guest, client, stop):
    stop(client)
    guest.put(RESP, "Q", 0x77)
    error, _ = guest.query_port()
    assert error != 0
    assert guest.get(RESP, "Q") == (0x77,)


def flush_a_request(guest, vector):
    """A completion on an armed CQ of a completion vector: a receive request of a UD QP that goes to ERR."""
    guest.put_ring(VECTOR_RING)
    guest.command(SET_CQ_RING, "IIIIQ", vector, 0, RING_PAGES, 0, VECTOR_RING)
    _, cq, _, qp = create_ud_qp(guest, vector)
    guest.put(QP_RINGS + 2 * PAGE + 8, "I", 1)
    guest.client.write(v.BAR_UAR, 4, struct.pack("<I", cq | 1 << 30))
    guest.command(MODIFY_QP, "III", qp, 1, ERROR)


@pytest.mark.parametrize("vector", [1, 7])
def test_completion_vector_raises_its_own(new_guest, client, vector):
    guest = new_guest
    guest.vectors += [os.eventfd(0, os.EFD_NONBLOCK) for _ in range(7)]
    client.set_irqs(v.MSIX, 3, 7, guest.vectors[3:])
    guest.start(EXT_CQ_VECTORS)
    flush_a_request(guest, vector)
    wait_until(lambda: guest.get(VECTOR_RING + 2 * PAGE + 8, "I") == (1,), "a notification")
    client.read_reg(0)
    assert [guest.interrupts(2 + number) for number in range(8)] == [number == vector for number in range(8)]


def test_vector_that_is_not_set_up_yet(daemon, new_guest, client):
    """An event comes while the driver has requested only some of its vectors."""
    guest = new_guest
    client.set_irqs(v.MSIX, 0, 0, flags=v.TRIGGER | v.NONE)
    client.set_irqs(v.MSIX, 0, 1, guest.vectors[:1])
    guest.start()
    daemon.must("link", "node1", "down")
    client.set_irqs(v.MSIX, 1, 2, guest.vectors[1:])
    assert (guest.interrupts(1), guest.interrupts(2)) == (1, 0)
    client.set_irqs(v.MSIX, 1, 1, guest.vectors[1:2])
    assert guest.interrupts(1) == 0, "raised once"


def test_vector_that_lost_its_eventfd_for_a_moment(daemon, guest, client):
    client.set_irqs(v.MSIX, 1, 1)
    client.set_irqs(v.MSIX, 2, 1)
    daemon.must("link", "node1", "down")
    client.set_irqs(v.MSIX, 1, 1, guest.vectors[1:2])
    assert guest.interrupts(1) == 1


def test_vector_raised_while_msix_is_off(daemon, new_guest, client):
    """The next driver gets no event of the previous one."""
    guest = new_guest
    client.set_irqs(v.MSIX, 0, 0, flags=v.TRIGGER | v.NONE)
    guest.start()
    daemon.must("link", "node1", "down")
    client.set_irqs(v.MSIX, 0, 1, guest.vectors[:1])
    daemon.must("link", "node1", "up")
    client.set_irqs(v.MSIX, 0, 0, flags=v.TRIGGER | v.NONE)
    client.set_irqs(v.MSIX, 0, 3, guest.vectors)
    assert guest.interrupts(1) == 0


def test_vectors_taken_away(guest, client):
    guest.interrupts(0)
    client.set_irqs(v.MSIX, 0, 0, flags=v.TRIGGER | v.NONE)
    assert guest.query_port()[0] == 0
    assert guest.interrupts(0) == 0


def block_interrupts(guest, client):
    """The eventfd of vector 0 becomes full and blocking; a command then raises the vector."""
    guest.interrupts(0)
    os.eventfd_write(guest.vectors[0], 0xFFFFFFFFFFFFFFFE)
    flags = fcntl.fcntl(guest.vectors[0], fcntl.F_GETFL)
    fcntl.fcntl(guest.vectors[0], fcntl.F_SETFL, flags & ~os.O_NONBLOCK)
    guest.put_query_port()
    client.write(v.BAR_REGS, 0x10, struct.pack("<I", 0), posted=True)


def test_interrupt_that_blocks_after_an_idle_second(daemon, guest, client):
    """The first event after idleness is guarded, too. The guard of an idle worker has stopped after 0.5 s."""
    with attach(daemon.socket(2)) as other:
        wait_quiet(lambda: sleeps(daemon), 1.2, "sleeps of the workers")
        block_interrupts(guest, client)
        assert client.ends()
        daemon.wait_for_log("is disconnected: its interrupt eventfd blocks")
        assert other.read_reg(0) == 20


def test_client_that_blocks_interrupts_again_and_again(daemon, neighbour):
    """Each time, the worker stands still for up to half a second. So the next client waits, and longer each time."""
    for pause in (1, 2):
        started = time.monotonic()
        with attach(daemon.socket(1)) as client:
            guest = Guest(client)
            guest.start()
            block_interrupts(guest, client)
            assert client.ends()
            guest.close()
        daemon.wait_for_log(f"the next QEMU is accepted in {pause} s")
        neighbour.check()
    assert time.monotonic() - started > 0.9


def test_interrupt_that_is_not_read(daemon, guest, client, neighbour):
    """The counter is at its limit, so that a write to a blocking eventfd would block."""
    guest.interrupts(0)
    os.eventfd_write(guest.vectors[0], 0xFFFFFFFFFFFFFFFE)
    assert guest.query_port()[0] == 0
    neighbour.check()
    # A QEMU that turns its eventfd back to blocking is disconnected.
    block_interrupts(guest, client)
    time.sleep(0.1)
    neighbour.check()
    assert client.ends()
    daemon.wait_for_log("is disconnected: its interrupt eventfd blocks")


@pytest.mark.parametrize("size", [0, RESP], ids=["all", "from the response on"])
def test_ram_truncated_under_a_running_driver(daemon, guest, client, neighbour, size):
    """The pages before the hole stay as they are."""
    os.ftruncate(guest.fd, size)
    if size:
        os.pwrite(guest.fd, struct.pack("<QIIBBBB", 1, 0, 0, 1, 0, 0, 0), CMD)
    client.write(v.BAR_REGS, 0x10, struct.pack("<I", 0), posted=True)
    assert client.ends()
    daemon.wait_for_log("its RAM was truncated")
    neighbour.check()
