# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
"""pvrdmad as a child process. $PVRDMAD and $PVRDMACTL select other programs to test."""

import contextlib
import json
import os
import re
import signal
import socket as sockets
import subprocess
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PVRDMAD = os.environ.get("PVRDMAD", str(ROOT / "build/host/pvrdmad"))
PVRDMACTL = os.environ.get("PVRDMACTL", str(Path(PVRDMAD).parent / "pvrdmactl"))
# The search for leaks at the end takes two thirds of the time of a pvrdmactl, whose memory ends with it.
CTL_ENV = {**os.environ, "ASAN_OPTIONS": os.environ.get("ASAN_OPTIONS", "") + ":detect_leaks=0"}
PATIENCE = 60  # seconds; an idle machine needs milliseconds, a busy one must not fail


def wait_until(condition, what, seconds=PATIENCE):
    """Poll until `condition()` is true."""
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, f"not within {seconds} s: {what}"
        time.sleep(0.01)


def mac(number):
    return f"52:54:00:00:00:{number:02x}"


def adapter_option(folder, number=1, socket=None, **changes):
    """--adapter for node`number`, whose socket is in `folder`; `changes` replaces settings."""
    values = {"name": f"node{number}", "socket": folder / (socket or f"a{number}"), "mac": mac(number), **changes}
    return "--adapter=" + ",".join(f"{key}={value}" for key, value in values.items())


def run_pvrdmad(*args, env=None, prefix=()):
    """Run pvrdmad to its end, for command lines that it refuses."""
    return subprocess.run([*prefix, PVRDMAD, *map(str, args)], capture_output=True, text=True, timeout=PATIENCE,
                          stdin=subprocess.DEVNULL, env={**os.environ, **(env or {})}, check=False)


@contextlib.contextmanager
def stopped(daemon):
    """All that is sent meanwhile is queued when the daemon continues."""
    daemon.child.send_signal(signal.SIGSTOP)
    try:
        yield
    finally:
        daemon.child.send_signal(signal.SIGCONT)


class Successor:
    """The process that has replaced a child of this one: as a Popen, but it is not our child."""

    def __init__(self, pid):
        self.pid, self.returncode = pid, None

    def poll(self):
        """Its status is not known: 0 when it has ended."""
        if self.returncode is None:
            try:
                state = Path(f"/proc/{self.pid}/stat").read_text().rpartition(")")[2].split()[0]
            except (FileNotFoundError, ProcessLookupError):
                state = "X"
            self.returncode = 0 if state in "XZ" else None
        return self.returncode

    def wait(self, timeout=PATIENCE):
        end = time.monotonic() + timeout
        while self.poll() is None:
            if time.monotonic() > end:
                raise subprocess.TimeoutExpired("pvrdmad", timeout)
            time.sleep(0.01)
        return self.returncode

    def send_signal(self, sig):
        with contextlib.suppress(ProcessLookupError):
            os.kill(self.pid, sig)

    def kill(self):
        self.send_signal(signal.SIGKILL)


class Daemon:
    """A running pvrdmad with adapters node1, node2, ...; `prefix`: a command that runs it, such as nsenter."""

    def __init__(self, folder, adapters=2, args=(), env=None, settings="", prefix=()):
        self.folder, self.control, self.log_path = folder, folder / "control", folder / "log"
        named = [f"--adapter=name=node{number},socket={self.socket(number)},mac={mac(number)}{settings}"
                 for number in range(1, adapters + 1)]
        self.start([*args, *named], env, prefix)

    def start(self, args, env=None, prefix=(), pass_fds=()):
        self.started_with = args, env
        # $PVRDMAD_ARGS, such as "--workers 2": the same tests with other settings, by hand.
        argv = [*prefix, PVRDMAD, *os.environ.get("PVRDMAD_ARGS", "").split(), *args]
        if not any(str(arg).startswith("--control") for arg in args):
            argv += ["--control", self.control]
        with open(self.log_path, "ab") as log:
            begin = log.tell()
            self.child = subprocess.Popen([str(arg) for arg in argv], stdin=subprocess.DEVNULL, stdout=log, stderr=log,
                                          env={**os.environ, **(env or {})}, pass_fds=pass_fds)
        self.wait_for_log("ready, ", begin)

    def start_again(self, **kwargs):
        """After its end, with the same arguments."""
        self.start(*self.started_with, **kwargs)

    def socket(self, number=1):
        return self.folder / f"adapter{number}"

    def _written_log(self):
        return self.log_path.read_text(errors="replace")

    def _flush_log(self):
        """A control reply follows the lines of earlier events. The log of a daemon that has ended is complete."""
        with sockets.socket(sockets.AF_UNIX) as sock, contextlib.suppress(OSError):
            sock.settimeout(PATIENCE)
            sock.connect(str(self.control))
            sock.sendall(b'{"command":"version"}\n')
            sock.recv(4096)

    def log(self):
        """All lines of events so far."""
        if self.child and self.child.poll() is None:
            self._flush_log()
        return self._written_log()

    def wait_for_log(self, text, begin=0):
        wait_until(lambda: text in self._written_log()[begin:] or self.child.poll() is not None, f"'{text}' in the log")
        assert text in self._written_log()[begin:], f"pvrdmad ended: {self._written_log()}"

    def ctl(self, *args):
        return subprocess.run([PVRDMACTL, "--control", str(self.control), *args], capture_output=True, env=CTL_ENV,
                              text=True, timeout=PATIENCE, stdin=subprocess.DEVNULL, check=False)

    def must(self, *args):
        """The output of a pvrdmactl that succeeds."""
        done = self.ctl(*args)
        assert done.returncode == 0, done.stderr
        return done.stdout

    def query(self, *args):
        """The JSON output of a pvrdmactl that succeeds."""
        return json.loads(self.must("--json", *args))

    def table(self, *args):
        """The rows of pvrdmactl's output, as dictionaries."""
        heads, *rows = (line.split() for line in self.must(*args).splitlines())
        return [dict(zip(heads, row)) for row in rows]

    def upgrade(self):
        """The installed pvrdmad replaces the running one. Return: the reply."""
        reply = self.query("upgrade")
        assert self.child.wait(PATIENCE) == 0, self._written_log()
        self.child = Successor(reply["pid"])
        assert "Sanitizer" not in self._written_log(), self._written_log()
        return reply

    def counters(self, adapter="node1"):
        """Numbers of pvrdmactl stats."""
        row, = self.query("stats", adapter)["adapters"]
        return row

    def add_adapter(self, name, number, **settings):
        """With the MAC of `number`. Return: the path of its socket."""
        values = {"name": name, "socket": self.folder / name, "mac": mac(number), **settings}
        self.must("add-adapter", ",".join(f"{key}={value}" for key, value in values.items()))
        return values["socket"]

    def descriptors(self):
        return len(os.listdir(f"/proc/{self.child.pid}/fd"))

    def _has_control_clients(self):
        rows = [row.split() for row in Path("/proc/net/unix").read_text().splitlines()]
        return any(row[5] == "03" and row[-1] == str(self.control) for row in rows)

    def open_files(self):
        """Number of its descriptors, after it has closed the connections of all pvrdmactl."""
        wait_until(lambda: not self._has_control_clients(), "no control clients")
        return self.descriptors()

    def wait_for_files(self, count):
        wait_until(lambda: self.open_files() == count, f"{count} descriptors are open")

    def maps(self):
        return Path(f"/proc/{self.child.pid}/maps").read_text()

    def mappings(self):
        """Number of mapped regions of guest RAM, which tests pass as memfds."""
        return self.maps().count("/memfd:")

    def resident(self):
        """Resident memory in KiB."""
        return int(re.search(r"VmRSS:\s*(\d+)", Path(f"/proc/{self.child.pid}/status").read_text())[1])

    def kill(self):
        """SIGKILL. A later stop() returns 0."""
        self.child.kill()
        self.child.wait()
        self.child.returncode = 0

    def stop(self, sig=signal.SIGTERM):
        """Exit status after `sig`."""
        if self.child.poll() is None:
            self.child.send_signal(sig)
        try:
            return self.child.wait(PATIENCE)
        except subprocess.TimeoutExpired:
            self.child.kill()
            self.child.wait()
            raise
