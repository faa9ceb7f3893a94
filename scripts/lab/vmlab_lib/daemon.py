# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
"""The pvrdmad that serves the lab's adapters."""

import subprocess

from . import process
from .errors import LabError

START_SECONDS = 10


def adapter_mac(number, nth=1):
    """The MAC of the nth NIC of node `number`, and so of its adapter."""
    return f"52:54:00:{0x76 + nth:02x}:{number >> 8:02x}:{number & 255:02x}"


class Daemon:
    """A pvrdmad of our own. Its adapters: node1, node2, ... and of a node's further ones node1-2, node1-3, ...,
    which are on the fabrics in turns. `host`: its number if there are several, with `prefix` before its command
    line and `args` behind. `wires`: the setting wire= of nodes that have one. `shared`: other hosts have adapters of
    the same nodes, to which VMs can move."""

    def __init__(self, program, nodes, run_dir, logs, level, settings="", adapters=1, fabrics=1, host="", prefix=(),
                 args=(), wires=None, shared=False):
        self.program = program
        self.name = f"pvrdmad{host}"
        self.prefix, self.args = prefix, args
        self.control = run_dir / self.name
        self.sockets = {n: run_dir / (f"host{host}.adapter{n}" if shared else f"adapter{n}") for n in nodes}
        self.more = {(n, nth): run_dir / f"adapter{n}-{nth}" for n in nodes for nth in range(2, adapters + 1)}
        self.wires = wires or {}
        self.fabrics = fabrics
        self.log_path = logs / f"{self.name}.log"
        self.level = level
        self.settings = f",{settings}" if settings else ""  # of every adapter
        self.child = None

    def start(self):
        argv = [*self.prefix, self.program, "--control", self.control, "--log-level", self.level, *self.args]
        for number, path in self.sockets.items():
            argv += ["--adapter", f"name=node{number},socket={path},mac={adapter_mac(number)}"
                                  f"{f',wire={self.wires[number]}' if number in self.wires else ''}{self.settings}"]
        for (number, nth), path in self.more.items():
            fabric = (nth - 1) % self.fabrics
            argv += ["--adapter", f"name=node{number}-{nth},socket={path},mac={adapter_mac(number, nth)}"
                                  f"{f',fabric=fabric{fabric + 1}' if fabric else ''}{self.settings}"]
        with open(self.log_path, "wb") as log:
            self.child = process.spawn(argv, stdout=log, stderr=log)
        if not process.wait_for(self._settled, START_SECONDS):
            raise LabError(f"{self.name} made no sockets within {START_SECONDS} s{self._last_words()}")
        if self.failure():
            raise LabError(self.failure())

    def _settled(self):
        paths = [self.control, *self.sockets.values(), *self.more.values()]
        return self.child.poll() is not None or all(path.exists() for path in paths)

    def failure(self):
        """Why the daemon is no longer there, or None."""
        if self.child is None or self.child.poll() is None:
            return None
        return f"{self.name} ended with status {self.child.returncode}{self._last_words()}"

    @property
    def controls(self):
        return [self.control]

    def pids(self):
        return {self.name: self.child.pid}

    def _last_words(self):
        lines = self.log_path.read_text(errors="replace").strip().splitlines()
        return f": {lines[-1]}" if lines else f" and no message in {self.log_path}"

    def close(self):
        """End it. Returns what is wrong with the way it ended, or None."""
        if self.child is None:
            return None
        failure = self.failure()
        process.stop(self.child)
        status = self.child.returncode
        self.child = None
        if failure is None and status not in (0, -15):
            return f"{self.name} ended with status {status} when it was told to stop{self._last_words()}"
        return failure


def query(binaries, control, *words):
    """The output of `pvrdmactl WORDS`, or the reason why there is none."""
    argv = [str(binaries / "pvrdmactl"), "--control", str(control), *words]
    try:
        done = subprocess.run(argv, capture_output=True, text=True, timeout=10,
                              stdin=subprocess.DEVNULL)
    except (OSError, subprocess.TimeoutExpired) as err:
        return f"pvrdmactl {' '.join(words)} failed: {err}\n"
    return done.stdout if done.returncode == 0 else f"pvrdmactl {' '.join(words)} failed: {done.stderr}"
