# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
"""Upgrade of a running daemon under a service manager, which keeps a copy of the hand-over until the VMs are served."""

import contextlib
import fcntl
import os
import select
import signal
import socket

import pytest

from daemon_process import PATIENCE, wait_until
from guest import Guest
from upgrading import GOES_ON, Forged, Traffic, install, install_script, wait_for_messages
from vfio_user import attach

KNOWS = "send(type='hello', handover=1, pid=os.getpid(), version='forged', store=True)\n"
READY = KNOWS + "receive('create')\nsend(type='ready')\n"


class Manager:
    """A service manager with a descriptor store, as systemd's."""

    def __init__(self, folder):
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.socket.bind(str(folder / "notify"))
        self.store, self.states, self.ever = [], [], []

    @property
    def env(self):
        return {"NOTIFY_SOCKET": self.socket.getsockname()}

    def read(self):
        """All messages so far."""
        while select.select([self.socket], [], [], 0)[0]:
            data, fds, _, _ = socket.recv_fds(self.socket, 4096, 16)
            lines = data.decode().splitlines()
            self.states += lines
            if "FDSTORE=1" in lines:
                assert "FDNAME=handover" in lines and "FDPOLL=0" in lines and len(fds) == 2
                self.store += fds
                self.ever.append([os.dup(fd) for fd in fds])
            elif "FDSTOREREMOVE=1" in lines:
                self._clear()

    def main_pid(self):
        pids = [line.partition("=")[2] for line in self.states if line.startswith("MAINPID=")]
        return int(pids[-1])

    def start_again(self, daemon, fds=None, names=None):
        """With the descriptors of the store, as sd_listen_fds(3) describes it."""
        self.read()
        fds = self.store if fds is None else fds
        names = ":".join(names or ["handover"] * len(fds))
        high = [fcntl.fcntl(fd, fcntl.F_DUPFD, 100) for fd in fds]
        moves = " ".join(f"{number}<&{fd} {fd}<&-" for number, fd in enumerate(high, 3))
        script = f'exec {moves}; export LISTEN_PID=$$ LISTEN_FDS={len(fds)} LISTEN_FDNAMES={names}; exec "$@"'
        daemon.start_again(prefix=["bash", "-c", script, "bash"], pass_fds=high)
        for fd in high:
            os.close(fd)

    def _clear(self):
        while self.store:
            os.close(self.store.pop())

    def close(self):
        self._clear()
        for pair in self.ever:
            for fd in pair:
                os.close(fd)
        self.socket.close()


@pytest.fixture
def manager(tmp_path):
    made = Manager(tmp_path)
    yield made
    made.close()


@pytest.fixture
def daemon(program, start_daemon, manager):
    return start_daemon(env=manager.env)


@pytest.fixture
def traffic(daemon, tmp_path):
    made = Traffic(daemon, over=tmp_path / "over")
    yield made
    made.kill()


@pytest.fixture
def good(program, tmp_path):
    install(tmp_path / "good", program)
    return tmp_path / "good"


def die_in_upgrade(daemon, program, good, body):
    """The running process ends in an upgrade to a program that does `body`. Return: its status."""
    install_script(program, body)
    daemon.ctl("upgrade")
    status = daemon.child.wait(PATIENCE)
    daemon.child.returncode = 0
    install(program, good)
    return status


def kill(daemon):
    return f"os.kill({daemon.child.pid}, {int(signal.SIGKILL)})"


def test_service_manager_learns_of_the_new_process(daemon, manager):
    pid = daemon.upgrade()["pid"]
    wait_until(lambda: manager.read() or manager.states.count("READY=1") == 2, "both processes are ready")
    assert manager.main_pid() == pid
    assert not manager.store and manager.states.count("FDSTORE=1") == 1
    # The old process has named the new one before that one, whose messages count then, has sent any.
    assert manager.states.index(f"MAINPID={pid}") < len(manager.states) - 1 - manager.states[::-1].index("FDSTOREREMOVE=1")


def test_each_new_process_sends_a_heartbeat_at_once(program, start_daemon, manager):
    """It may be replaced before its first interval is over, and the service manager counts from the last heartbeat."""
    daemon = start_daemon(env={**manager.env, "WATCHDOG_USEC": str(600 * 1000000)})
    for number in range(1, 4):
        wait_until(lambda: manager.read() or manager.states.count("WATCHDOG=1") == number, "a heartbeat")
        daemon.upgrade()
    assert manager.states.count("WATCHDOG=1") <= 4


def test_vms_outlive_the_process_that_hands_them_over(daemon, manager, program, good, traffic):
    for _ in range(3):
        wait_for_messages(daemon)
        die_in_upgrade(daemon, program, good, READY + "receive('load')\n" + kill(daemon))
        manager.start_again(daemon)
        assert "the earlier pvrdmad was killed in an upgrade; its VMs are served" in daemon.log()
        wait_for_messages(daemon)
        daemon.upgrade()
    wait_for_messages(daemon)
    assert traffic.end() > 100


def test_vms_outlive_a_new_process_that_dies_before_it_serves(daemon, manager, program, good, traffic):
    """The service manager knows it as the service's process already, and so the earlier one ends, too."""
    wait_for_messages(daemon)
    body = READY + "receive('load')\nchannel.shutdown(socket.SHUT_RD)\nsend(type='loaded')"
    assert die_in_upgrade(daemon, program, good, body) == 1
    manager.start_again(daemon)
    wait_for_messages(daemon)
    assert traffic.end() > 100


def test_settings_and_sockets_outlive_it(daemon, manager, program, good):
    daemon.add_adapter("more", 7, fabric="blue", rate="1Gbit")
    daemon.must("link", "node2", "down")
    before = daemon.query("adapters"), daemon.query("qos")
    die_in_upgrade(daemon, program, good, READY + "receive('load')\n" + kill(daemon))
    late = socket.socket(socket.AF_UNIX)
    late.connect(str(daemon.control))  # to the backlog of a socket that the store alone has
    manager.start_again(daemon)
    assert (daemon.query("adapters"), daemon.query("qos")) == before
    late.sendall(b'{"command": "version"}\n')
    assert b"version" in late.recv(4096)
    late.close()
    with attach(daemon.folder / "more") as client:
        Guest(client).start()


def test_descriptors_do_not_add_up(daemon, manager, program, good):
    with attach(daemon.socket()) as client:
        Guest(client).start()
        daemon.upgrade()
        client.read_reg(0)
        count = daemon.open_files()
        die_in_upgrade(daemon, program, good, READY + "receive('load')\n" + kill(daemon))
        manager.start_again(daemon)
        assert client.read_reg(0) == 20
        daemon.wait_for_files(count)


def test_incomplete_copy_is_not_used(daemon, manager, program, good):
    with attach(daemon.socket()) as client:
        Guest(client).start()
        die_in_upgrade(daemon, program, good, KNOWS + "receive('create')\n" + kill(daemon))
    manager.start_again(daemon)
    manager.read()
    assert not manager.store and "was killed in an upgrade" not in daemon.log()
    with attach(daemon.socket()) as client:
        Guest(client).start()


@pytest.mark.parametrize("end", ["upgrade", "failure"])
def test_copy_is_not_used_after_vms_run_again(daemon, manager, program, good, end):
    """Even if the service manager has not heard that it is to be removed."""
    with attach(daemon.socket()) as client:
        Guest(client).start()
        if end == "failure":
            install_script(program, READY + "receive('load')")
            assert GOES_ON in daemon.ctl("upgrade").stderr
            install(program, good)
        else:
            daemon.upgrade()
        assert client.read_reg(0) == 20
    manager.read()
    (file, queue), = manager.ever
    assert os.fstat(file).st_size == 0
    daemon.kill()
    manager.start_again(daemon, [queue, file])
    assert "was killed in an upgrade" not in daemon.log()
    with attach(daemon.socket()) as client:
        Guest(client).start()


def test_copy_is_used_once(daemon, manager, program, good):
    """A process that fails with it does not make the next one fail."""
    with attach(daemon.socket()) as client:
        Guest(client).start()
        die_in_upgrade(daemon, program, good, READY + "receive('load')\n" + kill(daemon))
        manager.read()
        (file, queue), = manager.ever
        manager.start_again(daemon)
        assert client.read_reg(0) == 20
    daemon.kill()
    manager.start_again(daemon, [file, queue])
    with attach(daemon.socket()) as client:
        Guest(client).start()


def test_new_process_leaves_the_vms_to_the_service_manager(tmp_path):
    """The running one has died after it has passed all VMs. The service manager ends the new one in any case."""
    forged = Forged(tmp_path)
    file = os.memfd_create("copy")
    os.write(file, b"complete")
    try:
        forged.send("store", [file])
        forged.ready()
        forged.send("load")
        assert forged.receive()["type"] == "loaded"
        forged.channel.shutdown(socket.SHUT_RDWR)
        assert "upgrade: the other process has ended" in forged.error()
        assert os.fstat(file).st_size
    finally:
        os.close(file)
        forged.close()


def test_new_process_that_does_not_know_the_store(daemon, manager, program, good):
    """It could not discard a copy, so there is none."""
    install_script(program, "ready()\nreceive('load')")
    assert GOES_ON in daemon.ctl("upgrade").stderr
    install(program, good)
    manager.read()
    assert "FDSTORE=1" not in manager.states


def test_service_manager_that_does_not_read(daemon, manager, traffic):
    """It would end both processes, since it does not learn which one is the service's."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as full:
        full.connect(manager.env["NOTIFY_SOCKET"])
        full.setblocking(False)
        with contextlib.suppress(BlockingIOError):
            while True:
                full.send(b"STATUS=")
    wait_for_messages(daemon)
    assert f"{GOES_ON}the service manager does not read" in daemon.ctl("upgrade").stderr
    assert "the service manager has no copy of the VMs' state" in daemon.log()
    wait_for_messages(daemon)
    manager.read()
    daemon.upgrade()
    assert traffic.end() > 100


@pytest.mark.parametrize("names", [["handover"], ["other"], ["handover", "handover"], ["a", "handover", "handover"], [""]])
def test_other_descriptors_of_the_service_manager_are_closed(daemon, manager, tmp_path, names):
    plain = daemon.open_files()
    daemon.kill()
    file = os.open(tmp_path / "garbage", os.O_RDWR | os.O_CREAT)
    os.write(file, b"garbage! more of it")
    fds = [os.dup(file) for _ in names]
    manager.start_again(daemon, fds, names)
    for fd in [file, *fds]:
        os.close(fd)
    daemon.wait_for_files(plain)
    with attach(daemon.socket()) as client:
        Guest(client).start()
