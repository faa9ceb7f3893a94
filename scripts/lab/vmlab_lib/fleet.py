# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
"""A lab of several hosts, each with a pvrdmad that serves every so-manieth node."""

import secrets

from .daemon import Daemon
from .hosts import Hosts, address

PIPES = ("tcp", "tls")


class Fleet:
    """The daemons of several hosts: host H has nodes H, H + hosts, H + 2 hosts ... If they can move, each has adapters of all."""

    def __init__(self, options, run_dir):
        self.hosts = Hosts(options.hosts)
        self.options = options
        self.run_dir = run_dir
        self.key = run_dir / "psk"
        self.daemons = []

    def _daemon(self, number):
        options = self.options
        secure = ["--tls-psk-file", self.key] if options.pipe == "tls" else ["--insecure"]
        peers = [word for other in range(1, options.hosts + 1) if other != number
                 for word in ("--peer", f"host{other}={address(other)}")]
        nodes = range(1, options.nodes + 1) if options.migratable else self.nodes_of(number)
        return Daemon(options.pvrdmad, nodes, self.run_dir, options.logs,
                      options.pvrdmad_log_level, options.adapter_settings, options.per_node, options.fabrics,
                      host=number, prefix=self.hosts.enter(number), shared=options.migratable,
                      args=["--name", f"host{number}", "--listen", address(number), *secure, *peers, *options.daemon_args])

    def nodes_of(self, host):
        """Those that boot on this host."""
        return range(host, self.options.nodes + 1, self.options.hosts)

    def socket(self, node, host):
        return self.daemons[host - 1].sockets[node]

    def start(self):
        self.key.touch(mode=0o600)
        self.key.write_text(f"{secrets.token_hex(32)}\n")
        self.hosts.start()
        for number in range(1, self.options.hosts + 1):
            self.daemons.append(self._daemon(number))
            self.daemons[-1].start()

    @property
    def sockets(self):
        found = {n: self.socket(n, host) for host in range(1, len(self.daemons) + 1) for n in self.nodes_of(host)}
        return dict(sorted(found.items()))

    @property
    def more(self):
        return {key: path for daemon in self.daemons for key, path in daemon.more.items()}

    @property
    def controls(self):
        return [daemon.control for daemon in self.daemons]

    def pids(self):
        return {daemon.name: daemon.child.pid for daemon in self.daemons}

    def failure(self):
        return next(filter(None, (daemon.failure() for daemon in self.daemons)), None)

    def close(self):
        failures = [daemon.close() for daemon in self.daemons]
        self.hosts.close()
        return next(filter(None, failures), None)
