# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
"""pvrdmactl and the control socket."""

import json
import os
import re
import socket
import stat
import subprocess

import pytest

from daemon_process import PATIENCE, PVRDMACTL, ROOT, mac, wait_until
from sender import Sender
from vfio_user import Client


def ctl(*args, env=None):
    return subprocess.run([PVRDMACTL, *args], capture_output=True, text=True, timeout=PATIENCE, check=False,
                          env={**os.environ, **(env or {})})


def ask(daemon, line):
    with socket.socket(socket.AF_UNIX) as sock:
        sock.settimeout(PATIENCE)
        sock.connect(str(daemon.control))
        sock.sendall(line + b"\n")
        return json.loads(sock.makefile().readline())


def test_no_daemon(tmp_path):
    done = ctl("--control", f"{tmp_path}/none", "adapters")
    assert done.returncode == 1
    assert done.stderr == (f"pvrdmactl: no pvrdmad at {tmp_path}/none: start it with 'pvrdmad --control {tmp_path}/none "
                           "...' or 'systemctl start pvrdmad', or give --control PATH\n")


def test_control_path_from_environment(daemon):
    done = ctl("version", env={"PVRDMA_CONTROL": str(daemon.control)})
    assert done.returncode == 0 and "device version 20" in done.stdout


@pytest.mark.parametrize("args, text", [
    ([], "no command, see pvrdmactl --help"),
    (["frobnicate"], "unknown command 'frobnicate', see pvrdmactl --help"),
    (["--frob", "adapters"], "unknown option '--frob', see pvrdmactl --help"),
    (["adapters", "x"], "'adapters' with 1 arguments"),
    (["link", "node1"], "'link' with 1 arguments"),
    (["add-adapter", "node1"], "'node1' is not KEY=VALUE"),
])
def test_usage(args, text):
    done = ctl(*args)
    assert done.returncode == 2
    assert text in done.stderr and len(done.stderr.splitlines()) == 1


def test_help():
    done = ctl("--help")
    assert done.returncode == 0
    for word in ("adapters", "paths", "peers", "qps", "stats", "workers", "add-adapter", "remove-adapter", "link", "log-level", "--json"):
        assert word in done.stdout


def test_adapters(daemon, client):
    client.map(0, 1 << 20, [os.memfd_create("none")][:0])
    rows = daemon.ctl("adapters").stdout.splitlines()
    assert rows[0].split() == ["ADAPTER", "FABRIC", "MAC", "HW", "ROCE", "UAR", "STATE", "LINK",
                               "QEMU", "RAM", "WORKER", "SOCKET"]
    assert rows[1].split()[:3] == ["node1", "default", mac(1)]
    assert str(os.getpid()) in rows[1].split()
    assert rows[1].split()[3:6] == ["latest", "v2", "trapped"]
    assert "none" in rows[2].split()
    assert len(rows) == 3


def test_json(daemon):
    reply = json.loads(daemon.ctl("--json", "adapters").stdout)
    assert reply["ok"] is True
    assert [adapter["name"] for adapter in reply["adapters"]] == ["node1", "node2"]
    assert reply["adapters"][0]["socket"] == str(daemon.socket(1))


def test_stats_of_one(daemon, client):
    client.read_reg(0)
    text = daemon.ctl("stats", "node1").stdout
    assert text.startswith("node1: ") and "node2" not in text
    reply = json.loads(daemon.ctl("--json", "stats", "node1").stdout)
    assert reply["adapters"][0]["qemu_clients"] == 1
    assert reply["adapters"][0]["qemu_messages"] == 3


def test_stats_has_all_counters(daemon):
    """Each counter of the engine is shown and in the man page, and no other one is shown."""
    header = (ROOT / "qemu-device/engine.h").read_text()
    fields = header.split("struct pvr_adapter_stats {")[1].split("\n};")[0]
    kept = {name for names in re.findall(r"uint(?:32|64)_t ([^;]*);", fields) for name in names.split(", ")}
    assert {"mrs", "mws", "interrupts"} <= kept
    kept |= {"qemu_clients", "qemu_messages", "qemu_refused"}
    shown = {line.split()[0] for line in daemon.ctl("stats", "node1").stdout.splitlines()[1:]}
    assert shown == kept
    reply = json.loads(daemon.ctl("--json", "stats", "node1").stdout)["adapters"][0]
    assert set(reply) - {"name", "state"} == kept
    man = (ROOT / "docs/man/pvrdmactl.8").read_text().split(".Sh COUNTERS")[1].split(".Sh EXIT")[0]
    objects = {"contexts", "pds", "mrs", "mws", "cqs", "qps", "srqs", "gids"}
    assert kept - objects <= set(re.findall(r"\w+", man))


def test_no_such_adapter(daemon):
    for args in (["stats", "nix"], ["link", "nix", "up"], ["remove-adapter", "nix"]):
        done = daemon.ctl(*args)
        assert done.returncode == 1
        assert done.stderr == "pvrdmactl: there is no adapter 'nix': see 'pvrdmactl adapters'\n"


def test_add_and_remove(daemon, tmp_path):
    path = tmp_path / "late"
    assert daemon.ctl("add-adapter", f"name=late,socket={path},mac={mac(7)}").returncode == 0
    with Client(path) as late:
        late.negotiate()
        assert late.read_reg(0) == 20
        assert daemon.ctl("remove-adapter", "late").returncode == 0
        assert late.is_gone()
    assert not path.exists()
    assert "\nlate " not in daemon.ctl("adapters").stdout


def test_add_refuses_what_options_refuse(daemon, tmp_path):
    done = daemon.ctl("add-adapter", f"name=x,socket={tmp_path}/x,mac=zz")
    assert done.returncode == 2 and "is not a MAC address" in done.stderr, done.stderr
    for text, complaint in ((f"name=node1,socket={tmp_path}/x,mac={mac(9)}", "node1"),
                            (f"name=x,socket={tmp_path}/x,mac={mac(1)}", "has this MAC address"),
                            (f"name=x,socket={daemon.socket(1)},mac={mac(9)}", "is in use by process"),
                            ("name=x,mac=" + mac(9), "lacks socket=PATH")):
        done = daemon.ctl("add-adapter", text)
        assert done.returncode == 1 and complaint in done.stderr, done.stderr
    assert len(daemon.ctl("adapters").stdout.splitlines()) == 3


def test_link(daemon):
    assert daemon.ctl("link", "node1", "down").returncode == 0
    assert daemon.ctl("adapters").stdout.splitlines()[1].split()[7] == "down"
    assert daemon.ctl("link", "node1", "up").returncode == 0
    assert daemon.ctl("adapters").stdout.splitlines()[1].split()[7] == "up"
    assert "neither up nor down" in daemon.ctl("link", "node1", "sideways").stderr


def test_log_level(daemon):
    assert daemon.ctl("log-level", "debug").returncode == 0
    assert "none of error, warn, info, debug" in daemon.ctl("log-level", "loud").stderr


def test_paths_without_traffic(daemon):
    assert daemon.ctl("paths").stdout == "no adapter has talked to another yet\n"


def test_control_socket_is_private(daemon):
    assert stat.S_IMODE(os.stat(daemon.control).st_mode) == 0o600


@pytest.mark.parametrize("line", [b"", b"garbage", b"[]", b"42", b"{}", b'{"command": 1}', b'{"command": "nix"}',
                                  b'{"command": "stats", "name": "nix"}', b'{"command": "link"}', b"[" * 1000,
                                  b'{"command": "log-level", "level": null}', b"\x00\xff\xfe"])
def test_bad_request_gets_an_error(daemon, line):
    reply = ask(daemon, line)
    assert reply["ok"] is False and reply["error"]


def test_several_requests_in_one_connection(daemon):
    with socket.socket(socket.AF_UNIX) as sock:
        sock.settimeout(PATIENCE)
        sock.connect(str(daemon.control))
        sock.sendall(b'{"command":"version"}\n' * 50)
        lines = sock.makefile()
        for _ in range(50):
            assert json.loads(lines.readline())["ok"]


def test_line_too_long_is_closed(daemon):
    with socket.socket(socket.AF_UNIX) as sock:
        sock.settimeout(PATIENCE)
        sock.connect(str(daemon.control))
        sock.sendall(b"x" * 5000)
        try:
            assert sock.recv(1) == b""
        except ConnectionResetError:
            pass
    assert daemon.ctl("version").returncode == 0


def test_reader_that_does_not_read(daemon):
    with socket.socket(socket.AF_UNIX) as sock:
        sock.connect(str(daemon.control))
        sock.setblocking(False)
        try:
            while True:
                sock.send(b'{"command":"adapters"}\n' * 100)
        except BlockingIOError:
            pass
        assert daemon.ctl("version").returncode == 0


def test_too_many_clients(daemon):
    socks = []
    for _ in range(40):
        socks.append(socket.socket(socket.AF_UNIX))
        socks[-1].connect(str(daemon.control))
    wait_until(lambda: daemon.descriptors() < 40, "surplus control clients closed")
    for sock in socks:
        sock.close()
    wait_until(lambda: daemon.ctl("version").returncode == 0, "control socket usable again")


def test_qps(daemon, client):
    sender = Sender(client)
    sender.send()
    adapters = json.loads(daemon.ctl("--json", "qps").stdout)["adapters"]
    assert [adapter["name"] for adapter in adapters] == ["node1", "node2"]
    qp = next(qp for qp in adapters[0]["qps"] if qp["qpn"] == sender.qpn)
    assert (qp["type"], qp["state"], qp["tx_messages"], qp["wait"]) == ("UD", "RTS", 1, "")
    assert adapters[1]["qps"] == []
    rows = daemon.ctl("qps", "node1").stdout.splitlines()
    assert rows[0] == "node1:" and rows[1].split()[:4] == ["QPN", "TYPE", "STATE", "PEER"]
    assert any(row.split()[:5] == [str(sender.qpn), "UD", "RTS", "-", "-"] for row in rows)
    assert daemon.ctl("qps", "nobody").returncode == 1
    sender.close()
