# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
"""The user of an adapter: only its QEMU attaches."""

import json
import os
import pwd
import socket

import pytest

from daemon_process import PATIENCE, adapter_option
from vfio_user import attach

OWN = os.getuid()
OTHER = OWN + 1


@pytest.mark.parametrize("user", [OWN, pwd.getpwuid(OWN).pw_name], ids=["number", "name"])
def test_client_of_the_user_attaches(daemon, user):
    with attach(daemon.add_adapter("one", 7, user=user)) as client:
        assert client.read_reg(0) == 20


def test_client_of_another_user_is_refused(daemon):
    path = daemon.add_adapter("one", 7, user=OTHER)
    with socket.socket(socket.AF_UNIX) as sock:
        sock.settimeout(PATIENCE)
        sock.connect(str(path))
        assert sock.recv(1) == b""
    daemon.wait_for_log(f"one: process {os.getpid()} of user {OWN} is refused: the adapter is for user {OTHER}; run QEMU as that user")
    assert daemon.counters("one")["qemu_refused"] == 1


def test_refused_client_leaves_the_place_to_the_right_one(daemon):
    """A client of another user that connects first does not count as the VM."""
    path = daemon.add_adapter("one", 7, user=OTHER)
    with socket.socket(socket.AF_UNIX) as sock:
        sock.connect(str(path))
        daemon.wait_for_log("is refused")
    row = next(row for row in daemon.query("adapters")["adapters"] if row["name"] == "one")
    assert not row["attached"]


def test_option_takes_the_name_of_a_user(start_daemon, tmp_path):
    daemon = start_daemon(adapters=0, args=[adapter_option(tmp_path, user=pwd.getpwuid(OWN).pw_name)])
    with attach(tmp_path / "a1") as client:
        assert client.read_reg(0) == 20
    assert "refused" not in daemon.log()


@pytest.mark.parametrize("user", ["", "no-such-user", "-1", "99999999999"])
def test_unknown_user_is_refused(refuse, tmp_path, user):
    refuse(2, f"user '{user}' is neither a user of this host nor a number", adapter_option(tmp_path, user=user))


def test_request_has_a_number(daemon):
    """A look-up can load libraries, which the daemon's list of system calls does not allow."""
    with socket.socket(socket.AF_UNIX) as sock:
        sock.settimeout(PATIENCE)
        sock.connect(str(daemon.control))
        sock.sendall(json.dumps({"command": "add-adapter", "name": "one", "socket": str(daemon.folder / "one"),
                                 "mac": "52:54:00:00:00:07", "user": "root"}).encode() + b"\n")
        assert json.loads(sock.makefile().readline()) == {"ok": False, "error": "user 'root' is not a number"}
