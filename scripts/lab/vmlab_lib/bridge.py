# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
"""The Ethernet segment as hosts of a cloud have it: a bridge with a tap for each VM, in a network namespace.

An adapter with a wire has a packet socket at the bridge, to which rules of tc redirect RoCE for its VM. They are those of
docs/native-endpoints.md. A segment of sockets (segment.py) passes such frames to the VM's NIC, too.
"""

from .namespace import Namespace

BRIDGE = "br0"


def tap(number):
    return f"vnet{number}"


def rules(name):
    """The commands that redirect RoCE for the VM at this tap to the bridge."""
    matches = (("ip", "ip"), ("ipv6", "ip6"))
    return [f"tc qdisc replace dev {name} clsact",
            *(f"tc filter add dev {name} egress pref {pref} protocol {protocol} u32 match {match} protocol 17 0xff "
              f"match {match} dport 4791 0xffff action mirred ingress redirect dev {BRIDGE}"
              for pref, (protocol, match) in enumerate(matches, 1))]


class Bridge:
    """nodes: how many VMs; wired: the numbers of those whose adapters have a wire."""

    def __init__(self, nodes, wired):
        self.wired = wired
        self.space = Namespace()
        self.space.add_bridge(BRIDGE)
        for number in range(1, nodes + 1):
            self._add_tap(tap(number))
        for number in wired:
            for rule in rules(tap(number)):
                self.space.run(*rule.split())

    def _add_tap(self, name):
        self.space.run("ip", "tuntap", "add", name, "mode", "tap")
        # The host's own IPv6 would talk on the segment.
        self.space.run("ip", "link", "set", name, "addrgenmode", "none")
        self.space.run("ip", "link", "set", name, "master", BRIDGE, "up")

    def enter(self):
        """Return: the words in front of a QEMU and a pvrdmad."""
        return self.space.enter()

    def netdev(self, number):
        """QEMU's -netdev for node `number`, as a dictionary."""
        return {"type": "tap", "id": "net", "ifname": tap(number), "script": "no", "downscript": "no"}

    def wire(self, number):
        """The adapter's setting wire=, or None."""
        return f"eth:{BRIDGE}" if number in self.wired else None

    def wire_socket(self, _number):
        """The socket of pvrdmad to which QEMU connects the segment: there is none."""

    def close(self):
        self.space.close()
