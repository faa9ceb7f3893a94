# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
"""The heartbeat for the service manager: WATCHDOG=1 while all workers run."""

import ctypes
import os
import socket
import threading
import time
from contextlib import contextmanager
from pathlib import Path

import pytest

from daemon_process import wait_until
from vfio_user import attach

PTRACE_DETACH, PTRACE_SEIZE, PTRACE_INTERRUPT = 17, 0x4206, 0x4207
WALL = 0x40000000
EPOLL_PWAIT2 = "441"
LIBC = ctypes.CDLL(None, use_errno=True)
LIBC.ptrace.argtypes = [ctypes.c_long, ctypes.c_long, ctypes.c_void_p, ctypes.c_void_p]


@pytest.fixture
def manager(tmp_path):
    """A service manager's notification socket."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as made:
        made.bind(str(tmp_path / "notify"))
        made.settimeout(60)
        yield made


def environment(manager, usec):
    return {"NOTIFY_SOCKET": manager.getsockname(), "WATCHDOG_USEC": str(usec)}


def messages(manager):
    """Those that have arrived, without waiting."""
    manager.setblocking(False)
    found = []
    try:
        while True:
            found.append(manager.recv(200))
    except BlockingIOError:
        return found
    finally:
        manager.settimeout(60)


@contextmanager
def stopped(daemon, name):
    """One thread is stopped, by ptrace; others run."""
    tasks = Path(f"/proc/{daemon.child.pid}/task").iterdir()
    task, = (task for task in tasks if (task / "comm").read_text().strip() == name)
    tid = int(task.name)
    if LIBC.ptrace(PTRACE_SEIZE, tid, None, None) < 0:
        pytest.skip(f"ptrace is not permitted: {os.strerror(ctypes.get_errno())}")
    assert LIBC.ptrace(PTRACE_INTERRUPT, tid, None, None) == 0
    assert os.waitpid(tid, WALL)[0] == tid
    try:
        yield task
    finally:
        assert LIBC.ptrace(PTRACE_DETACH, tid, None, None) == 0


def test_heartbeats_of_an_idle_daemon(start_daemon, manager):
    start_daemon(args=("--workers", "2"), env=environment(manager, 90000))
    assert manager.recv(200) == b"READY=1"
    assert [manager.recv(200) for _ in range(3)] == [b"WATCHDOG=1"] * 3


def test_no_heartbeat_while_a_worker_stands_still(start_daemon, manager):
    """A worker that sleeps counts as alive: it is stopped again until it was awake, while a client keeps it busy."""
    daemon = start_daemon(adapters=1, args=("--workers", "2"), env=environment(manager, 300000))
    assert [manager.recv(200) for _ in range(2)] == [b"READY=1", b"WATCHDOG=1"]
    client, end = attach(daemon.socket(1)), threading.Event()

    def keep_busy():
        while not end.is_set():
            client.read_reg(0)

    def heartbeats_stop():
        with stopped(daemon, "pvrdmad/0") as task:
            if (task / "syscall").read_text().split()[0] == EPOLL_PWAIT2:
                return False  # asleep, most probably
            messages(manager)
            manager.settimeout(0.5)
            try:
                for _ in range(3):  # one may have been on its way
                    manager.recv(200)
                return False
            except TimeoutError:
                return "worker 0 has ended no iteration for 100 ms: no heartbeat" in daemon.log()
            finally:
                manager.settimeout(60)

    load = threading.Thread(target=keep_busy)
    load.start()
    try:
        wait_until(heartbeats_stop, "a stopped worker is not asleep")
    finally:
        end.set()
        load.join()
        client.close()
    daemon.wait_for_log("all workers run again")
    assert manager.recv(200) == b"WATCHDOG=1"


def test_heartbeats_after_a_service_manager_did_not_read(start_daemon, manager):
    daemon = start_daemon(env=environment(manager, 30000))
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as filler:
        filler.setblocking(False)
        filled = 0
        # The daemon fills what is left, and then waits in vain several times.
        while filled < 5:
            try:
                while True:
                    filler.sendto(b"FILLER=1", manager.getsockname())
            except BlockingIOError:
                filled += 1
            time.sleep(0.15)
            daemon.must("version")
    messages(manager)
    assert manager.recv(200) == b"WATCHDOG=1"


@pytest.mark.parametrize("changes", [{"WATCHDOG_USEC": "0"}, {"WATCHDOG_USEC": "-1"}, {"WATCHDOG_USEC": "1x"},
                                     {"WATCHDOG_PID": "1"}])
def test_no_heartbeat_unless_requested(start_daemon, manager, changes):
    daemon = start_daemon(env={**environment(manager, 1000), **changes})
    assert manager.recv(200) == b"READY=1"
    daemon.must("adapters")
    assert messages(manager) == []
