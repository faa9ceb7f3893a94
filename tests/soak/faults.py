# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
"""Faults of a soak run. A fault marks the runs that it may end, heals itself, and leaves all others unharmed."""

import os
import secrets
import signal
import socket
import time

from vmlab_lib.hosts import address

# Queue pairs retry for 17 s: interruptions that they must survive are shorter.
SHORT = (0.2, 3.0)
GARBAGE_CLIENTS = 20
PORT = 7471


class Faults:
    """The faults by name. `soak` has the lab and the runs of this round."""

    def __init__(self, soak, rng):
        self.soak, self.lab, self.rng = soak, soak.lab, rng
        self.table = {
            "kill-vm": self.kill_vm,
            "pause-vm": self.pause_vm,
            "kill-daemon": self.kill_daemon,
            "cut-network": self.cut_network,
            "reset-connections": self.reset_connections,
            "unplug": self.unplug,
            "link-down": self.link_down,
            "rotate-keys": self.rotate_keys,
            "kill-etcd": self.kill_etcd,
            "lose-etcd-data": self.lose_etcd_data,
            "pause-etcd": self.pause_etcd,
            "garbage-from-clients": self.garbage_from_clients,
            "garbage-from-network": self.garbage_from_network,
        }

    def inject(self):
        """One fault at random. Return: its name."""
        name = self.rng.choice(sorted(self.table))
        self.table[name]()
        return name

    def _pause(self):
        time.sleep(self.rng.uniform(*SHORT))

    def _daemon(self):
        """Any but that of the witness."""
        return self.lab.daemons[self.rng.choice(sorted(self.lab.daemons)[1:])]

    # ----------------------------------------------------------------------- virtual machines

    def kill_vm(self):
        run = self.rng.choice(self.soak.tenants)
        run.killed = True
        run.child.kill()

    def pause_vm(self):
        child = self.rng.choice(self.soak.tenants).child
        if child.poll() is None:
            os.kill(child.pid, signal.SIGSTOP)
            self._pause()
            os.kill(child.pid, signal.SIGCONT)

    # ---------------------------------------------------------------------------------- hosts

    def kill_daemon(self):
        daemon = self._daemon()
        self.soak.mark(daemon.guests)
        daemon.kill()
        self._pause()
        daemon.start()
        self.soak.invariants.restarted(daemon)

    def unplug(self):
        daemon = self._daemon()
        guest = self.rng.choice(daemon.guests)
        self.soak.mark([guest])
        daemon.must("remove-adapter", f"vm{guest}")
        self._pause()
        daemon.add_adapter(f"vm{guest}", guest, **daemon.settings)

    def link_down(self):
        daemon = self._daemon()
        guest = self.rng.choice(daemon.guests)
        daemon.must("link", f"vm{guest}", "down")
        self._pause()
        daemon.must("link", f"vm{guest}", "up")

    # -------------------------------------------------------------------------------- network

    def cut_network(self):
        number = self.rng.choice(sorted(self.lab.daemons))
        self.lab.hosts.link(number, False)
        self._pause()
        self.lab.hosts.link(number, True)

    def reset_connections(self):
        self.lab.hosts.reset(self.rng.choice(sorted(self.lab.daemons)))

    def rotate_keys(self):
        """As in docs/multi-host.md: accept the new key everywhere, then use it, then remove the old one."""
        path = self.lab.folder / "psk"
        old, new = path.read_text().split()[0], secrets.token_hex(32)
        for keys in ([old, new], [new, old], [new]):
            path.write_text("".join(f"{key}\n" for key in keys))
            for daemon in self.lab.daemons.values():
                daemon.must("reload")

    # ------------------------------------------------------------------------------ directory

    def kill_etcd(self):
        self.lab.etcd.kill()
        self._pause()
        self.lab.start_etcd()

    def lose_etcd_data(self):
        self.lab.etcd.lose_data(self.lab.hosts.enter(self.lab.etcd_host))

    def pause_etcd(self):
        self.lab.etcd.pause()
        self._pause()
        self.lab.etcd.resume()

    # -------------------------------------------------------------------------------- hostile

    def garbage_from_clients(self):
        """Bytes at the socket of a spare adapter."""
        daemon = self._daemon()
        path = str(daemon.socket(self.soak.spare(daemon)))
        for _ in range(GARBAGE_CLIENTS):
            with socket.socket(socket.AF_UNIX) as sock:
                sock.connect(path)
                _send(sock, secrets.token_bytes(self.rng.randrange(1, 4096)))

    def garbage_from_network(self):
        """Bytes at the port of a host, from another host."""
        target = address(self._daemon().number)
        code = (f"import os, socket\nfor n in range({GARBAGE_CLIENTS}):\n"
                f"    sock = socket.create_connection(({target!r}, {PORT}), 5)\n"
                "    sock.sendall(os.urandom(1 + n * 200))\n    sock.close()\n")
        self.lab.hosts.run(1, "python3", "-c", code)


def _send(sock, data):
    try:
        sock.sendall(data)
    except OSError:
        pass  # the daemon has closed the connection
