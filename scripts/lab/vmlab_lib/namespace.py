# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
"""A network namespace, in which a lab has links of its own. Nothing outside of it is seen or changed."""

import os
import subprocess

from . import process
from .errors import LabError


class Namespace:
    """It lives as long as a process of ours, which ends with this one. Within: another one, whose user namespace this one is in."""

    def __init__(self, within=None):
        # Root needs no user namespace, in which it would not be allowed to look at other processes.
        self._user = os.geteuid() != 0
        own = ["--user", "--map-root-user"] if self._user and not within else []
        prefix = within.enter() if within else []
        self.holder = process.spawn([*prefix, "unshare", *own, "--net", "sh", "-c", "echo up; exec cat"],
                                    stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        if self.holder.stdout.readline().strip() != "up":
            why = self.holder.stderr.read().strip()
            raise LabError(f"no network namespace could be made: {why}" +
                           (" (as another user than root this needs user namespaces)" if self._user else ""))

    @property
    def pid(self):
        """Of a process in it."""
        return self.holder.pid

    def enter(self):
        """Return: the words in front of a command that runs in the namespace."""
        own = ["--user", "--preserve-credentials"] if self._user else []
        return ["nsenter", "--target", str(self.pid), *own, "--net", "--"]

    def run(self, *command):
        """A short command; its output."""
        argv = [*self.enter(), *command]
        done = subprocess.run(argv, capture_output=True, text=True, stdin=subprocess.DEVNULL, check=False)
        if done.returncode != 0:
            raise LabError(f"{' '.join(argv)}: {done.stderr.strip() or f'status {done.returncode}'}")
        return done.stdout

    def add_bridge(self, name):
        self.run("ip", "link", "add", name, "type", "bridge", "forward_delay", "0")
        self.run("ip", "link", "set", name, "up")
        # A kernel with br_netfilter, which Docker loads, gives each frame on a bridge to iptables, too.
        settings = "/proc/sys/net/bridge/bridge-nf-call-*tables"
        self.run("sh", "-c", f'for file in {settings}; do [ ! -w "$file" ] || echo 0 >"$file"; done')

    def close(self):
        process.stop(self.holder, grace=0)
        for stream in (self.holder.stdin, self.holder.stdout, self.holder.stderr):
            stream.close()
