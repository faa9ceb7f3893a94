# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
"""Descriptors in the queue of a client behind messages without any, as two vCPUs of a QEMU send them."""

import errno
import os
import struct

import pytest

import vfio_user as v
from daemon_process import stopped, wait_until
from vfio_user import Refused, attach

VECTORS = 64
DOORBELL = struct.pack("<QIII", 0, v.BAR_UAR, 4, 0)


def eventfds(client, number=1):
    """A message that sets vectors, and its descriptors, which are closed by the end of the test program."""
    body = struct.pack("<IIIII", 20, v.TRIGGER | v.EVENTFD, v.MSIX, 0, number)
    return client.message(v.SET_IRQS, body), [os.eventfd(0) for _ in range(number)]


# Each is (command, body, flags, errno of its reply). -1: no reply.
FIRST = {
    "posted": (v.REGION_WRITE, DOORBELL, v.NO_REPLY, -1),
    "write": (v.REGION_WRITE, DOORBELL, 0, 0),
    "read": (v.REGION_READ, struct.pack("<QII", 0, v.BAR_REGS, 4), 0, 0),
    "config": (v.REGION_READ, struct.pack("<QII", 0, v.CONFIG, 256), 0, 0),
    "info": (v.GET_IRQ_INFO, struct.pack("<IIII", 16, 0, v.MSIX, 0), 0, 0),
    "refused": (v.GET_INFO, b"", 0, errno.EINVAL),
    "refused-by-the-library": (v.GET_REGION_INFO, struct.pack("<IIIIQQ", 4, 0, 0, 0, 0, 0), 0, errno.EINVAL),
}


@pytest.mark.parametrize("count", [1, 3, 40])
@pytest.mark.parametrize("name", FIRST)
def test_descriptors_of_a_later_message_stay_with_it(daemon, client, name, count):
    command, body, flags, error = FIRST[name]
    if error >= 0 and count > 20:
        count = 20  # so many replies fit into the client's socket
    before = daemon.open_files()
    with stopped(daemon):
        sent = [client.message(command, body, flags=flags) for _ in range(count)]
        for message in sent:
            client.send_raw(message)
        client.send_raw(*eventfds(client))
    for message in sent if error >= 0 else []:
        if error:
            with pytest.raises(Refused) as info:
                client.reply()
            assert info.value.args[0] == error
        else:
            number, got, _ = client.reply()
            assert (number, got) == (v.HEADER.unpack_from(message)[0], command)
    assert client.reply()[:2] == (client.next_id, v.SET_IRQS)
    assert client.read_reg(0) == 20
    wait_until(lambda: daemon.open_files() == before + 1, "one eventfd is kept, and no other descriptor")


def test_replies_of_queued_reads_are_those_of_reads_alone(daemon, client):
    alone = client.read(v.CONFIG, 0, 256)
    body = struct.pack("<QII", 0, v.CONFIG, 256)
    with stopped(daemon):
        client.send_raw(client.message(v.REGION_READ, body))
        client.send_raw(*eventfds(client))
    assert client.reply()[2] == body + alone
    client.reply()


def test_region_that_can_be_mapped_keeps_its_descriptor(start_daemon):
    daemon = start_daemon(settings=",uar=mapped")
    with attach(daemon.socket()) as client:
        with stopped(daemon):
            client.ask_region(v.BAR_UAR)
            client.send_raw(*eventfds(client))
        fd = client.region_fd(v.BAR_UAR, asked=True)
        assert os.fstat(fd).st_size == 4 << 20
        os.close(fd)


@pytest.mark.parametrize("name", [name for name in FIRST if name != "refused-by-the-library"])
def test_descriptors_of_two_messages_in_one_send_end_the_client(daemon, name):
    """They would be received with the first message, which has none."""
    command, body, flags, _ = FIRST[name]
    with attach(daemon.socket()) as client:
        files = daemon.open_files()
        first = client.message(command, body, flags=flags)
        message, fds = eventfds(client)
        client.send_raw(first + message, fds)
        assert client.ends()
        daemon.wait_for_log("is disconnected: unexpected descriptors in a message")
    wait_until(lambda: daemon.open_files() < files, "its descriptors closed")
