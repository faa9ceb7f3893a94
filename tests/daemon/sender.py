# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
"""A guest that sends: a UD queue pair in RTS, whose datagrams are dropped, and its completion queue."""

import contextlib
import struct

import vfio_user as v
from daemon_process import wait_until
from guest import PAGE, Guest

EXT_DB_SUPPRESS = 1 << 12
CREATE_PD, CREATE_CQ, CREATE_QP, MODIFY_QP, CREATE_BIND = 2, 6, 9, 10, 15
CQ_RING, QP_RINGS = (number * PAGE for number in (80, 96))
CQ_HEAD, QP_HEAD, SQ = CQ_RING + 2 * PAGE, QP_RINGS + 2 * PAGE, QP_RINGS + 3 * PAGE
CQES, WQES, STRIDE = 64, 16, 128
SIGNALED, SEND, RC, UD = 2, 2, 2, 4
VLAN_NONE, ROCE_V2 = 0xFFF, 2
STATE, INIT_MASK, RTS_MASK = 1, 0x71, 1 | 1 << 16
RC_INIT_MASK = 1 | 1 << 3 | 1 << 4 | 1 << 5
RC_RTR_MASK = 1 | 1 << 7 | 1 << 8 | 1 << 12 | 1 << 15 | 1 << 17 | 1 << 20
RC_RTS_MASK = 1 | 1 << 9 | 1 << 10 | 1 << 11 | 1 << 13 | 1 << 16


def create_ud_qp(guest, vector=0):
    """A UD QP in INIT and its CQ, which has that completion vector. Return: PD, CQ, QPN and handle."""
    for base in (CQ_RING, QP_RINGS):
        guest.put_ring(base)
    pd = guest.command(CREATE_PD, "II", 0, 0)[0]
    cq = guest.command(CREATE_CQ, "QIIII", CQ_RING, 0, CQES, 2, vector)[0]
    qpn, qp = guest.command(CREATE_QP, "Q11I3H6B", QP_RINGS, pd, cq, cq, 0, WQES, 16, 1, 1, 0, 0, 0, 3, 1, 0, 0, UD, 0, 0,
                            0, 0)
    guest.command(MODIFY_QP, "III41xB", qp, INIT_MASK, 1, 1)
    return pd, cq, qpn, qp


def create_rc_qp(guest, gid):
    """An RC QP in INIT and its CQ, of a guest that binds the GID. Return: QPN and handle."""
    for base in (CQ_RING, QP_RINGS):
        guest.put_ring(base)
    guest.command(CREATE_BIND, "III16sB3x", 4096, VLAN_NONE, 0, gid, ROCE_V2)
    pd = guest.command(CREATE_PD, "II", 0, 0)[0]
    cq = guest.command(CREATE_CQ, "QIIII", CQ_RING, 0, CQES, 2, 0)[0]
    qpn, qp = guest.command(CREATE_QP, "Q11I3H6B", QP_RINGS, pd, cq, cq, 0, WQES, 16, 1, 1, 0, 0, 0, 3, 1, 0, 0, RC, 0, 0,
                            0, 0)
    guest.command(MODIFY_QP, "III41xB", qp, RC_INIT_MASK, 1, 1)
    return qpn, qp


def connect_rc_qp(guest, qp, gid, qpn):
    """To RTS, with that peer: PSN 0, 4 x 268 ms until RETRY_EXC_ERR of a host that is silent."""
    attrs = bytearray(160)
    struct.pack_into("<I4xI", attrs, 0, 2, 5)  # RTR, path MTU
    struct.pack_into("<I", attrs, 28, qpn)
    attrs[43] = 1  # max_dest_rd_atomic
    attrs[80:96] = gid
    attrs[80 + 21], attrs[80 + 31], attrs[80 + 32] = 64, 1, 1  # hop limit, GRH, port
    guest.command(MODIFY_QP, "II160s", qp, RC_RTR_MASK, bytes(attrs))
    struct.pack_into("<I", attrs, 0, 3)
    attrs[42], attrs[46], attrs[47], attrs[48] = 1, 14, 7, 7  # max_rd_atomic, timeout, retries
    guest.command(MODIFY_QP, "II160s", qp, RC_RTS_MASK, bytes(attrs))


class Sender:
    """A started driver, by default with PVR_EXT_DB_SUPPRESS."""

    def __init__(self, client, features=EXT_DB_SUPPRESS):
        self.guest = Guest(client)
        self.guest.start(features)
        self.pd, self.cq, self.qpn, self.qp = create_ud_qp(self.guest)
        self.guest.command(MODIFY_QP, "III", self.qp, STATE, 2)
        self.guest.command(MODIFY_QP, "III", self.qp, RTS_MASK, 3)
        self.posted = 0
        # One store each: struct.pack_into() first clears the bytes, and a device that polls can see that.
        self.words = memoryview(self.guest.ram).cast("I")

    def put(self, gid=bytes(16), traffic_class=0):
        """Post a datagram without a doorbell."""
        at = SQ + self.posted % WQES * STRIDE
        self.guest.put(at, "QIIIIII", self.posted, 0, 0, SEND, SIGNALED, 0, 0)
        self.guest.put(at + 32, "IIII16sBBBB", 77, 0x1234, self.pd | 1 << 24, traffic_class << 20, gid, 0, 0, 0, 64)
        self.posted += 1
        self.words[QP_HEAD // 4] = self.posted % (2 * WQES)

    def ring(self):
        self.guest.client.write(v.BAR_UAR, 0, struct.pack("<I", self.qp | 1 << 30), posted=True)

    def word(self):
        """The word of the device: not 0 while it polls."""
        return self.words[QP_HEAD // 4 + 16]

    def is_done(self):
        """All that was posted has completed, and there is room for more completions."""
        tail = self.words[CQ_HEAD // 4 + 2]
        self.words[CQ_HEAD // 4 + 3] = tail
        return tail == self.posted % (2 * CQES)

    def send(self):
        """One datagram, to its completion, with a doorbell if the device does not poll."""
        self.put()
        if not self.word():
            self.ring()
        self.wait()

    def wait(self):
        for _ in range(1000):
            if self.is_done():
                return
        wait_until(self.is_done, "a completion")

    def close(self):
        self.words.release()
        self.guest.close()


@contextlib.contextmanager
def sender_at(path):
    """A guest with a queue pair at this socket."""
    with v.attach(path) as client:
        sender = Sender(client)
        yield sender
        sender.close()
