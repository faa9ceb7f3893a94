# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
"""The daemon closes the connection of a QEMU that still sends.

A reset (unread messages) makes QEMU abort, and its VM with it; after the end of the stream the VM continues without the device.
"""

import struct
import threading

import pytest

from daemon_process import PATIENCE, wait_until
from pipe_peer import Closed
from vfio_user import BAR_UAR, attach

DOORBELL = struct.pack("<I", 1 << 30)


class Talker:
    """Rings doorbells as fast as the socket takes them."""

    def __init__(self, path):
        self.client = attach(path)
        assert self.client.read_reg(0) == 20
        self.rung = 0
        self.thread = threading.Thread(target=self._ring, daemon=True)
        self.thread.start()
        wait_until(lambda: self.rung >= 1000, "doorbells")

    def _ring(self):
        try:
            while True:
                self.client.write(BAR_UAR, 0, DOORBELL, posted=True)
                self.rung += 1
        except (Closed, OSError):
            pass

    def end(self):
        """The last byte that it reads after the daemon has closed: none."""
        self.thread.join(PATIENCE)
        assert not self.thread.is_alive() and self.rung
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
