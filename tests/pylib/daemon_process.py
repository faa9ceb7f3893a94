# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
"""pvrdmad as a child process. $PVRDMAD and $PVRDMACTL select other programs to test."""

import os
import re
import signal
import subprocess
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PVRDMAD = os.environ.get("PVRDMAD", str(ROOT / "build/host/pvrdmad"))
PVRDMACTL = os.environ.get("PVRDMACTL", str(Path(PVRDMAD).parent / "pvrdmactl"))
PATIENCE = 60  # seconds; an idle machine needs milliseconds, a busy one must not fail


def wait_until(condition, what, seconds=PATIENCE):
    """Poll until `condition()` is true."""
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, f"not within {seconds} s: {what}"
        time.sleep(0.01)


def mac(number):
    return f"52:54:00:00:00:{number:02x}"


def adapter_option(folder, number=1, **changes):
    """--adapter for node`number`; `changes` replaces settings, None removes one."""
    values = {"name": f"node{number}", "socket": folder / f"a{number}", "mac": mac(number), **changes}
    return "--adapter=" + ",".join(f"{key}={value}" for key, value in values.items() if value is not None)


def run_pvrdmad(*args, env=None, prefix=(), timeout=PATIENCE):
    """Run pvrdmad to its end, for command lines that it refuses."""
    return subprocess.run([*prefix, PVRDMAD, *map(str, args)], capture_output=True, text=True, timeout=timeout,
                          stdin=subprocess.DEVNULL, env={**os.environ, **(env or {})}, check=False)


def refuse(status, pattern, *args, **kwargs):
    """pvrdmad with these arguments ends with `status` and one line that matches `pattern`."""
    done = run_pvrdmad(*args, **kwargs)
    assert done.returncode == status, done.stderr
    assert len(done.stderr.splitlines()) == 1, done.stderr
    assert done.stderr.startswith("pvrdmad: ")
    assert re.search(pattern, done.stderr), done.stderr
    assert not done.stdout


class Daemon:
    """A running pvrdmad with adapters node1, node2, ...; `prefix`: a command that runs it, such as nsenter."""

    def __init__(self, folder, adapters=2, args=(), env=None, settings="", prefix=()):
        self.folder = folder
        self.control = folder / "control"
        self.log_path = folder / "log"
        # $PVRDMAD_ARGS, such as "--workers 2": the same tests with other settings, by hand.
        argv = [*prefix, PVRDMAD, "--control", str(self.control), *os.environ.get("PVRDMAD_ARGS", "").split(), *args]
        for number in range(1, adapters + 1):
            argv += ["--adapter", f"name=node{number},socket={self.socket(number)},mac={mac(number)}{settings}"]
        with open(self.log_path, "wb") as log:
            self.child = subprocess.Popen(argv, stdin=subprocess.DEVNULL, stdout=log, stderr=log,
                                          env={**os.environ, **(env or {})})
        self.wait_for_log("ready, ")

    def socket(self, number=1):
        return self.folder / f"adapter{number}"

    def log(self):
        return self.log_path.read_text(errors="replace")

    def wait_for_log(self, text):
        wait_until(lambda: text in self.log() or self.child.poll() is not None, f"'{text}' in the log")
        assert text in self.log(), f"pvrdmad ended: {self.log()}"

    def ctl(self, *args):
        return subprocess.run([PVRDMACTL, "--control", str(self.control), *args], capture_output=True,
                              text=True, timeout=PATIENCE, stdin=subprocess.DEVNULL, check=False)

    def descriptors(self):
        return len(os.listdir(f"/proc/{self.child.pid}/fd"))

    def _has_control_clients(self):
        rows = [row.split() for row in Path("/proc/net/unix").read_text().splitlines()]
        return any(row[5] == "03" and row[-1] == str(self.control) for row in rows)

    def open_files(self):
        """Number of its descriptors, after it has closed the connections of all pvrdmactl."""
        wait_until(lambda: not self._has_control_clients(), "no control clients")
        return self.descriptors()

    def maps(self):
        return Path(f"/proc/{self.child.pid}/maps").read_text()

    def mappings(self):
        """Number of mapped regions of guest RAM, which tests pass as memfds."""
        return self.maps().count("/memfd:")

    def resident(self):
        """Resident memory in KiB."""
        return int(re.search(r"VmRSS:\s*(\d+)", Path(f"/proc/{self.child.pid}/status").read_text())[1])

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
