# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
"""Wrong ways to start QEMU: pvrdmad reports each in one clear line. tests/daemon has the same for pvrdmad's own options."""

import json
import pathlib
import signal
import subprocess
import tempfile
import time

import pytest
from vmlab_run import ROOT

PVRDMAD = ROOT / "build" / "host" / "pvrdmad"
PVRDMACTL = ROOT / "build" / "host" / "pvrdmactl"
MAC = "52:54:00:77:01:01"

pytestmark = pytest.mark.skipif(not PVRDMAD.exists(), reason=f"there is no {PVRDMAD}: say `make`")


@pytest.fixture
def folder():
    """A short path, as a socket's has at most 107 characters."""
    with tempfile.TemporaryDirectory(prefix="pvr-") as name:
        yield pathlib.Path(name)


def wait_for(condition, seconds=20):
    end = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > end:
            return False
        time.sleep(0.05)
    return True


class Daemon:
    """A pvrdmad with one adapter, node1."""

    def __init__(self, folder):
        self.adapter, self.control = folder / "adapter", folder / "control"
        self.log_path = folder / "log"
        with open(self.log_path, "wb") as log:
            self.child = subprocess.Popen(
                [PVRDMAD, "--control", self.control, "--adapter",
                 f"name=node1,socket={self.adapter},mac={MAC}"],
                stdin=subprocess.DEVNULL, stdout=log, stderr=log)
        assert wait_for(lambda: self.adapter.exists() and self.control.exists()), self.log()

    def log(self):
        return self.log_path.read_text(errors="replace")

    def ctl(self, *words):
        return subprocess.run([PVRDMACTL, "--control", self.control, *words], timeout=20,
                              capture_output=True, text=True, check=False)

    def stop(self):
        """Its exit status."""
        self.child.send_signal(signal.SIGTERM)
        try:
            return self.child.wait(20)
        except subprocess.TimeoutExpired:
            self.child.kill()
            self.child.wait()
            raise


@pytest.fixture
def daemon(folder):
    daemon = Daemon(folder)
    yield daemon
    assert daemon.stop() == 0, daemon.log()


@pytest.fixture(scope="session")
def qemu():
    found = subprocess.run([ROOT / "scripts" / "fetch/qemu"], stdout=subprocess.PIPE, text=True,
                           check=True, stdin=subprocess.DEVNULL)
    return found.stdout.strip()


class Qemu:
    """A QEMU whose guest never starts, with the device at the daemon's socket."""

    def __init__(self, program, folder, path, memory):
        device = {"driver": "vfio-user-pci", "socket": {"type": "unix", "path": str(path)}}
        self.said = folder / "qemu"
        with open(self.said, "wb") as log:
            self.child = subprocess.Popen(
                [program, "-accel", "tcg", "-nodefaults", "-no-user-config", "-display", "none", "-S",
                 "-m", "64M", *memory, "-device", json.dumps(device)],
                stdin=subprocess.DEVNULL, stdout=log, stderr=log)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.child.kill()
        self.child.wait()


SHARED = ["-machine", "q35,memory-backend=mem", "-object", "memory-backend-memfd,id=mem,size=64M,share=on"]


@pytest.mark.parametrize("memory", [
    ["-machine", "q35"],
    ["-machine", "q35,memory-backend=mem", "-object", "memory-backend-ram,id=mem,size=64M"],
    ["-machine", "q35,memory-backend=mem", "-object", "memory-backend-memfd,id=mem,size=64M,share=off"],
], ids=["no memory backend", "memory-backend-ram", "share=off"])
def test_ram_that_is_not_shared(folder, daemon, qemu, memory):
    """The log names the option that is missing, once."""
    with Qemu(qemu, folder, daemon.adapter, memory) as guest:
        wait_for(lambda: "share=on" in daemon.log() or guest.child.poll() is not None, 5)
        time.sleep(0.5)
        log = daemon.log()
    lines = [line for line in log.splitlines() if "share=on" in line]
    assert len(lines) == 1, log + guest.said.read_text()
    assert "node1" in lines[0] and "-object memory-backend-memfd" in lines[0]


def test_shared_ram_is_fine(folder, daemon, qemu):
    with Qemu(qemu, folder, daemon.adapter, SHARED) as guest:
        time.sleep(3)
        assert guest.child.poll() is None, guest.said.read_text()
        assert "share=on" not in daemon.log()


def test_second_qemu_at_a_socket(folder, daemon, qemu):
    """It is refused, or waits, and does not disturb the first one."""
    (folder / "second").mkdir()
    with Qemu(qemu, folder, daemon.adapter, SHARED) as first:
        time.sleep(2)
        before = daemon.ctl("adapters").stdout
        with Qemu(qemu, folder / "second", daemon.adapter, SHARED):
            time.sleep(3)
            assert first.child.poll() is None, first.said.read_text()
        assert daemon.ctl("adapters").stdout.split() == before.split()
