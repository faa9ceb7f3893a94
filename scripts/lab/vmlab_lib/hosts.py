# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
"""Hosts of a lab: network namespaces on a bridge of their own. Nothing outside of them is seen or changed."""

import pathlib
import subprocess

from . import process
from .errors import LabError
from .namespace import Namespace

MAX_HOSTS = 20
START_SECONDS = 5
NETEM = pathlib.Path(__file__).with_name("netem.py")


def address(number):
    return f"10.99.0.{number}"


class Hosts:
    """`count` hosts with addresses 10.99.0.1, 10.99.0.2 ..., each with one link to a common bridge, of this MTU.

    With netem=True a process takes the bridge's place: it can delay, drop and reorder frames, and is much slower."""

    def __init__(self, count, netem=False, mtu=1500):
        self.count = count
        self.mtu = mtu
        self.hub = None
        self.spaces = {}
        self.netem = netem
        self._switch = None

    def start(self):
        self.hub = Namespace()
        for number in range(1, self.count + 1):
            self.spaces[number] = Namespace(self.hub)
        if self.netem:
            self._make_netem()
        else:
            self._make_bridge()
        for number in self.spaces:
            self.run(number, "ip", "link", "set", "lo", "up")
            self.run(number, "ip", "address", "add", f"{address(number)}/24", "dev", "eth0")
            self.run(number, "ip", "link", "set", "eth0", "up")

    def _make_bridge(self):
        self.hub.add_bridge("lab")
        for number, space in self.spaces.items():
            self._ip(f"link add port{number} mtu {self.mtu} type veth peer name eth0 mtu {self.mtu} netns {space.pid}",
                     f"link set port{number} master lab up")

    def _make_netem(self):
        pids = [space.pid for space in self.spaces.values()]
        self._switch = process.spawn([*self.hub.enter(), NETEM, *pids], stdin=subprocess.PIPE,
                                     stdout=subprocess.PIPE, text=True)
        if self._switch.stdout.readline().strip() != "up":
            raise LabError("netem.py, the switch between hosts, did not start (it needs /dev/net/tun)")

    def _ip(self, *commands):
        for command in commands:
            self.hub.run("ip", *command.split())

    def enter(self, number):
        """Return: the words in front of a command that runs on host `number`."""
        return self.spaces[number].enter()

    def run(self, number, *command):
        """A short command on a host; its output."""
        return self.spaces[number].run(*command)

    def link(self, number, up):
        """Plug the host's network cable in, or out."""
        if self.netem:
            self.shape(number, loss=0.0 if up else 1.0)
        else:
            self._ip(f"link set port{number} {'up' if up else 'down'}")

    def shape(self, number, delay_ms=0.0, loss=0.0, reorder=0.0, mark=0.0):
        """Delay, drop, reorder and mark (ECN) frames that the host sends; the last three are parts of 1. Needs netem=True."""
        self._switch.stdin.write(f"{number} {delay_ms} {loss} {reorder} {mark}\n")
        self._switch.stdin.flush()

    def reset(self, number):
        """Break the host's TCP connections to the others; returns how many there were."""
        lines = self.run(number, "ss", "--no-header", "--tcp", "--kill", "dst", f"{address(0)}/24").splitlines()
        return len([line for line in lines if line.strip()])

    def close(self):
        if self._switch:
            process.stop(self._switch, grace=0)
            self._switch.stdin.close()
            self._switch.stdout.close()
            self._switch = None
        for space in self.spaces.values():
            space.close()
        self.spaces = {}
        if self.hub:
            self.hub.close()
        self.hub = None
