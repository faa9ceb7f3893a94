# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
"""A vfio-user client that can also send messages that QEMU never sends."""

import json
import os
import socket
import struct

from pipe_peer import Stream

VERSION, DMA_MAP, DMA_UNMAP, GET_INFO, GET_REGION_INFO, GET_REGION_IO_FDS, GET_IRQ_INFO, SET_IRQS = range(1, 9)
REGION_READ, REGION_WRITE, DMA_READ, DMA_WRITE, RESET, DIRTY_PAGES = range(9, 15)
DEVICE_FEATURE, MIG_DATA_READ, MIG_DATA_WRITE = range(16, 19)
REPLY, NO_REPLY, ERROR = 1, 0x10, 0x20

BAR_MSIX, BAR_REGS, BAR_UAR, CONFIG = 0, 1, 2, 7
INTX, MSI, MSIX = 0, 1, 2
TRIGGER, EVENTFD, NONE, BOOL = 1 << 5, 1 << 2, 1 << 0, 1 << 1
UNMASK = 1 << 4

# Features, their methods, and states of a device that is migrated.
MIGRATION, STATE, LOG_START, LOG_STOP, LOG_REPORT, THROTTLE = 1, 2, 6, 7, 8, 0x7676
GET, SET, PROBE = 1 << 16, 1 << 17, 1 << 18
STATE_ERROR, STOP, RUNNING, STOP_COPY, RESUMING = range(5)
CHUNK = 65536  # the most data in a message

HEADER = struct.Struct("<HHIII")


class Refused(Exception):
    """An error reply; args[0] is its errno."""


def memfd(size):
    fd = os.memfd_create("ram")
    os.ftruncate(fd, size)
    return fd


def attach(path):
    """A Client that has negotiated."""
    client = Client(path)
    client.negotiate()
    return client


class Client(Stream):
    """One connection."""

    def __init__(self, path):
        sock = socket.socket(socket.AF_UNIX)
        sock.connect(str(path))
        super().__init__(sock)
        self.next_id = 1

    # ------------------------------------------------------------- any message

    def message(self, command, body=b"", flags=0, size=None):
        self.next_id = self.next_id + 1 & 0xFFFF
        size = HEADER.size + len(body) if size is None else size
        return HEADER.pack(self.next_id, command, size, flags, 0) + body

    def send_raw(self, data, fds=()):
        if fds:
            assert socket.send_fds(self.sock, [data], list(fds)) == len(data)
        else:
            self.send(data)

    def reply(self):
        """The next reply: (id, command, body)."""
        number, command, size, flags, error = HEADER.unpack(self.receive(HEADER.size))
        body = self.receive(size - HEADER.size)
        assert flags & 0xF == REPLY
        if flags & ERROR:
            raise Refused(error)
        return number, command, body

    def call(self, command, body=b"", fds=(), **kwargs):
        self.send_raw(self.message(command, body, **kwargs), fds)
        number, got, reply = self.reply()
        assert (number, got) == (self.next_id, command)
        return reply

    # ------------------------------------------------------------ messages of QEMU

    def negotiate(self, major=0, minor=1, capabilities=None):
        text = json.dumps({"capabilities": capabilities or {"max_msg_fds": 8, "max_data_xfer_size": 1048576}})
        body = self.call(VERSION, struct.pack("<HH", major, minor) + text.encode() + b"\0")
        return struct.unpack_from("<HH", body), json.loads(body[4:].rstrip(b"\0"))

    def read(self, region, offset, size):
        body = self.call(REGION_READ, struct.pack("<QII", offset, region, size))
        assert struct.unpack_from("<QII", body) == (offset, region, size)
        return body[16:]

    def write(self, region, offset, data, posted=False):
        body = struct.pack("<QII", offset, region, len(data)) + data
        if posted:
            self.send_raw(self.message(REGION_WRITE, body, flags=NO_REPLY))
        else:
            self.call(REGION_WRITE, body)

    def read_reg(self, offset):
        return struct.unpack("<I", self.read(BAR_REGS, offset, 4))[0]

    def write_reg(self, offset, value):
        self.write(BAR_REGS, offset, struct.pack("<I", value))

    def read_config(self, offset, size=4):
        return int.from_bytes(self.read(CONFIG, offset, size), "little")

    def write_config(self, offset, value, size=4):
        self.write(CONFIG, offset, value.to_bytes(size, "little"))

    def region_info(self, index, argsz=32):
        body = self.call(GET_REGION_INFO, struct.pack("<IIIIQQ", argsz, 0, index, 0, 0, 0))
        return struct.unpack_from("<IIIIQQ", body)

    def ask_region(self, index):
        self.send_raw(self.message(GET_REGION_INFO, struct.pack("<IIIIQQ", 4096, 0, index, 0, 0, 0)))

    def region_fd(self, index, asked=False):
        """The descriptor of a region that can be mapped, or None."""
        if not asked:
            self.ask_region(index)
        data, fds, _, _ = socket.recv_fds(self.sock, 4096, 8)
        _, command, size, flags, _ = HEADER.unpack_from(data)
        assert (command, flags & 0xFF) == (GET_REGION_INFO, REPLY) and len(data) == size
        assert len(fds) <= 1
        return fds[0] if fds else None

    def irq_info(self, index):
        return struct.unpack("<IIII", self.call(GET_IRQ_INFO, struct.pack("<IIII", 16, 0, index, 0)))

    def set_irqs(self, index, start, count, fds=(), flags=TRIGGER | EVENTFD, data=b""):
        self.call(SET_IRQS, struct.pack("<IIIII", 20 + len(data), flags, index, start, count) + data, fds)

    def map(self, address, size, fds=(), offset=0, flags=3):
        self.call(DMA_MAP, struct.pack("<IIQQQ", 32, flags, offset, address, size), fds)

    def unmap(self, address, size, flags=0):
        self.call(DMA_UNMAP, struct.pack("<IIQQ", 24, flags, address, size))

    # ---------------------------------------------------- messages of a QEMU that migrates

    def feature(self, flags, data=b"", space=0):
        """Return: the data of the reply. space: for more data in it than in the request."""
        argsz = 8 + len(data) + space
        body = self.call(DEVICE_FEATURE, struct.pack("<II", argsz, flags) + data)
        assert struct.unpack_from("<II", body) == (len(body), flags)
        return body[8:]

    def set_state(self, state):
        self.feature(SET | STATE, struct.pack("<Ii", state, -1))

    def state(self):
        return struct.unpack("<Ii", self.feature(GET | STATE, space=8))[0]

    def read_data(self, size=CHUNK):
        """Less data than size are the last."""
        body = self.call(MIG_DATA_READ, struct.pack("<II", 8 + size, size))
        argsz, got = struct.unpack_from("<II", body)
        assert argsz == len(body) == 8 + got
        return body[8:]

    def write_data(self, data):
        assert self.call(MIG_DATA_WRITE, struct.pack("<II", 8, len(data)) + data) == b""

    def save(self, size=CHUNK):
        """The whole state; the device is in STOP afterwards."""
        self.set_state(STOP_COPY)
        data = piece = self.read_data(size)
        while len(piece) == size:
            piece = self.read_data(size)
            data += piece
        self.set_state(STOP)
        return data

    def load(self, data, size=CHUNK):
        """The device is in STOP afterwards."""
        self.set_state(RESUMING)
        for begin in range(0, len(data), size):
            self.write_data(data[begin:begin + size])
        self.set_state(STOP)

    def start_logging(self, ranges=()):
        data = struct.pack("<QII", 4096, len(ranges), 0) + b"".join(struct.pack("<QQ", *pair) for pair in ranges)
        assert struct.unpack_from("<Q", self.feature(SET | LOG_START, data)) == (4096,)

    def dirty_pages(self, address, size):
        """Numbers of pages from the address on that were written since the last call."""
        data = self.feature(GET | LOG_REPORT, struct.pack("<QQQ", address, size, 4096), space=size // 32768 + 8)
        bits = int.from_bytes(data[24:], "little")
        return [page for page in range(size // 4096) if bits >> page & 1]
