# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
"""Several hosts in network namespaces, each with a pvrdmad, and fake guests at their adapters."""

import contextlib
import itertools
import json
import secrets
import subprocess
import sys
from pathlib import Path

TESTS = Path(__file__).resolve().parents[1]
sys.dont_write_bytecode = True
sys.path[:0] = [str(TESTS / "pylib"), str(TESTS / "daemon"), str(TESTS.parent / "scripts" / "lab")]

import daemon_process  # noqa: E402
from daemon_idle import cpu_seconds  # noqa: E402
from daemon_process import PATIENCE, adapter_option, wait_until  # noqa: E402
from delay import neighbour_of  # noqa: E402
from etcd_server import EtcdServer  # noqa: E402
from keys import Authority  # noqa: E402
from vmlab_lib.hosts import Hosts, address  # noqa: E402

BINARIES = Path(daemon_process.PVRDMAD).parent
LIMIT = 600  # seconds of a run that something else ends


class Daemon(daemon_process.Daemon):
    """The pvrdmad of one host, with adapters vmN for the guests of these numbers."""

    def __init__(self, lab, number, guests, args):
        self.lab, self.number, self.guests, self.args = lab, number, guests, args
        self.name = f"host{number}"
        self.folder = lab.folder / self.name
        self.folder.mkdir()
        self.control, self.log_path = self.folder / "control", self.folder / "log"
        self.settings = {**lab.settings, **({"fabric": lab.fabrics[number]} if number in lab.fabrics else {})}
        if lab.is_wire:
            self.settings["wire"] = "eth:eth0"
        self.child = None

    def socket(self, guest):
        return self.folder / f"vm{guest}"

    def _own(self, guest):
        """On an Ethernet the adapter has the MAC of its guest, see fg_guest_config_init()."""
        return {"mac": f"52:54:00:12:34:{guest:02x}"} if self.lab.is_wire else {}

    def start(self):
        adapters = [adapter_option(self.folder, guest, name=f"vm{guest}", socket=self.socket(guest), **self._own(guest),
                                   **self.settings) for guest in self.guests]
        net = [] if self.lab.is_wire else ["--name", self.name, "--listen", address(self.number)]
        super().start([*net, *self.args, *adapters],
                      prefix=self.lab.hosts.enter(self.number))


class Run:
    """A running hosts_verify, hosts_group or hosts_bench; `prefix`: a command that runs it, such as nsenter."""

    def __init__(self, lab, program, *args, prefix=(), over=None):
        self.errors, self.over = lab.folder / f"{program}.{next(lab.numbers)}", over
        argv = [*prefix, BINARIES / "tests/hosts" / program, *args]
        with open(self.errors, "wb") as stderr:
            self.child = subprocess.Popen([str(arg) for arg in argv], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                          stderr=stderr, text=True)

    def wait_begun(self):
        wait_until(lambda: "begun" in self.error() or self.child.poll() is not None, "data have arrived")
        assert "begun" in self.error(), self.error()

    def error(self):
        return self.errors.read_text(errors="replace")

    def end(self):
        """Begin no more steps, and return the result."""
        self.over.touch()
        return self.result()

    def result(self, seconds=180):
        """Its JSON."""
        try:
            out, _ = self.child.communicate(timeout=seconds)
        except subprocess.TimeoutExpired:
            self.child.kill()
            self.child.wait()
            raise AssertionError(f"not within {seconds} s: {self.error()}") from None
        assert self.child.returncode == 0, f"status {self.child.returncode}: {out}{self.error()}"
        return json.loads(out)

    def wait(self):
        """Its exit status."""
        return self.child.wait(PATIENCE)

    def stop(self):
        if self.child.poll() is None:
            self.child.kill()
        if not self.child.stdout.closed:
            self.child.communicate()


class Lab:
    """Hosts with a guest each: guest N on host N. `pipe`: tcp, tls with a pre-shared key, or a pair of these for hosts 1
    and 2, or "other key", or "wire". `settings`: more of each adapter. With etcd=True one more host runs etcd, which is the directory of the others."""

    def __init__(self, folder, hosts=2, pipe="tcp", netem=False, args=(), guests_per_host=1, fabrics=None, etcd=False,
                 mtu=1500, settings=None):
        self.folder = folder
        self.hosts = Hosts(hosts + etcd, netem, mtu)
        self.etcd_host = hosts + 1
        self.etcd, self.etcd_options = self._new_etcd(secure=pipe != "tcp") if etcd else (None, [])
        self.fabrics = fabrics or {}
        self.is_wire = pipe == "wire"
        self.settings = settings or {}
        self.runs = []
        self.numbers = itertools.count(1)
        how = {"tcp": ["--insecure"], "tls": self._new_key("psk"), "other key": self._new_key("other"), "wire": []}
        self.daemons = {}
        for number, own in enumerate([pipe] * hosts if isinstance(pipe, str) else pipe, 1):
            peers = [word for other in range(1, hosts + 1) if other != number
                     for word in ("--peer", f"host{other}={address(other)}") if not self.is_wire]
            if etcd:
                peers = ["--etcd", self.etcd.url, "--etcd-lease", 2, *self.etcd_options]
            guests = [number + hosts * nth for nth in range(guests_per_host)]
            self.daemons[number] = Daemon(self, number, guests, [*how[own], *peers, *args])

    def _new_etcd(self, secure):
        """Hosts that have keys talk to etcd by TLS, too. Return: the server, and the options of its clients."""
        if not secure:
            return EtcdServer(self.folder, address(self.etcd_host)), []
        ca = Authority(self.folder, "etcd-ca")
        cert, key = ca.sign("etcd", names=[], extra=[f"subjectAltName=IP:{address(self.etcd_host)}"])
        args = ["--cert-file", cert, "--key-file", key]
        return EtcdServer(self.folder, address(self.etcd_host), args, scheme="https"), ["--etcd-ca", ca.cert]

    def _new_key(self, name):
        """Return: the option that names the file."""
        path = self.folder / name
        path.write_text(f"{secrets.token_hex(32)}\n")
        path.chmod(0o600)
        return ["--tls-psk-file", path]

    def start(self):
        self.hosts.start()
        self.start_daemons()

    def start_daemons(self):
        self.start_etcd()
        for daemon in self.daemons.values():
            daemon.start()

    def start_etcd(self):
        if self.etcd:
            self.etcd.start(self.hosts.enter(self.etcd_host))

    def _of(self, guest):
        return next(daemon for daemon in self.daemons.values() if guest in daemon.guests)

    def move(self, guest, number):
        """Move the guest's adapter to another host."""
        before, after = self._of(guest), self.daemons[number]
        before.must("remove-adapter", f"vm{guest}")
        before.guests.remove(guest)
        after.guests.append(guest)
        after.add_adapter(f"vm{guest}", guest, **after.settings)

    def plug(self, guest):
        """The argument of a program for a guest."""
        return f"{guest}={self._of(guest).socket(guest)}"

    def begin(self, program, one, other, *args):
        return self.begin_with(program, (one, other), *args)

    def begin_with(self, program, guests, *args, **kwargs):
        self.runs.append(Run(self, program, *args, *map(self.plug, guests), **kwargs))
        return self.runs[-1]

    def begin_alone(self, program, guest, *args):
        """With one guest, in the namespace of host 1, where all ports are free: another process has the other one."""
        return self.begin_with(program, (guest,), *args, prefix=self.hosts.enter(1))

    def begin_alone_with(self, program, args, **kwargs):
        """With these arguments only."""
        self.runs.append(Run(self, program, *args, **kwargs))
        return self.runs[-1]

    @contextlib.contextmanager
    def neighbours(self):
        """Each host has one more VM, which fails the test at the end if it was not served in time."""
        with contextlib.ExitStack() as stack:
            for daemon in self.daemons.values():
                stack.enter_context(neighbour_of(daemon, 90 + daemon.number))
            yield

    def _all_peers_are(self, state):
        return all(peer["state"] == state for daemon in self.daemons.values() if daemon.child.poll() is None
                   for peer in daemon.query("peers")["peers"])

    def sent(self):
        """Bytes that hosts have sent to each other."""
        return sum(peer["tx_bytes"] for daemon in self.daemons.values() for peer in daemon.query("peers")["peers"])

    def _used(self):
        """CPU seconds of all daemons, and bytes of completed requests, until now."""
        return (sum(cpu_seconds(daemon) for daemon in self.daemons.values()),
                sum(path["bytes"] for daemon in self.daemons.values() for path in daemon.query("paths")["paths"]))

    def cpu_per_byte(self, run):
        """CPU seconds of all daemons per byte of the requests that completed during run()."""
        before = self._used()
        run()
        seconds, moved = (after - value for after, value in zip(self._used(), before))
        return seconds / moved

    def wait_connected(self):
        wait_until(lambda: self._all_peers_are("up"), "all hosts are connected")

    def wait_idle(self):
        """No host has connections, nor dials."""
        wait_until(lambda: self._all_peers_are("idle"), "unused connections are closed")

    def verify(self, one=1, other=2, seconds=2, **options):
        """Check data between two guests, to the end."""
        return self.begin_verify(one, other, seconds, **options).result()

    def begin_verify(self, one=1, other=2, seconds=LIMIT, may_fail=False, **options):
        """Check data between two guests for `seconds`, until run.end(), or until all streams have failed."""
        over = self.folder / f"over.{next(self.numbers)}"
        args = ["--seconds", seconds, "--until", over, *(["--may-fail"] if may_fail else [])]
        for name, value in options.items():
            args += [f"--{name.replace('_', '-')}", *([] if value is True else [value])]
        return self.begin_with("hosts_verify", (one, other), *args, over=over)

    def close(self):
        for run in self.runs:
            run.stop()
        bad = {}
        for daemon in self.daemons.values():
            if daemon.child and (status := daemon.stop()):
                bad[daemon.name] = f"status {status}: {daemon.log()}"
        if self.etcd:
            self.etcd.kill()
        self.hosts.close()
        assert not bad, f"a pvrdmad ended badly: {bad}"
