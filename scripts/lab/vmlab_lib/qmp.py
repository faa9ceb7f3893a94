# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
"""A client of QEMU's control socket."""

import contextlib
import json
import socket
import time

PATIENCE = 60


class QmpError(Exception):
    """QEMU has refused a command, or has closed its socket."""


def connect(path, child):
    """The Qmp of a QEMU that has just been started; ChildProcessError if it ends before it replies."""
    while True:
        ended = child.poll() is not None
        with contextlib.suppress(OSError, QmpError):  # the socket does not exist, or does not listen yet
            return Qmp(path)
        if ended:
            raise ChildProcessError(f"QEMU has ended with status {child.returncode}")
        time.sleep(0.02)


class Qmp:
    """with Qmp(path) as qemu: qemu.execute("device_del", id="adapter")"""

    def __init__(self, path):
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.settimeout(PATIENCE)
        self.sock.connect(str(path))
        self.lines = self.sock.makefile("r")
        self.events = []
        self._next()  # the greeting
        self.execute("qmp_capabilities")

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def close(self):
        self.lines.close()
        self.sock.close()

    def _next(self):
        line = self.lines.readline()
        if not line:
            raise QmpError("QEMU has closed its control socket")
        return json.loads(line)

    def execute(self, command, **arguments):
        """Return: the result. Events until then are kept."""
        self.sock.sendall(json.dumps({"execute": command, "arguments": arguments}).encode())
        while True:
            message = self._next()
            if "event" in message:
                self.events.append(message)
                continue
            if "error" in message:
                raise QmpError(f"{command} {arguments}: {message['error'].get('desc')}")
            return message["return"]

    def wait_for(self, event, device):
        """An event of this device."""
        while True:
            for message in self.events:
                if message["event"] == event and message["data"].get("device") == device:
                    self.events.remove(message)
                    return
            self.events.append(self._next())
