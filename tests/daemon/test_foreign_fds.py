# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
"""Descriptors that block: the worker makes no call on them that waits, and the neighbour is served."""

import contextlib
import errno
import os
import select
import signal
import socket
import struct
from pathlib import Path

import pytest

import vfio_user as v
from daemon_process import PATIENCE, wait_until
from foreign_fds import FLUSH, FuseFile, LingeringSocket
from pipe_peer import Closed
from vfio_user import Client, Refused, attach


HAVE = sorted(os.sched_getaffinity(0))


@pytest.fixture
def daemon(start_daemon):
    return start_daemon(adapters=3, args=("--worker-cpus", f"{HAVE[0]}"))


@pytest.fixture
def fuse_file(tmp_path):
    made = FuseFile(tmp_path / "fuse")
    yield made
    made.close()


@pytest.fixture
def fuse(neighbour, fuse_file):
    """The neighbour's process begins first: it would have to close its copy of the descriptor, which blocks."""
    del neighbour
    return fuse_file


def closing_threads(daemon):
    """Their ids."""
    found = []
    for task in Path(f"/proc/{daemon.child.pid}/task").iterdir():
        with contextlib.suppress(FileNotFoundError, ProcessLookupError):
            if (task / "comm").read_text() == "pvrdmad/close\n":
                found.append(int(task.name))
    return found


def test_fuse_file_as_ram(daemon, client, fuse, neighbour):
    """It is no memory: it is not mapped, and only close() makes a request of its server, outside of the worker."""
    client.map(0, 1 << 20, [fuse.fd])
    assert client.read_reg(0) == 20
    neighbour.check()
    # No pvrdmactl here: the exec() of a child would close the file, too, and block.
    assert "/file\n" not in daemon.maps()
    wait_until(fuse.stuck, "a request of the file's server")
    assert fuse.stuck() == {FLUSH}


@pytest.mark.parametrize("kind", ["folder", "path to a file", "path to a folder"])
def test_fuse_descriptor_that_is_no_open_file(client, neighbour, tmp_path, kind):
    """The kernel answers from its own record, so the worker does not wait. Only a file can be part of a VM's RAM."""
    fuse = FuseFile(tmp_path / "fuse", kind)
    try:
        with contextlib.nullcontext() if "file" in kind else pytest.raises(Refused) as info:
            client.map(0, 1 << 20, [fuse.fd])
        assert not info or info.value.args[0] == errno.EINVAL
        neighbour.check()
        assert not fuse.stuck()
    finally:
        fuse.close()


def test_fuse_files_without_end(daemon, client, fuse, neighbour):
    """Descriptors that cannot be closed are bounded. No VM attaches to this adapter until they are closed."""
    files = daemon.open_files()
    with pytest.raises((Closed, OSError)):
        for _ in range(1000):
            with contextlib.suppress(Refused):
                client.map(0, 1 << 20, [fuse.fd] * 16)
    daemon.wait_for_log("is disconnected: its descriptors cannot be closed")
    assert daemon.open_files() < files + 400
    neighbour.check()
    with Client(daemon.socket()):
        daemon.wait_for_log("cannot accept a QEMU: descriptors of an earlier one cannot be closed")
        neighbour.check()


def test_fuse_file_as_interrupt(client, fuse, neighbour):
    with pytest.raises(Refused) as info:
        client.set_irqs(v.MSIX, 0, 1, [fuse.fd])
    assert info.value.args[0] == errno.EINVAL
    neighbour.check()


@pytest.mark.usefixtures("neighbour")
def test_other_vms_have_their_descriptors_closed(daemon, client, fuse):
    client.map(0, 1 << 20, [fuse.fd])
    wait_until(fuse.stuck, "a request of the file's server")
    mine, sent = socket.socketpair()
    with mine, attach(daemon.socket(3)) as other:
        with sent, pytest.raises(Refused):
            other.map(0, 1 << 20, [sent.fileno()])
        mine.settimeout(PATIENCE)
        assert mine.recv(1) == b""


def test_lingering_socket_as_ram(daemon, client, neighbour):
    """The socket's last descriptor is the one in the message: the daemon does not run until the others are closed."""
    lingering = LingeringSocket()
    try:
        daemon.child.send_signal(signal.SIGSTOP)
        client.send_raw(client.message(v.DMA_MAP, struct.pack("<IIQQQ", 32, 3, 0, 0, 1 << 20)), [lingering.fd])
        lingering.drop()
        daemon.child.send_signal(signal.SIGCONT)
        with pytest.raises(Refused):
            client.reply()
        neighbour.check()
        assert closing_threads(daemon)
    finally:
        lingering.release()
    wait_until(lambda: not closing_threads(daemon), "the end of the close()")


@pytest.mark.usefixtures("neighbour")
def test_closing_thread_has_the_cpus_of_the_process(daemon, client, fuse):
    client.map(0, 1 << 20, [fuse.fd])
    wait_until(fuse.stuck, "a request of the file's server")
    closing, = closing_threads(daemon)
    assert os.sched_getaffinity(closing) == set(HAVE)


def test_daemon_ends_its_adapters(daemon, client, fuse_file):
    """The process remains until the server responds or ends: the kernel waits for it."""
    client.map(0, 1 << 20, [fuse_file.fd])
    wait_until(fuse_file.stuck, "a request of the file's server")
    daemon.child.send_signal(signal.SIGTERM)
    wait_until(lambda: not daemon.socket().exists(), "no socket of the adapter")
    assert client.ends()


# ------------------------------------------------------- memory that waits to be unmapped


def block_closing(client, fuse):
    """The thread that closes and unmaps for this VM waits for the file's server."""
    client.map(0, 1 << 20, [fuse.fd])
    wait_until(fuse.stuck, "a request of the file's server")


def release_closing(fuse):
    os.kill(fuse.server, signal.SIGKILL)


def map_and_unmap(client, size, times):
    fd = v.memfd(size)
    for _ in range(times):
        client.map(1 << 30, size, [fd])
        client.unmap(1 << 30, size)
    return client.message(v.DMA_MAP, struct.pack("<IIQQQ", 32, 3, 0, 1 << 30, size)), fd


def waits(client, neighbour):
    """The neighbour is of the same worker."""
    for _ in range(3):
        neighbour.check()
    return not select.select([client.sock], [], [], 0)[0]


@pytest.mark.parametrize("size, times", [(4096, 64), (12 << 20, 3)], ids=["mappings", "bytes"])
def test_no_more_memory_while_much_is_to_be_unmapped(request, daemon, neighbour, size, times):
    path = daemon.add_adapter("small", 7, memory="16M")
    fuse = request.getfixturevalue("fuse")  # after the last exec(), see above
    with attach(path) as client:
        block_closing(client, fuse)
        before = daemon.mappings()
        message, fd = map_and_unmap(client, size, times)
        client.send_raw(message, [fd])
        assert waits(client, neighbour)
        assert daemon.mappings() <= before + times
        release_closing(fuse)
        assert client.reply()[1] == v.DMA_MAP
        assert client.read_reg(0) == 20


def test_next_vm_waits_until_memory_is_unmapped(daemon, client, neighbour, fuse):
    block_closing(client, fuse)
    map_and_unmap(client, 4096, 64)
    client.close()
    with Client(daemon.socket()) as other:
        daemon.wait_for_log("cannot accept a QEMU: memory of an earlier one is not unmapped yet")
        neighbour.check()
        release_closing(fuse)
        other.negotiate()
