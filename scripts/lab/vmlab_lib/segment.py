# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
"""The Ethernet segment that joins the VMs, made of Unix sockets: no root, no bridge, no tap.

Two VMs are joined directly. More of them, and VMs that move, connect to a small switch, a process of its own. QEMU sends
each frame with its length in front, four bytes in network order.
"""

import os
import selectors
import signal
import socket
import struct
import time

from . import process

RECONNECT_MS = 100


class Segment:
    """wired: the numbers of nodes whose adapters have a wire to it."""

    def __init__(self, nodes, run_dir, migratable=False, wired=()):
        self.path = run_dir / "ether"
        self.wires = {number: run_dir / f"wire{number}" for number in wired}
        self.nodes = nodes
        self.switch = None
        self.has_switch = nodes > 2 or migratable
        if self.has_switch:
            self.switch = _start_switch(str(self.path))

    def netdev(self, number):
        """QEMU's -netdev for node `number`, as a dictionary."""
        if self.nodes == 1 and not self.has_switch:
            return {"type": "hubport", "id": "net", "hubid": 0}
        netdev = {"type": "stream", "id": "net", "addr": {"type": "unix", "path": str(self.path)}}
        if not self.has_switch and number == 1:
            return {**netdev, "server": True}
        return {**netdev, "server": False, "reconnect-ms": RECONNECT_MS}

    def enter(self):
        """Return: the words in front of a QEMU and a pvrdmad."""
        return []

    def wire(self, number):
        """The adapter's setting wire=, or None."""
        return f"unix:{self.wires[number]}" if number in self.wires else None

    def wire_socket(self, number):
        """The socket of pvrdmad to which QEMU connects the segment, or None."""
        return self.wires.get(number)

    def close(self):
        if self.switch:
            os.kill(self.switch, signal.SIGKILL)
            os.waitpid(self.switch, 0)
            self.switch = None


def _start_switch(path):
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(path)
    listener.listen(64)
    parent = os.getpid()
    pid = os.fork()
    if pid == 0:
        try:
            # a SIGINT of the terminal is for vmlab, which then ends this process
            os.setsid()
            process.die_with_parent(parent)
            Switch(listener).run()
        finally:
            os._exit(1)
    listener.close()
    return pid


class _Port:
    def __init__(self, sock):
        self.sock = sock
        self.received = b""
        self.queue = bytearray()


class Switch:
    """A learning Ethernet switch."""

    # A port whose VM takes nothing for this long loses what is queued for it.
    PATIENCE = 1.0
    QUEUE = 4 << 20

    def __init__(self, listener):
        self.listener = listener
        self.ports = set()
        self.port_of = {}
        self.selector = selectors.DefaultSelector()
        self.selector.register(listener, selectors.EVENT_READ)

    def run(self):
        while True:
            for key, events in self.selector.select():
                if key.data is None:
                    self._accept()
                    continue
                if events & selectors.EVENT_WRITE:
                    self._flush(key.data)
                if events & selectors.EVENT_READ and key.data in self.ports:
                    self._receive(key.data)

    def _accept(self):
        sock, _ = self.listener.accept()
        sock.setblocking(False)
        port = _Port(sock)
        self.ports.add(port)
        self.selector.register(sock, selectors.EVENT_READ, port)

    def _drop(self, port):
        self.ports.discard(port)
        self.port_of = {mac: at for mac, at in self.port_of.items() if at is not port}
        self.selector.unregister(port.sock)
        port.sock.close()

    def _receive(self, port):
        try:
            data = port.sock.recv(1 << 18)
        except BlockingIOError:
            return
        except OSError:
            data = b""
        if not data:
            self._drop(port)
            return
        self._switch_frames(port, port.received + data)

    def _switch_frames(self, port, data):
        """Send on the whole frames in `data`, neighbours to one port together; keep the rest."""
        start = position = 0
        target = None
        while position + 4 <= len(data):
            end = position + 4 + struct.unpack_from("!I", data, position)[0]
            if end > len(data):
                break
            self.port_of[data[position + 10:position + 16]] = port
            to = self.port_of.get(data[position + 4:position + 10])
            if to is not target:
                self._forward(port, target, data[start:position])
                start, target = position, to
            position = end
        self._forward(port, target, data[start:position])
        port.received = data[position:]

    def _forward(self, source, target, frames):
        if not frames:
            return
        for port in [target] if target else list(self.ports):
            if port is not source:
                port.queue += frames
                self._flush(port)

    def _flush(self, port):
        """Send what the port takes now; wait a little when far too much is queued."""
        deadline = None
        while port.queue:
            try:
                del port.queue[:port.sock.send(port.queue)]
                continue
            except BlockingIOError:
                pass
            except OSError:
                port.queue.clear()  # its end of stream is seen by _receive
            if len(port.queue) < self.QUEUE:
                break
            deadline = deadline or time.monotonic() + self.PATIENCE
            if time.monotonic() > deadline:
                port.queue.clear()
            time.sleep(0.001)
        if port in self.ports:
            events = selectors.EVENT_READ | (selectors.EVENT_WRITE if port.queue else 0)
            if self.selector.get_key(port.sock).events != events:
                self.selector.modify(port.sock, events, port)
