# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
"""A peer daemon that can break the pipe protocol: each frame is made by the test."""

import random
import select
import socket
import struct
import time

MAGIC = 0x65706970
HELLO, CLOSE, PING, PONG, VERBS_QP, FABRIC, GID_QUERY, REQUEST, DATAGRAM, HERE, ACK = 1, 2, 3, 4, 5, 8, 9, 10, 11, 16, 17
CLOSE_DONE, CLOSE_VERSION, CLOSE_IDENTITY, CLOSE_PROTOCOL, CLOSE_REPLACED, CLOSE_LIMIT, CLOSE_DEVICE = range(7)
HELLO_SIZE, CLOSE_SIZE = 104, 136
PATIENCE = 60


def frame(kind, body=b"", size=None, flags=0, fabric=0):
    return struct.pack("<IBBH", 8 + len(body) if size is None else size, kind, flags, fabric) + body


def hello(name, magic=MAGIC, versions=(1, 1), instance=None, features=0, chunk=256 << 10, index=0, count=1,
          dscp=0, keepalive=10000, size=None):
    instance = random.getrandbits(64) if instance is None else instance
    body = struct.pack("<IHHQIIBBBBI64s", magic, *versions, instance, features, chunk, index, dscp, count, 0,
                       keepalive, name.encode())
    return frame(HELLO, body, size)


class Closed(Exception):
    """The daemon has closed the connection."""


class Stream:
    """A socket with a timeout; the daemon's end of it raises Closed."""

    def __init__(self, sock):
        self.sock = sock
        self.sock.settimeout(PATIENCE)

    def send(self, data):
        try:
            self.sock.sendall(data)
        except (BrokenPipeError, ConnectionResetError):
            raise Closed from None

    def receive(self, size):
        data = b""
        while len(data) < size:
            try:
                more = self.sock.recv(size - len(data))
            except ConnectionResetError:
                raise Closed from None
            if not more:
                raise Closed
            data += more
        return data

    def ends(self, patience=PATIENCE):
        """Whether the daemon closes the connection; data before that are skipped."""
        end = time.monotonic() + patience
        while time.monotonic() < end:
            ready, _, _ = select.select([self.sock], [], [], max(0, end - time.monotonic()))
            try:
                if ready and not self.sock.recv(65536):
                    return True
            except ConnectionResetError:
                return True
        return False

    def close(self):
        self.sock.close()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()


class Conn(Stream):
    """A TCP connection to or from a daemon."""

    def __init__(self, sock):
        super().__init__(sock)
        self.sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    @classmethod
    def dial(cls, address, port=7471, source=None):
        return cls(socket.create_connection((address, port), PATIENCE, (source, 0) if source else None))

    def frame(self):
        """(type, body) of the next frame."""
        size, kind, _, _ = struct.unpack("<IBBH", self.receive(8))
        return kind, self.receive(size - 8)

    def greet(self, name, **fields):
        """Exchange HELLOs. Return: the name of the daemon."""
        self.send(hello(name, **fields))
        kind, body = self.frame()
        assert kind == HELLO, f"frame {kind}: {body}"
        return body[32:].rstrip(b"\0").decode()

    def ping(self):
        """A PING, and its reply."""
        self.send(frame(PING, b"12345678"))
        assert self.frame() == (PONG, b"12345678")

    def close_frame(self):
        """(reason, text) of the next CLOSE; frames before it are skipped."""
        while True:
            kind, body = self.frame()
            if kind == CLOSE:
                return struct.unpack_from("<I", body)[0], body[8:].rstrip(b"\0").decode()

    def reset(self):
        """Close with a reset."""
        self.sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.sock.close()


class Listener(Stream):
    """The address of a daemon's --peer option."""

    def __init__(self, address, port=7471):
        super().__init__(socket.create_server((address, port), backlog=64))
        self.conns = []

    def accept(self):
        self.conns.append(Conn(self.sock.accept()[0]))
        return self.conns[-1]

    def close(self):
        """And what it has accepted."""
        for conn in [*self.conns, super()]:
            conn.close()

    def welcome(self, name, **fields):
        """Accept, and answer HELLO as a correct peer does, but for `fields`."""
        conn = self.accept()
        kind, body = conn.frame()
        assert kind == HELLO
        index, conn.dscp, count = struct.unpack_from("<BBB", body, 24)
        conn.send(hello(name, **{"index": index, "count": count, "dscp": conn.dscp, **fields}))
        return conn
