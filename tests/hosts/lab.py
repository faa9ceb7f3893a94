# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
"""Several hosts in network namespaces, each with a pvrdmad, and fake guests at their adapters."""

import json
import os
import secrets
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.dont_write_bytecode = True
sys.path.insert(0, str(ROOT / "scripts" / "lab"))

from vmlab_lib.hosts import Hosts, address  # noqa: E402

PVRDMAD = Path(os.environ.get("PVRDMAD", ROOT / "build/host/pvrdmad"))
BINARIES = PVRDMAD.parent
PATIENCE = 60  # seconds; an idle machine needs much less, a busy one must not fail
LIMIT = 600  # seconds of a run that something else ends


def wait_until(condition, what, seconds=PATIENCE):
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, f"not within {seconds} s: {what}"
        time.sleep(0.02)


def mac(number):
    return f"52:54:00:12:34:{number:02x}"


class Daemon:
    """The pvrdmad of one host, with adapters vmN for the guests of these numbers."""

    def __init__(self, lab, number, guests, args):
        self.lab, self.number, self.guests, self.args = lab, number, guests, args
        self.name = f"host{number}"
        self.folder = lab.folder / self.name
        self.folder.mkdir()
        self.control = self.folder / "control"
        self.log_path = self.folder / "log"
        fabric = lab.fabrics.get(number)
        self.fabric = f",fabric={fabric}" if fabric else ""
        self.child = None

    def socket(self, guest):
        return self.folder / f"vm{guest}"

    def start(self):
        argv = [*self.lab.hosts.enter(self.number), PVRDMAD, "--name", self.name, "--control", self.control,
                "--listen", address(self.number), *self.args]
        for guest in self.guests:
            argv += ["--adapter", f"name=vm{guest},socket={self.socket(guest)},mac={mac(guest)}{self.fabric}"]
        seen = len(self.log())
        with open(self.log_path, "ab") as log:
            self.child = subprocess.Popen([str(arg) for arg in argv], stdin=subprocess.DEVNULL, stdout=log, stderr=log)
        wait_until(lambda: "ready, " in self.log()[seen:] or self.child.poll() is not None, f"{self.name} is ready")
        assert self.child.poll() is None, f"{self.name}'s pvrdmad ended: {self.log()}"

    def log(self):
        return self.log_path.read_text(errors="replace") if self.log_path.exists() else ""

    def ctl(self, *args):
        done = subprocess.run([BINARIES / "pvrdmactl", "--control", self.control, *args, "--json"],
                              capture_output=True, text=True, timeout=PATIENCE, stdin=subprocess.DEVNULL, check=False)
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)

    def kill(self):
        self.child.kill()
        self.child.wait()
        self.child = None

    def stop(self):
        """Send SIGTERM. Return: the exit status."""
        if self.child is None:
            return 0
        self.child.send_signal(signal.SIGTERM)
        try:
            return self.child.wait(PATIENCE)
        except subprocess.TimeoutExpired:
            self.child.kill()
            return self.child.wait()


class Etcd:
    """The directory of a lab, on a host of its own, whose data outlive the process."""

    PORT = 2379

    def __init__(self, lab, number):
        assert shutil.which("etcd"), "etcd is missing: run scripts/deps"
        self.lab, self.number = lab, number
        self.url = f"http://{address(number)}:{self.PORT}"
        self.log_path = lab.folder / "etcd.log"
        self.child = None

    def start(self):
        peer = f"http://{address(self.number)}:{self.PORT + 1}"
        argv = [*self.lab.hosts.enter(self.number), "etcd", "--data-dir", self.lab.folder / "etcd", "--unsafe-no-fsync",
                "--listen-client-urls", self.url, "--advertise-client-urls", self.url, "--listen-peer-urls", peer,
                "--initial-advertise-peer-urls", peer, "--initial-cluster", f"default={peer}"]
        with open(self.log_path, "ab") as log:
            begin = log.tell()
            self.child = subprocess.Popen([str(arg) for arg in argv], stdin=subprocess.DEVNULL, stdout=log, stderr=log)
        wait_until(lambda: b"ready to serve client requests" in self.log_path.read_bytes()[begin:]
                   or self.child.poll() is not None, "etcd is ready")
        assert self.child.poll() is None, self.log_path.read_text()[-2000:]

    def kill(self):
        if self.child:
            self.child.kill()
            self.child.wait()
        self.child = None


class Run:
    """A running hosts_verify, hosts_group or hosts_bench; `prefix`: a command that runs it, such as nsenter."""

    def __init__(self, lab, program, *args, prefix=(), over=None):
        self.errors, self.over = lab.folder / f"{program}.{lab.count()}", over
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

    def result(self, seconds=180, status=0):
        """Its JSON."""
        try:
            out, _ = self.child.communicate(timeout=seconds)
        except subprocess.TimeoutExpired:
            self.child.kill()
            self.child.wait()
            raise AssertionError(f"not within {seconds} s: {self.error()}") from None
        assert self.child.returncode == status, f"status {self.child.returncode}: {out}{self.error()}"
        return json.loads(out)

    def wait(self):
        """Its exit status."""
        return self.child.wait(PATIENCE)

    def stop(self):
        if self.child.poll() is None:
            self.child.kill()
        self.child.communicate()


class Lab:
    """Hosts with a guest each: guest N on host N. `pipe`: tcp, or tls with a pre-shared key. With etcd=True one more
    host runs etcd, which is the directory of the others."""

    def __init__(self, folder, hosts=2, pipe="tcp", netem=False, args=(), guests_per_host=1, fabrics=None, etcd=False):
        self.folder = folder
        self.hosts = Hosts(hosts + etcd, netem)
        self.etcd = Etcd(self, hosts + 1) if etcd else None
        self.fabrics = fabrics or {}
        self.runs = []
        self.counter = 0
        self.key = folder / "psk"
        self.key.write_text(f"{secrets.token_hex(32)}\n")
        self.key.chmod(0o600)
        how = ["--insecure"] if pipe == "tcp" else ["--tls-psk-file", self.key]
        self.daemons = {}
        for number in range(1, hosts + 1):
            peers = [word for other in range(1, hosts + 1) if other != number
                     for word in ("--peer", f"host{other}={address(other)}")]
            if etcd:
                peers = ["--etcd", self.etcd.url, "--etcd-lease", 2]
            guests = [number + hosts * nth for nth in range(guests_per_host)]
            self.daemons[number] = Daemon(self, number, guests, [*how, *peers, *args])

    def count(self):
        self.counter += 1
        return self.counter

    def start(self):
        self.hosts.start()
        if self.etcd:
            self.etcd.start()
        for daemon in self.daemons.values():
            daemon.start()

    def _of(self, guest):
        return next(daemon for daemon in self.daemons.values() if guest in daemon.guests)

    def move(self, guest, number):
        """Move the guest's adapter to another host."""
        before, after = self._of(guest), self.daemons[number]
        before.ctl("remove-adapter", f"vm{guest}")
        before.guests.remove(guest)
        after.guests.append(guest)
        after.ctl("add-adapter", f"name=vm{guest},socket={after.socket(guest)},mac={mac(guest)}{after.fabric}")

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

    def _all_peers_are(self, state):
        return all(peer["state"] == state for daemon in self.daemons.values() if daemon.child
                   for peer in daemon.ctl("peers")["peers"])

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
        over = self.folder / f"over.{self.count()}"
        args = ["--seconds", seconds, "--until", over, *(["--may-fail"] if may_fail else [])]
        for name, value in options.items():
            args += [f"--{name.replace('_', '-')}", *([] if value is True else [value])]
        return self.begin_with("hosts_verify", (one, other), *args, over=over)

    def close(self):
        for run in self.runs:
            run.stop()
        bad = {}
        for daemon in self.daemons.values():
            status = daemon.stop()
            if status:
                bad[daemon.name] = f"status {status}: {daemon.log()}"
        if self.etcd:
            self.etcd.kill()
        self.hosts.close()
        assert not bad, f"a pvrdmad ended badly: {bad}"
