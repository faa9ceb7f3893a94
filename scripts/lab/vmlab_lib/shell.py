# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
"""The user's terminal joined to a node's console."""

import contextlib
import os
import select
import socket
import sys
import termios
import tty

from .errors import LabError

ESCAPE = b"\x1d"  # Ctrl-]
SILENCE = 1.0


class Terminal:
    """Copies between stdin/stdout and a node's shell socket. ended is set when one of them ends."""

    def __init__(self, path):
        self.socket = socket.socket(socket.AF_UNIX)
        try:
            self.socket.connect(str(path))
        except OSError as err:
            raise LabError(f"{path}: {err.strerror}; is that lab still running?") from err
        self.ended = False
        self.stdin_open = True

    @contextlib.contextmanager
    def raw(self):
        """Keys go to the node as they are typed, until Ctrl-]."""
        if not sys.stdin.isatty():
            yield
            return
        saved = termios.tcgetattr(sys.stdin)
        tty.setraw(sys.stdin)
        try:
            yield
        finally:
            termios.tcsetattr(sys.stdin, termios.TCSADRAIN, saved)

    def from_user(self):
        data = os.read(sys.stdin.fileno(), 4096)
        if not data:
            self.stdin_open = False
            data = b"\x04"  # what a terminal would send: the shell ends
        before, escape, _ = data.partition(ESCAPE)
        self.socket.sendall(before)
        if escape:
            self.ended = True

    def from_node(self):
        data = self.socket.recv(65536)
        if data:
            os.write(sys.stdout.fileno(), data)
        else:
            self.ended = True


def attach(path):
    """Be the terminal of one node until Ctrl-], its end, or a second of silence after stdin's end."""
    terminal = Terminal(path)
    with terminal.raw():
        terminal.socket.sendall(b"\n")
        while not terminal.ended:
            if terminal.stdin_open:
                ready = select.select([terminal.socket, sys.stdin], [], [])[0]
            else:
                ready = select.select([terminal.socket], [], [], SILENCE)[0]
                terminal.ended = not ready
            for source in ready:
                terminal.from_user() if source is sys.stdin else terminal.from_node()
