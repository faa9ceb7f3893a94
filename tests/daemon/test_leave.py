# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
"""The daemon closes the connection of a QEMU that still sends.

A reset (unread messages) makes QEMU abort, and its VM with it; after the end of the stream the VM continues without the device.
"""

import contextlib
import struct
import threading

import pytest

from daemon_net import start_pair
from daemon_process import PATIENCE, mac, wait_until
from guest import Guest
from pipe_peer import Closed
from sender import connect_rc_qp, create_rc_qp
from vfio_user import BAR_UAR, DMA_MAP, NO_REPLY, attach, memfd

EXT_PEER_GONE = 1 << 14
DOORBELL = struct.pack("<I", 1 << 30)


def ring_doorbell(client):
    client.write(BAR_UAR, 0, DOORBELL, posted=True)


class Mapper:
    """Maps a page, and then the same page again and again, which is refused; each message has a descriptor."""

    def __init__(self):
        self.fd = memfd(4096)

    def __call__(self, client):
        client.send_raw(client.message(DMA_MAP, struct.pack("<IIQQQ", 32, 3, 0, 0, 4096), flags=NO_REPLY), [self.fd])


class Talker:
    """Sends as fast as the socket takes it."""

    def __init__(self, path, send=ring_doorbell):
        self.client = attach(path)
        assert self.client.read_reg(0) == 20
        self.sent = 0
        self.thread = threading.Thread(target=self._send, args=[send], daemon=True)
        self.thread.start()
        wait_until(lambda: self.sent >= 1000, "messages")

    def _send(self, send):
        try:
            while True:
                send(self.client)
                self.sent += 1
        except (Closed, OSError):
            pass

    def end(self):
        """The last byte that it reads after the daemon has closed: none."""
        self.thread.join(PATIENCE)
        assert not self.thread.is_alive() and self.sent
        try:
            return self.client.sock.recv(1)
        finally:
            self.client.close()


@pytest.mark.parametrize("time", range(5))
def test_adapter_removed_under_doorbells(daemon, time):
    talker = Talker(daemon.socket(1))
    daemon.must("remove-adapter", "node1")
    assert talker.end() == b""


@pytest.mark.parametrize("time", range(5))
def test_daemon_stopped_under_doorbells(daemon, time):
    talkers = [Talker(daemon.socket(number)) for number in (1, 2)]
    assert daemon.stop() == 0
    assert [talker.end() for talker in talkers] == [b"", b""]


@pytest.mark.parametrize("time", range(5))
def test_daemon_stopped_under_descriptors(daemon, time):
    talker = Talker(daemon.socket(1), Mapper())
    assert daemon.stop() == 0
    assert talker.end() == b""


def gid_of(number):
    """The address of the adapter with this MAC."""
    parts = bytes(int(part, 16) for part in mac(number).split(":"))
    return bytes([0xFE, 0x80, *[0] * 6, parts[0] ^ 2, *parts[1:3], 0xFF, 0xFE, *parts[3:]])


def qp_states(daemon):
    return [qp["state"] for qp in daemon.query("qps", "vm")["adapters"][0]["qps"] if qp["type"] == "RC"]


def test_daemon_that_stops_ends_the_connections_of_its_vms(start):
    """The peer posts no request, so no timeout tells it of the end."""
    pair = start_pair(start)
    with contextlib.ExitStack() as stack:
        ends = []
        for number, daemon in enumerate(pair, 1):
            daemon.add_adapter("vm", number)
            guest = Guest(stack.enter_context(attach(daemon.folder / "vm")))
            guest.start(EXT_PEER_GONE)
            ends.append((guest, *create_rc_qp(guest, gid_of(number))))
        for number, (guest, _, qp) in enumerate(ends):
            connect_rc_qp(guest, qp, gid_of(2 - number), ends[1 - number][1])
        assert qp_states(pair[1]) == ["RTS"]
        assert pair[0].stop() == 0
        wait_until(lambda: qp_states(pair[1]) == ["ERR"], "the peer ends")
