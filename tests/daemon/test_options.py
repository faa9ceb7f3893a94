# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
"""Mistakes of users: one line names each mistake, and the exit status is of use."""

import os
import re
import signal
import socket
import subprocess
import tempfile

import pytest

from daemon_process import PATIENCE, PVRDMAD, adapter_option as adapter, mac, refuse, run_pvrdmad
from vfio_user import Client, Gone


def test_help_names_every_option():
    done = run_pvrdmad("--help")
    assert done.returncode == 0
    for option in ("--adapter", "--config", "--control", "--log-level", "--log-timestamps", "--poll", "--user",
                   "--version"):
        assert option in done.stdout


def test_version():
    done = run_pvrdmad("--version")
    assert done.returncode == 0
    assert re.fullmatch(r"pvrdmad \d+\.\d+\.\d+\n", done.stdout)


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
])
def test_bad_option(args, pattern):
    refuse(2, pattern, *args)


@pytest.mark.parametrize("address", ["52:54:00:00:00", "52:54:00:00:00:0g", "52-54-00-00-00-01", "", "525400000001",
                                     "52:54:00:00:00:01:02"])
def test_bad_mac(tmp_path, address):
    refuse(2, f"mac '{address}' is not a MAC address: expected the one of the VM's NIC", adapter(tmp_path, mac=address))


@pytest.mark.parametrize("address", ["00:00:00:00:00:00", "01:00:5e:00:00:01", "ff:ff:ff:ff:ff:ff"])
def test_mac_of_no_single_nic(tmp_path, address):
    refuse(2, "is not the address of one NIC", adapter(tmp_path, mac=address))


def test_two_adapters_with_one_name(tmp_path):
    refuse(2, "two adapters are named 'node1'", adapter(tmp_path), adapter(tmp_path, 2, name="node1"))


def test_two_adapters_with_one_mac(tmp_path):
    refuse(2, "'node1' and 'node2' have the same MAC 52:54:00:00:00:01", adapter(tmp_path),
           adapter(tmp_path, 2, mac=mac(1)))


def test_two_adapters_with_one_socket(tmp_path):
    refuse(2, "'node1' and 'node2' have the same socket", adapter(tmp_path),
           adapter(tmp_path, 2, socket=tmp_path / "a1"))


def test_one_mac_in_two_fabrics(start_daemon, tmp_path):
    start_daemon(adapters=0, args=[adapter(tmp_path, 1, fabric="red"), adapter(tmp_path, 2, mac=mac(1), fabric="blue")])


def test_socket_path_too_long(tmp_path):
    path = "/tmp/" + "x" * 110
    refuse(2, "has 115 characters, the limit is 107: choose a shorter one", adapter(tmp_path, socket=path))
    refuse(2, "has 115 characters, the limit is 107", "--control", path)


def test_longest_socket_path(start_daemon, tmp_path):
    path = f"/tmp/pvrdmad-{os.getpid()}-"
    path += "x" * (107 - len(path))
    start_daemon(adapters=0, args=[adapter(tmp_path, socket=path)])
    assert os.path.exists(path)


def control(tmp_path):
    return f"--control={tmp_path / 'control'}"


def test_no_folder_for_socket(tmp_path):
    refuse(1, r"node1: cannot make socket .*: there is no folder .*/nowhere: create it",
           control(tmp_path), adapter(tmp_path, socket=tmp_path / "nowhere" / "a"))


def test_socket_path_is_a_file(tmp_path):
    (tmp_path / "a1").write_text("precious")
    refuse(1, "exists and is not a socket: remove it or choose another path", control(tmp_path), adapter(tmp_path))
    assert (tmp_path / "a1").read_text() == "precious"


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root to become somebody else")
def test_folder_not_writable():
    folder = tempfile.mkdtemp(dir="/tmp")
    try:
        os.chmod(folder, 0o755)
        refuse(1, rf"folder {folder} is not writable for user \d+: Permission denied", "--user", "nobody",
               f"--control={folder}/c")
    finally:
        os.rmdir(folder)


def test_socket_in_use(daemon, tmp_path):
    refuse(1, f"is in use by process {daemon.child.pid}: stop that one or choose another path",
           control(tmp_path), adapter(tmp_path, socket=daemon.socket(1)))
    assert daemon.socket(1).exists()


def test_control_socket_in_use(daemon, tmp_path):
    refuse(1, f"control socket .* is in use by process {daemon.child.pid}", f"--control={daemon.control}",
           adapter(tmp_path))


def test_stale_sockets_are_replaced(start_daemon, tmp_path):
    for name in ("a1", "control"):
        with socket.socket(socket.AF_UNIX) as dead:
            dead.bind(str(tmp_path / name))
    args = ["--adapter", f"name=n,socket={tmp_path / 'a1'},mac={mac(9)}"]
    daemon = start_daemon(adapters=0, args=args)
    assert f"replaced stale socket {tmp_path / 'a1'}" in daemon.log()


def test_unknown_user(tmp_path):
    refuse(1, "there is no user 'nobody-at-all'", "--user", "nobody-at-all", control(tmp_path))


def test_no_place_for_scratch_folder(tmp_path):
    refuse(1, "set TMPDIR to a short path that is writable", control(tmp_path), env={"TMPDIR": "/nonexistent"})


@pytest.mark.parametrize("sig", [signal.SIGTERM, signal.SIGINT])
def test_signal_ends_it_cleanly(start_daemon, sig):
    daemon = start_daemon()
    assert daemon.socket(1).exists() and daemon.control.exists()
    assert daemon.stop(sig) == 0
    assert not daemon.socket(1).exists() and not daemon.control.exists()


def test_leaves_nothing_in_tmpdir(start_daemon, tmp_path):
    scratch = tmp_path / "s"
    scratch.mkdir()
    daemon = start_daemon(env={"TMPDIR": str(scratch)})
    assert len(list(scratch.iterdir())) == 1
    daemon.stop()
    assert not list(scratch.iterdir())


def test_scratch_folder_tidied_away(start_daemon, tmp_path):
    scratch = tmp_path / "s"
    scratch.mkdir()
    daemon = start_daemon(env={"TMPDIR": str(scratch)})
    folder = next(scratch.iterdir())
    folder.rmdir()
    with Client(daemon.socket()) as client:
        client.negotiate()
    folder.chmod(0o777)
    with Client(daemon.socket()) as client, pytest.raises(Gone):
        client.negotiate()
    daemon.wait_for_log("cannot make a device for it: Operation not permitted")


def test_tells_the_service_manager(start_daemon, tmp_path):
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


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root to become somebody else")
def test_drops_privileges(tmp_path):
    folder = f"/tmp/pvrdmad-user-{os.getpid()}"
    os.mkdir(folder)
    os.chmod(folder, 0o777)
    try:
        with subprocess.Popen([PVRDMAD, "--user", "nobody", f"--control={folder}/c"], stderr=subprocess.PIPE,
                              text=True) as child:
            assert any("ready, " in line for line in child.stderr)
            status = open(f"/proc/{child.pid}/status", encoding="ascii").read()
            child.terminate()
            assert child.wait(PATIENCE) == 0
        assert not re.search(r"^Uid:.*\b0\b", status, re.MULTILINE)
        assert re.search(r"^CapEff:\s*0+$", status, re.MULTILINE)
    finally:
        os.rmdir(folder)
