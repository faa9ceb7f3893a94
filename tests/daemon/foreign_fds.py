# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
"""Descriptors whose fstat() or close() blocks: a FUSE file without a server, a TCP socket that lingers."""

import contextlib
import ctypes
import os
import signal
import socket
import struct

import pytest

LOOKUP, FORGET, GETATTR, OPEN, RELEASE, FLUSH, INIT, OPENDIR, RELEASEDIR, INTERRUPT = 1, 2, 3, 14, 18, 25, 26, 27, 29, 36
MNT_DETACH = 2
FILE_SIZE = 1 << 20
libc = ctypes.CDLL(None, use_errno=True)


# What FuseFile opens: name in the file system, flags, and the last request of open().
KINDS = {
    "file": ("file", os.O_RDWR, OPEN),
    "folder": ("", os.O_RDONLY | os.O_DIRECTORY, OPENDIR),
    "path to a file": ("file", os.O_PATH, LOOKUP),
    "path to a folder": ("", os.O_PATH, INIT),
}


class FuseFile:
    """A regular file of a FUSE file system whose server responds to no request after open(). kind: see KINDS."""

    def __init__(self, folder, kind="file"):
        name, flags, self.last = KINDS[kind]
        try:
            self.dev = os.open("/dev/fuse", os.O_RDWR)
        except OSError as error:
            pytest.skip(f"no /dev/fuse: {error}")
        folder.mkdir()
        options = f"fd={self.dev},rootmode=40000,user_id={os.getuid()},group_id={os.getgid()}"
        if libc.mount(b"test", str(folder).encode(), b"fuse", 0, options.encode()) < 0:
            os.close(self.dev)
            pytest.skip(f"cannot mount a FUSE file system: {os.strerror(ctypes.get_errno())}")
        self.news, child = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
        self.server = os.fork()  # a process of its own: its end ends all requests, wherever they wait
        if not self.server:
            with contextlib.suppress(BaseException):
                self.serve(child)
            os._exit(0)
        os.close(self.dev)
        os.close(child)
        self.seen = b""
        try:
            self.fd = os.open(folder / name, flags)
        finally:
            libc.umount2(str(folder).encode(), MNT_DETACH)

    def serve(self, news):
        attr = struct.pack("<6Q10I", 2, FILE_SIZE, FILE_SIZE >> 9, 0, 0, 0, 0, 0, 0, 0o100666, 1, 0, 0, 0, 4096, 0)
        answers = {
            INIT: struct.pack("<4I2H2I2H8I", 7, 31, 65536, 0, 12, 9, 65536, 1, 16, 0, *[0] * 8),
            LOOKUP: struct.pack("<4Q2I", 2, 0, 0, 0, 0, 0) + attr,
            GETATTR: struct.pack("<Q2I", 0, 0, 0) + attr,
            OPEN: struct.pack("<Q2I", 1, 0, 0),
            OPENDIR: struct.pack("<Q2I", 1, 0, 0),
        }
        opened = False
        while True:
            _, opcode, unique = struct.unpack_from("<IIQ", os.read(self.dev, 1 << 17))
            if not opened and opcode in answers:
                os.write(self.dev, struct.pack("<IiQ", 16 + len(answers[opcode]), 0, unique) + answers[opcode])
                opened = opcode == self.last
            elif opcode not in (FORGET, RELEASE, RELEASEDIR, INTERRUPT):
                os.write(news, bytes([opcode]))

    def stuck(self):
        """The requests without a response."""
        with contextlib.suppress(BlockingIOError):
            self.seen += os.read(self.news, 4096)
        return set(self.seen)

    def close(self):
        os.kill(self.server, signal.SIGKILL)
        os.waitpid(self.server, 0)
        with contextlib.suppress(OSError):  # the flush fails, and the descriptor is closed
            os.close(self.fd)
        os.close(self.news)


class LingeringSocket:
    """A TCP socket with unsent data, whose last close() waits for ten minutes, or until release()."""

    def __init__(self):
        with socket.create_server(("127.0.0.1", 0)) as server:
            self.mine = socket.create_connection(server.getsockname())
            self.peer, _ = server.accept()
        self.mine.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 600))
        self.mine.setblocking(False)
        with contextlib.suppress(BlockingIOError):
            while True:
                self.mine.send(bytes(65536))
        self.mine.setblocking(True)
        self.fd = self.mine.fileno()

    def drop(self):
        """Close this process's descriptor. Another one, or a message with one, must exist."""
        self.mine.close()

    def release(self):
        """Unread data: the peer sends a reset."""
        self.peer.close()
        self.mine.close()
