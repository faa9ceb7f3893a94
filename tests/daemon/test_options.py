# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
"""Mistakes of users: one line names each mistake, and the exit status is of use."""

import os
import re
import signal
import socket
import tempfile
from pathlib import Path

import pytest

from daemon_process import PATIENCE, adapter_option as adapter, mac, run_pvrdmad
from pipe_peer import Closed
from vfio_user import attach

needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="needs root to become another user")


def test_help_names_every_option():
    done = run_pvrdmad("--help")
    assert done.returncode == 0
    for option in ("--adapter", "--config", "--control", "--log-level", "--log-timestamps", "--poll", "--user",
                   "--version"):
        assert option in done.stdout


def test_version():
    done = run_pvrdmad("--version")
    assert done.returncode == 0
    assert re.fullmatch(r"pvrdmad \d+\.\d+\.\d+\ndevice version \d+, pipe version \d+\n", done.stdout)


LONG_PATH = "/tmp/" + "x" * 110


@pytest.mark.parametrize("args, pattern", [
    (["--frobnicate"], "unknown option '--frobnicate', see pvrdmad --help"),
    (["-x"], "unknown option '-x'"),
    (["--control"], "option '--control' needs a value"),
    (["surplus"], "unexpected argument 'surplus'"),
    (["--log-level", "loud"], "'loud' is none of error, warn, info, debug"),
    (["--adapter", "node1"], "'node1' is not KEY=VALUE; expected name="),
    (["--adapter", "name=n,socket=/s"], "adapter 'n' lacks mac=MAC"),
    (["--adapter", "name=n,mac=52:54:00:00:00:01"], "adapter 'n' lacks socket=PATH"),
    (["--adapter", "socket=/s,mac=52:54:00:00:00:01"], "lacks name=NAME"),
    (["--adapter", "name=n,socket=/s,color=red"], "unknown adapter setting 'color'"),
    (["--adapter", "name=a b,socket=/s"], "name 'a b' has characters other than"),
    (["--adapter", "name=" + "n" * 40], "name has 40 characters, the limit is 31"),
    (["--adapter", "name=,socket=/s"], "name is empty"),
    (["--adapter", "name=n,hwversion=15"], "hwversion '15' is none of 13, 14, 18, 20, latest"),
    (["--adapter", "name=n,roce=3"], "roce '3' is neither v1 nor v2"),
    (["--adapter", "name=n,uar=yes"], "uar 'yes' is neither mapped nor trapped"),
    (["--adapter", "name=n,socket=/s,mac=52:54:00:00:00:01,hwversion=13,roce=v2"], "hwversion 13 has no RoCE v2"),
    (["--adapter", f"name=n,socket={LONG_PATH}"], "has 115 characters, the limit is 107: choose a shorter one"),
    (["--control", LONG_PATH], "has 115 characters, the limit is 107"),
    *((["--adapter", f"name=n,mac={address}"], f"mac '{address}' is not a MAC address: expected the one of the VM's NIC")
      for address in ("52:54:00:00:00", "52:54:00:00:00:0g", "52-54-00-00-00-01", "", "525400000001",
                      "52:54:00:00:00:01:02")),
    *((["--adapter", f"name=n,mac={address}"], "is not the address of one NIC")
      for address in ("00:00:00:00:00:00", "01:00:5e:00:00:01", "ff:ff:ff:ff:ff:ff")),
])
def test_bad_option(refuse, args, pattern):
    refuse(2, pattern, *args)


@pytest.mark.parametrize("option", ["--control", "--config"])
def test_option_that_is_given_twice(tmp_path, option):
    """Two sockets or two files: neither is the one that counts."""
    done = run_pvrdmad(option, tmp_path / "one", option, tmp_path / "two")
    assert (done.returncode, done.stderr) == (2, f"pvrdmad: {option} is given twice\n")
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("second, pattern", [
    ({"name": "node1"}, "two adapters are named 'node1'"),
    ({"mac": mac(1)}, "'node1' and 'node2' have the same MAC 52:54:00:00:00:01"),
    ({"socket": "a1"}, "'node1' and 'node2' have the same socket"),
], ids=["name", "mac", "socket"])
def test_two_adapters_with_the_same(refuse, tmp_path, second, pattern):
    refuse(2, pattern, adapter(tmp_path), adapter(tmp_path, 2, **second))


def test_one_mac_in_two_fabrics(start_daemon, tmp_path):
    start_daemon(adapters=0, args=[adapter(tmp_path, 1, fabric="red"), adapter(tmp_path, 2, mac=mac(1), fabric="blue")])


def test_longest_socket_path(start_daemon, tmp_path):
    path = f"/tmp/pvrdmad-{os.getpid()}-"
    path += "x" * (107 - len(path))
    start_daemon(adapters=0, args=[adapter(tmp_path, socket=path)])
    assert os.path.exists(path)


def test_no_folder_for_socket(refuse, tmp_path):
    refuse(1, r"node1: cannot make socket .*: there is no folder .*/nowhere: create it",
           adapter(tmp_path, socket="nowhere/a"))


def test_socket_path_is_a_file(refuse, tmp_path):
    (tmp_path / "a1").write_text("precious")
    refuse(1, "exists and is not a socket: remove it or choose another path", adapter(tmp_path))
    assert (tmp_path / "a1").read_text() == "precious"


@needs_root
def test_folder_not_writable(refuse):
    with tempfile.TemporaryDirectory(dir="/tmp") as folder:
        os.chmod(folder, 0o755)
        refuse(1, rf"folder {folder} is not writable for user \d+: Permission denied", "--user", "nobody",
               f"--control={folder}/c")


def test_socket_in_use(refuse, daemon, tmp_path):
    refuse(1, f"is in use by process {daemon.child.pid}: stop that one or choose another path",
           adapter(tmp_path, socket=daemon.socket(1)))
    assert daemon.socket(1).exists()


def test_control_socket_in_use(refuse, daemon, tmp_path):
    refuse(1, f"control socket .* is in use by process {daemon.child.pid}", f"--control={daemon.control}",
           adapter(tmp_path))


def test_stale_sockets_are_replaced(start_daemon, tmp_path):
    for name in ("a1", "control"):
        with socket.socket(socket.AF_UNIX) as dead:
            dead.bind(str(tmp_path / name))
    daemon = start_daemon(adapters=0, args=[adapter(tmp_path)])
    assert f"replaced stale socket {tmp_path / 'a1'}" in daemon.log()


def test_unknown_user(refuse):
    refuse(1, "there is no user 'not-a-user'", "--user", "not-a-user")


def test_no_place_for_scratch_folder(refuse):
    refuse(1, "set TMPDIR to a short path that is writable", env={"TMPDIR": "/nonexistent"})


@pytest.mark.parametrize("sig", [signal.SIGTERM, signal.SIGINT])
def test_signal_ends_it_cleanly(start_daemon, sig):
    daemon = start_daemon()
    assert daemon.socket(1).exists() and daemon.control.exists()
    assert daemon.stop(sig) == 0
    assert not daemon.socket(1).exists() and not daemon.control.exists()


@pytest.fixture
def scratch(tmp_path):
    folder = tmp_path / "s"
    folder.mkdir()
    return folder


def test_leaves_nothing_in_tmpdir(start_daemon, scratch):
    """Not even if it is killed."""
    daemon = start_daemon(env={"TMPDIR": str(scratch)})
    attach(daemon.socket()).close()
    daemon.kill()
    assert not list(scratch.iterdir())


def test_tmpdir_that_is_gone_for_a_while(start_daemon, scratch):
    daemon = start_daemon(env={"TMPDIR": str(scratch)})
    scratch.rmdir()
    with pytest.raises(Closed):
        attach(daemon.socket())
    daemon.wait_for_log("cannot make a device for it: No such file or directory")
    scratch.mkdir()
    attach(daemon.socket()).close()


def test_notifies_the_service_manager(start_daemon, tmp_path):
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as manager:
        manager.bind(str(tmp_path / "notify"))
        manager.settimeout(PATIENCE)
        daemon = start_daemon(env={"NOTIFY_SOCKET": str(tmp_path / "notify")})
        assert manager.recv(100) == b"READY=1"
        daemon.stop()
        assert manager.recv(100) == b"STOPPING=1"


def test_log_timestamps(start_daemon):
    daemon = start_daemon(args=["--log-timestamps"])
    assert re.search(r"^\d\d:\d\d:\d\d\.\d{6} pvrdmad: ready, 2 adapters$", daemon.log(), re.MULTILINE)


def test_log_lines_are_plain_by_default(daemon):
    assert "pvrdmad: ready, 2 adapters\n" in daemon.log()


@needs_root
def test_drops_privileges(start_daemon):
    with tempfile.TemporaryDirectory(dir="/tmp") as folder:
        os.chmod(folder, 0o777)
        daemon = start_daemon(adapters=0, args=["--user", "nobody", f"--control={folder}/c"])
        status = Path(f"/proc/{daemon.child.pid}/status").read_text()
        assert re.search(r"^Uid:(\s+[1-9]\d*){4}$", status, re.MULTILINE)
        assert re.search(r"^CapEff:\s*0+$", status, re.MULTILINE)
        daemon.stop()
