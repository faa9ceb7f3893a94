# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
"""An adapter with interrupts=msi: one MSI vector for all causes, in the place of MSI-X."""

import errno
import os

import pytest

import vfio_user as v
from guest import Guest
from vfio_user import Refused, attach

CAPS, STATUS = 0x34, 0x06


@pytest.fixture
def client(daemon):
    with attach(daemon.add_adapter("msi", 7, interrupts="msi")) as made:
        yield made


@pytest.fixture
def guest(client):
    made = Guest(client, msi=True)
    made.start()
    yield made
    made.close()


def refused(error, function, *args, **kwargs):
    with pytest.raises(Refused) as caught:
        function(*args, **kwargs)
    assert caught.value.args[0] == error


def test_capability_is_msi_alone(client):
    assert client.read_config(STATUS, 2) & 0x10
    pos = client.read_config(CAPS, 1)
    assert client.read_config(pos, 2) == 0x0005, "MSI, and no capability behind it"
    assert client.read_config(pos + 2, 2) == 0x0080, "an address of 64 bits, one message"


def test_capability_fields_of_the_guest_are_writable(client):
    pos = client.read_config(CAPS, 1)
    for offset in range(0, 16, 4):
        client.write_config(pos + offset, 0xFFFFFFFF)
    assert [client.read_config(pos + offset) for offset in range(0, 16, 4)] == [0x00810005, 0xFFFFFFFC, 0xFFFFFFFF, 0x0000FFFF]
    client.call(v.RESET)
    assert [client.read_config(pos + offset) for offset in range(0, 16, 4)] == [0x00800005, 0, 0, 0]


def test_device_has_one_msi_vector_and_no_msix(client):
    assert [client.irq_info(index)[3] for index in range(3)] == [1, 1, 0]


@pytest.mark.parametrize("index, start, count", [(v.MSIX, 0, 1), (v.MSI, 1, 1), (v.MSI, 0, 2)])
def test_other_vectors_are_refused(client, index, start, count):
    fds = [os.eventfd(0) for _ in range(count)]
    refused(errno.EINVAL, client.set_irqs, index, start, count, fds)
    for fd in fds:
        os.close(fd)


def test_msi_is_refused_by_a_device_with_msix(daemon):
    event = os.eventfd(0)
    with attach(daemon.socket(1)) as other:
        refused(errno.EINVAL, other.set_irqs, v.MSI, 0, 1, [event])
    os.close(event)


def test_command_raises_the_vector(guest):
    guest.interrupts(0)
    assert guest.query_port()[0] == 0
    assert guest.interrupts(0) == 1


def test_event_raises_the_same_vector(daemon, guest):
    """A port that goes down is an event, which has a vector of its own with MSI-X."""
    guest.interrupts(0)
    daemon.must("link", "msi", "down")
    assert guest.client.read_reg(0) == 20
    assert guest.interrupts(0) == 1


def test_vector_without_an_eventfd_is_raised_when_it_gets_one(daemon, guest):
    guest.client.set_irqs(v.MSI, 0, 1, flags=v.TRIGGER | v.EVENTFD, fds=[os.eventfd(0)])
    guest.client.set_irqs(v.MSI, 0, 1, guest.vectors)
    guest.interrupts(0)
    daemon.must("link", "msi", "down")
    assert guest.client.read_reg(0) == 20
    assert guest.interrupts(0) == 1


def test_unknown_kind_of_interrupts_is_refused(daemon):
    done = daemon.ctl("add-adapter", f"name=x,socket={daemon.folder}/x,mac=52:54:00:00:00:09,interrupts=intx")
    assert done.returncode == 2 and "interrupts 'intx' is neither msix nor msi" in done.stderr
