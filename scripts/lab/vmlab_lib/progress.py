# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
"""Output for the user: progress on stderr, the nodes' output on stdout."""

import contextlib
import sys
import time


class Progress:
    def __init__(self, quiet=False):
        self.quiet = quiet

    def say(self, text):
        if not self.quiet:
            self._write(sys.stderr, f"vmlab: {text}\n")

    def error(self, text):
        self._write(sys.stderr, f"vmlab: error: {text}\n")

    def trace(self, node, line):
        """A line of a kernel's complaint; shown with --quiet, too."""
        self._write(sys.stderr, f"{node}! {line}\n")

    def output(self, node, line):
        """A line that a node's script wrote."""
        self._write(sys.stdout, f"{node}| {line}\n")

    @contextlib.contextmanager
    def step(self, what):
        """Announce a step that takes a while and say how long it took."""
        self.say(f"{what} ...")
        start = time.monotonic()
        yield
        self.say(f"{what}: done in {time.monotonic() - start:.1f} s")

    @staticmethod
    def _write(stream, text):
        try:
            stream.write(text)
            stream.flush()
        except BrokenPipeError:
            pass  # the reader is gone; the exit status still reports the result
