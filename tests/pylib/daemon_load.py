# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
"""Traffic between guests of two daemons that checks every byte: tests/hosts/verify.c."""

import subprocess
from pathlib import Path

from daemon_net import state_of
from daemon_process import PATIENCE, PVRDMAD, wait_until


class Load:
    """Guests at node1 of both daemons; they send until end(). `progress`: return when they do."""

    def __init__(self, one, two, progress=True):
        self.daemons, self.over = (one, two), one.folder / "over"
        self.over.unlink(missing_ok=True)
        program = Path(PVRDMAD).parent / "tests/hosts/hosts_verify"
        argv = [program, "--seconds", "600", "--until", self.over, f"1={one.socket(1)}", f"2={two.socket(1)}"]
        self.child = subprocess.Popen(argv, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                      stderr=subprocess.STDOUT, text=True)
        if progress:
            self.wait_for_progress()

    def sent(self):
        return sum(row["tx_bytes"] for daemon in self.daemons for row in state_of(daemon)["peers"])

    def wait_for_progress(self):
        before = self.sent()
        wait_until(lambda: self.sent() > before + (1 << 20) or self.child.poll() is not None, "guests send")
        assert self.child.poll() is None, self.child.communicate()[0]

    def end(self):
        """Steps that have begun complete, and no check has failed."""
        self.over.touch()
        output = self.child.communicate(timeout=2 * PATIENCE)[0]
        assert self.child.returncode == 0, output + "".join(daemon.log() for daemon in self.daemons)

    def kill(self):
        self.child.kill()
        self.child.communicate()
