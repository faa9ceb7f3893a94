# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
"""The Ethernet segment as hosts of a cloud have it: a bridge with a tap for each VM, in a network namespace.

An adapter with a wire has a packet socket at the bridge, to which rules of tc redirect RoCE for its VM. They are those of
docs/native-endpoints.md. A segment of sockets (segment.py) passes such frames to the VM's NIC, too.
"""

from .namespace import Namespace

BRIDGE = "br0"
PORT = "4791"
# A rule's number and protocol, and what it matches in front of the port.
RULES = (("1", "ip", "ip"), ("2", "ipv6", "ip6"))


def tap(number):
    return f"vnet{number}"


class Bridge:
    """nodes: how many VMs; wired: the numbers of those whose adapters have a wire."""

    def __init__(self, nodes, wired):
        self.wired = wired
        self.space = Namespace()
        self.space.add_bridge(BRIDGE)
        for number in range(1, nodes + 1):
            self._add_tap(tap(number))
        for number in wired:
            self._redirect(tap(number))

    def _add_tap(self, name):
        self.space.run("ip", "tuntap", "add", name, "mode", "tap")
        # The host's own IPv6 would talk on the segment.
        self.space.run("ip", "link", "set", name, "addrgenmode", "none")
        self.space.run("ip", "link", "set", name, "master", BRIDGE, "up")

    def _redirect(self, name):
        self.space.run("tc", "qdisc", "replace", "dev", name, "clsact")
        for pref, protocol, match in RULES:
            self.space.run("tc", "filter", "add", "dev", name, "egress", "pref", pref, "protocol", protocol, "u32",
                           "match", match, "protocol", "17", "0xff", "match", match, "dport", PORT, "0xffff",
                           "action", "mirred", "ingress", "redirect", "dev", BRIDGE)

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
