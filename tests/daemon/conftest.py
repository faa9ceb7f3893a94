# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
"""Fixtures of the tests of pvrdmad, which need no virtual machine."""

import select
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).resolve().parent
sys.dont_write_bytecode = True
sys.path[:0] = [str(HERE), str(HERE.parent / "pylib"), str(HERE.parents[1] / "scripts/lab")]

from daemon_net import leave_network, options  # noqa: E402
from daemon_process import Daemon, mac, wait_until  # noqa: E402
from vfio_user import Client  # noqa: E402
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
            done = made.ctl("add-adapter", f"name=node1,socket={made.socket(1)},mac={mac(number)}")
            assert done.returncode == 0, done.stderr
        return made

    return start_host


@pytest.fixture
def host(start):
    """h1, which listens; after the test it has as many descriptors as before."""
    daemon = start(1)
    before = daemon.open_files()
    yield daemon
    wait_until(lambda: daemon.open_files() == before, "no descriptor is left")


@pytest.fixture
def daemon(start_daemon):
    return start_daemon()


@pytest.fixture
def client(daemon):
    with Client(daemon.socket(1)) as made:
        made.negotiate()
        assert made.read_reg(0) == 20  # by now the daemon has closed the descriptors of the negotiation
        yield made


@pytest.fixture
def neighbour(daemon):
    """A second VM, which must be served in spite of any attack by the first VM; a call checks that."""
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
