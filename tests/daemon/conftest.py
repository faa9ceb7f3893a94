# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
"""Fixtures of the tests of pvrdmad, which need no virtual machine."""

import re
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).resolve().parent
sys.dont_write_bytecode = True
sys.path[:0] = [str(HERE), str(HERE.parent / "pylib"), str(HERE.parents[1] / "scripts/lab")]

import daemon_process  # noqa: E402
from daemon_net import address, leave_network, options  # noqa: E402
from daemon_process import Daemon, run_pvrdmad  # noqa: E402
from delay import Neighbour, neighbour_of  # noqa: E402
from etcd import Etcd  # noqa: E402
from guest import Guest  # noqa: E402
from keys import Authority  # noqa: E402
from pipe_peer import Listener  # noqa: E402
from scrape import Scrape  # noqa: E402
from upgrading import install  # noqa: E402
from vfio_user import attach  # noqa: E402
from vmlab_lib.hosts import Hosts  # noqa: E402


def pytest_configure(config):
    config.addinivalue_line("markers", "long: waits for many seconds: make check-long runs it, make check does not")


@pytest.fixture(autouse=True)
def own_network():
    """No two tests share an address of loopback."""
    yield
    leave_network()


@pytest.fixture
def namespace():
    """A command prefix for a network namespace of this test's own, where every port is free."""
    hosts = Hosts(1)
    try:
        hosts.start()
        yield hosts.enter(1)
    finally:
        hosts.close()


@pytest.fixture
def program(tmp_path, monkeypatch):
    """The path of an installed pvrdmad, which the test can replace."""
    path = tmp_path / "bin" / "pvrdmad"
    path.parent.mkdir()
    install(path, daemon_process.PVRDMAD)
    monkeypatch.setattr(daemon_process, "PVRDMAD", str(path))
    return path


@pytest.fixture
def start_daemon(tmp_path):
    """A function that starts a Daemon; each must end with status 0."""
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
def start(start_daemon):
    """A function that starts the daemon of host `number`, which dials `peers`; `guest`: with node1 for a Load."""

    def start_host(number, *peers, name=None, args=(), guest=False, **kwargs):
        made = start_daemon(adapters=0, args=options(number, *peers, name=name, args=args), **kwargs)
        if guest:
            made.add_adapter("node1", number, socket=made.socket())
        return made

    return start_host


@pytest.fixture
def host(start):
    """h1, which listens and serves a VM in time; after the test it has as many descriptors as before."""
    daemon = start(1)
    with neighbour_of(daemon):
        before = daemon.open_files()
        yield daemon
        daemon.wait_for_files(before)


@pytest.fixture
def daemon(start_daemon):
    return start_daemon()


@pytest.fixture
def client(daemon):
    with attach(daemon.socket(1)) as made:
        assert made.read_reg(0) == 20  # by now the daemon has closed the descriptors of the negotiation
        yield made


@pytest.fixture
def new_guest(client):
    """A driver that has not started."""
    made = Guest(client)
    yield made
    made.close()


@pytest.fixture
def guest(new_guest):
    """A driver that has started."""
    new_guest.start()
    return new_guest


@pytest.fixture
def refuse(tmp_path):
    """A function: pvrdmad with these arguments ends with `status` and one line that matches `pattern`.

    With lines=2 a report that it listens precedes it."""

    def check(status, pattern, *args, lines=1, **kwargs):
        # With status 2 it has made no socket.
        named = any(str(arg).startswith("--control") for arg in args)
        control = ["--control", tmp_path / "control"] if status == 1 and not named else []
        done = run_pvrdmad(*args, *control, **kwargs)
        assert done.returncode == status, done.stderr
        assert len(done.stderr.splitlines()) == lines, done.stderr
        assert done.stderr.startswith("pvrdmad: ")
        assert re.search(pattern, done.stderr), done.stderr
        assert not done.stdout

    return check


@pytest.fixture
def write_config(tmp_path):
    """A function that writes a configuration file. Return: the option that names it."""

    def write(text):
        path = tmp_path / "pvrdmad.conf"
        path.write_text(text)
        return f"--config={path}"

    return write


@pytest.fixture
def listener():
    """At the address of h2."""
    with Listener(address(2)) as made:
        yield made


@pytest.fixture
def tls_host(start, ca):
    """h1, which listens, has a certificate of the file's Authority `ca`, and serves a VM in time."""
    daemon = start(1, args=ca.options("h1"))
    with neighbour_of(daemon):
        yield daemon


@pytest.fixture
def etcd(tmp_path):
    server = Etcd(tmp_path)
    yield server
    server.stop()


@pytest.fixture
def ca(tmp_path):
    return Authority(tmp_path)


@pytest.fixture
def everything(start, ca, etcd):
    """A scrape of a daemon that has all families of metrics."""
    daemon = start(1, args=("--metrics", f"{address(1)}:9471", *ca.options("h1"), "--etcd", etcd.url, "--faults", "allowed"))
    daemon.add_adapter("node1", 1)
    daemon.must("fault", "add", "--from", "node1", "drop=1%")
    return Scrape((address(1), 9471))


@pytest.fixture
def neighbour(daemon):
    """A second VM, which is served in time in spite of any attack by the first VM."""
    made = Neighbour(daemon, daemon.socket(2))
    made.check()
    yield made
    made.end()
