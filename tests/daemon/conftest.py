# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
"""A pvrdmad for tests, without virtual machines. $PVRDMAD and $PVRDMACTL name other programs to test."""

import os
import select
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))

from vfio_user import Client  # noqa: E402

ROOT = Path(__file__).resolve().parents[2]
PVRDMAD = os.environ.get("PVRDMAD", str(ROOT / "build/host/pvrdmad"))
PVRDMACTL = os.environ.get("PVRDMACTL", str(Path(PVRDMAD).parent / "pvrdmactl"))
PATIENCE = 20  # seconds; a healthy daemon needs milliseconds


def wait_until(condition, what):
    """Poll until `condition()` is true."""
    end = time.monotonic() + PATIENCE
    while not condition():
        assert time.monotonic() < end, f"not within {PATIENCE} s: {what}"
        time.sleep(0.01)


def mac(number):
    return f"52:54:00:00:00:{number:02x}"


def run_pvrdmad(*args, env=None, timeout=PATIENCE):
    """Run it to its end, for command lines that it should refuse."""
    return subprocess.run([PVRDMAD, *map(str, args)], capture_output=True, text=True, timeout=timeout,
                          stdin=subprocess.DEVNULL, env={**os.environ, **(env or {})}, check=False)


class Daemon:
    """A running pvrdmad with adapters node1, node2, ..."""

    def __init__(self, folder, adapters=2, args=(), env=None, settings=""):
        self.folder = folder
        self.control = folder / "control"
        self.log_path = folder / "log"
        # $PVRDMAD_ARGS, such as "--workers 2": the same tests with other settings, by hand.
        argv = [PVRDMAD, "--control", str(self.control), *os.environ.get("PVRDMAD_ARGS", "").split(), *args]
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

    def open_files(self):
        return len(os.listdir(f"/proc/{self.child.pid}/fd"))

    def maps(self):
        return Path(f"/proc/{self.child.pid}/maps").read_text()

    def mappings(self):
        """Pieces of guest RAM, which the tests give it as memfds."""
        return self.maps().count("/memfd:")

    def stop(self, sig=signal.SIGTERM):
        if self.child.poll() is None:
            self.child.send_signal(sig)
        try:
            return self.child.wait(PATIENCE)
        except subprocess.TimeoutExpired:
            self.child.kill()
            self.child.wait()
            raise


@pytest.fixture
def start_daemon(tmp_path):
    """A function that starts a Daemon; each must end well when the test is over."""
    daemons = []

    def start(**kwargs):
        folder = tmp_path / f"d{len(daemons)}"
        folder.mkdir()
        daemons.append(Daemon(folder, **kwargs))
        return daemons[-1]

    yield start
    for daemon in daemons:
        status = daemon.stop()
        assert status == 0, f"pvrdmad ended with {status}: {daemon.log()}"


@pytest.fixture
def daemon(start_daemon):
    return start_daemon()


@pytest.fixture
def client(daemon):
    with Client(daemon.socket(1)) as made:
        made.negotiate()
        assert made.read_reg(0) == 20  # by now the daemon has put the descriptors of the negotiation away
        yield made


@pytest.fixture
def neighbour(daemon):
    """A second VM, which must be served whatever the first does. Call it to see that it is."""
    with Client(daemon.socket(2)) as made:
        made.negotiate()

        def check():
            assert made.read_reg(0) == 20
            made.write_reg(0x1C, 0)
            ready, _, _ = select.select([made.sock], [], [], 0)
            assert not ready

        check()
        yield check
        check()
