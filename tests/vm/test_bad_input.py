# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
"""Wrong ways to start QEMU: pvrdmad reports each in one clear line. tests/daemon has the same for pvrdmad's own options."""

import json
import pathlib
import subprocess
import tempfile
import time

import pytest
from daemon_process import PVRDMAD, Daemon, wait_until
from huge_pages import free_pages, huge_pages
from steps import path_from
from vmlab_lib.process import wait_for

pytestmark = pytest.mark.skipif(not pathlib.Path(PVRDMAD).exists(), reason=f"there is no {PVRDMAD}: run `make`")


@pytest.fixture
def daemon():
    """With one adapter, node1. Its folder's path is short, as a socket's has at most 107 characters."""
    with tempfile.TemporaryDirectory(prefix="pvr-") as name:
        daemon = Daemon(pathlib.Path(name), adapters=1)
        yield daemon
        assert daemon.stop() == 0, daemon.log()


@pytest.fixture(scope="session")
def qemu():
    return path_from("fetch/qemu")


class Qemu:
    """A QEMU whose guest never starts, with the device at the daemon's socket. firmware: this starts, without a guest."""

    def __init__(self, program, daemon, memory, log="qemu", firmware=False):
        device = {"driver": "vfio-user-pci", "socket": {"type": "unix", "path": str(daemon.socket())}}
        self.output = daemon.folder / log
        with open(self.output, "wb") as file:
            self.child = subprocess.Popen(
                [program, "-accel", "tcg", "-nodefaults", "-no-user-config", "-display", "none",
                 *([] if firmware else ["-S"]), "-m", "64M", *memory, "-device", json.dumps(device)],
                stdin=subprocess.DEVNULL, stdout=file, stderr=file)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.child.kill()
        self.child.wait()


def ram_counted(daemon):
    row, = daemon.query("adapters")["adapters"]
    return row["ram_counted_bytes"]


def has_ram(daemon):
    """Whether the RAM is counted. QEMU announces it in pieces: 63.8 MiB of 64 have been seen, too."""
    return RAM - (1 << 20) < ram_counted(daemon) <= RAM


def owner(daemon):
    row, = daemon.query("adapters")["adapters"]
    return {key: row[key] for key in ("name", "state", "attached", "qemu_pid")}


RAM = 64 << 20
SHARED = ["-machine", "q35,memory-backend=mem", "-object", "memory-backend-memfd,id=mem,size=64M,share=on"]


@pytest.mark.parametrize("memory", [
    ["-machine", "q35"],
    ["-machine", "q35,memory-backend=mem", "-object", "memory-backend-ram,id=mem,size=64M"],
    ["-machine", "q35,memory-backend=mem", "-object", "memory-backend-memfd,id=mem,size=64M,share=off"],
], ids=["no memory backend", "memory-backend-ram", "share=off"])
def test_ram_that_is_not_shared(daemon, qemu, memory):
    """The log names the option that is missing, once."""
    with Qemu(qemu, daemon, memory) as guest:
        wait_for(lambda: "share=on" in daemon.log() or guest.child.poll() is not None, 5)
        time.sleep(0.5)
        log = daemon.log()
    lines = [line for line in log.splitlines() if "share=on" in line]
    assert len(lines) == 1, log + guest.output.read_text()
    assert "node1" in lines[0] and "-object memory-backend-memfd" in lines[0]


def test_shared_ram_is_fine(daemon, qemu):
    with Qemu(qemu, daemon, SHARED) as guest:
        wait_until(lambda: has_ram(daemon) or guest.child.poll() is not None, "the RAM is counted")
        assert guest.child.poll() is None, guest.output.read_text()
        assert "share=on" not in daemon.log()


@pytest.mark.parametrize("reserve", ["on", "off"])
def test_ram_in_huge_pages_is_fine(daemon, qemu, reserve):
    """QEMU announces a region at 1 MiB, inside of a page. The pages are free when QEMU has ended."""
    memory = ["-machine", "q35,memory-backend=mem", "-object",
              f"memory-backend-memfd,id=mem,size=64M,share=on,hugetlb=on,hugetlbsize=2M,reserve={reserve}"]
    with huge_pages(32):
        before = free_pages()
        with Qemu(qemu, daemon, memory, firmware=True) as guest:
            wait_until(lambda: free_pages() < before or guest.child.poll() is not None, "firmware runs")
            time.sleep(1)
            assert guest.child.poll() is None, guest.output.read_text()
            assert ram_counted(daemon) == RAM, daemon.log()
        wait_until(lambda: free_pages() == before, "the pages are free")
        log = daemon.log()
    assert "share=on" not in log and "is refused" not in log


def test_second_qemu_at_a_socket(daemon, qemu):
    """It is refused, or waits, and does not disturb the first one."""
    with Qemu(qemu, daemon, SHARED) as first:
        wait_until(lambda: has_ram(daemon) or first.child.poll() is not None, "the RAM is counted")
        before = owner(daemon)
        with Qemu(qemu, daemon, SHARED, log="second-qemu"):
            time.sleep(3)
            assert first.child.poll() is None, first.output.read_text()
        assert owner(daemon) == before and before["qemu_pid"] == first.child.pid
