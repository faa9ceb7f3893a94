# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
"""The parts of a guest driver that a command needs: memory, DSR, slots, eventfds."""

import mmap
import os
import struct

import vfio_user as v

RAM_SIZE = 16 << 20
PAGE = 4096
DSR, CMD, RESP, ASYNC, CQ = (number * PAGE for number in (16, 17, 18, 32, 48))
RING_PAGES = 4
DSRLOW, DSRHIGH, CTL, REQUEST, ERR, IMR, EXT_ACK = 0x04, 0x08, 0x0C, 0x10, 0x14, 0x1C, 0x30
ACTIVATE = 0
QUERY_PORT = 0


class Guest:
    """The driver side of an attached client."""

    def __init__(self, client, msi=False, fd=None, regions=((0, RAM_SIZE),)):
        """fd: a file of RAM_SIZE bytes, which this closes; regions: (address, size), the address is also the offset."""
        self.client = client
        self.fd = v.memfd(RAM_SIZE) if fd is None else fd
        self.ram = mmap.mmap(self.fd, RAM_SIZE)
        self.vectors = [os.eventfd(0, os.EFD_NONBLOCK) for _ in range(1 if msi else 3)]
        for address, size in regions:
            client.map(address, size, [self.fd], offset=address)
        client.set_irqs(v.MSI if msi else v.MSIX, 0, len(self.vectors), self.vectors)

    def put(self, address, fmt, *values):
        struct.pack_into("<" + fmt, self.ram, address, *values)

    def get(self, address, fmt):
        return struct.unpack_from("<" + fmt, self.ram, address)

    def put_ring(self, base):
        """Directory, table and data pages one after the other."""
        self.put(base, "Q", base + PAGE)
        for number in range(RING_PAGES):
            self.put(base + PAGE + 8 * number, "Q", base + (2 + number) * PAGE)

    def start(self, features=0):
        self.client.write_reg(EXT_ACK, features)
        self.put_ring(ASYNC)
        self.put_ring(CQ)
        self.put(DSR, "IIIIQQIIQIIQQ", 20, 0, 0x46, 0, CMD, RESP, RING_PAGES, 0, ASYNC, RING_PAGES, 0, CQ, 0)
        self.client.write_config(4, 6, 2)
        self.client.write_reg(DSRLOW, DSR)
        self.client.write_reg(DSRHIGH, 0)
        self.client.write_reg(IMR, 0)
        self.client.write_reg(CTL, ACTIVATE)
        assert self.client.read_reg(ERR) == 0

    def put_query_port(self):
        self.put(CMD, "QIIBBBB", 0x1234, QUERY_PORT, 0, 1, 0, 0, 0)

    def query_port(self):
        """Return: ERR, and the head of the response: cookie, ack, error."""
        self.put_query_port()
        self.client.write_reg(REQUEST, 0)
        return self.client.read_reg(ERR), self.get(RESP, "QIB")

    def try_command(self, number, fmt="", *values):
        """Return: ERR."""
        self.put(CMD, "QII" + fmt, 0x1234, number, 0, *values)
        self.client.write_reg(REQUEST, 0)
        return self.client.read_reg(ERR)

    def command(self, number, fmt="", *values):
        """Return: the two words that may follow the head of the response; the first is a handle."""
        assert self.try_command(number, fmt, *values) == 0
        return self.get(RESP + 16, "II")

    def interrupts(self, vector):
        """How often it was raised since the last call."""
        try:
            return os.eventfd_read(self.vectors[vector])
        except BlockingIOError:
            return 0

    def close(self):
        self.ram.close()
        for fd in (self.fd, *self.vectors):
            os.close(fd)
