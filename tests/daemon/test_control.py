# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
"""pvrdmactl and the control socket."""

import json
import os
import re
import socket
import stat
import subprocess
from pathlib import Path

import pytest

from daemon_process import PATIENCE, PVRDMACTL, ROOT, mac, run_pvrdmad, wait_until
from sender import Sender
from vfio_user import attach


def ctl(*args, env=None):
    return subprocess.run([PVRDMACTL, *args], capture_output=True, text=True, timeout=PATIENCE, check=False,
                          env={**os.environ, **(env or {})})


@pytest.fixture
def control(daemon):
    """A connection to the control socket."""
    with socket.socket(socket.AF_UNIX) as sock:
        sock.settimeout(PATIENCE)
        sock.connect(str(daemon.control))
        yield sock


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


def test_each_setting_of_an_adapter_is_documented():
    """In the help of both programs and in the man pages; the message about an unknown setting has all of them."""
    message = ctl("add-adapter", "nix=1").stderr
    settings = re.findall(r"[a-z-]+", message.split("there are ")[1].replace(" and ", ", "))
    assert {"name", "memory", "object-memory", "worker"} <= set(settings)
    option, table = ((ROOT / "docs/man" / page).read_text() for page in ("pvrdmad.8", "pvrdmad.conf.5"))
    for setting in settings:
        assert f"{setting}=" in ctl("--help").stdout and f"{setting}=" in run_pvrdmad("--help").stdout
        assert f"{setting}=" in option, setting
        assert setting == "name" or f".It Cm {setting}\n" in table, setting


def test_adapters(daemon, client):
    client.map(0, 1 << 20)
    rows = [line.split() for line in daemon.must("adapters").splitlines()]
    assert rows[0] == ["ADAPTER", "FABRIC", "MAC", "HW", "ROCE", "UAR", "STATE", "LINK", "QEMU", "RAM", "LIMIT", "WORKER", "SOCKET"]
    assert rows[1][:6] == ["node1", "default", mac(1), "latest", "v2", "trapped"]
    assert str(os.getpid()) in rows[1]
    assert "none" in rows[2]
    assert len(rows) == 3


def test_stats_of_one(daemon, client):
    text = daemon.must("stats", "node1")
    assert text.startswith("node1: ") and "node2" not in text
    before = daemon.counters("node1")
    client.read_reg(0)
    after = daemon.counters("node1")
    assert before["qemu_clients"] == 1
    assert after["qemu_messages"] == before["qemu_messages"] + 1


def test_stats_has_all_counters(daemon):
    """Each counter of the engine is shown and in the man page, and no other one is shown."""
    header = (ROOT / "qemu-device/engine.h").read_text()
    fields = header.split("struct pvr_adapter_stats {")[1].split("\n};")[0]
    kept = {name for names in re.findall(r"uint(?:32|64)_t ([^;]*);", fields) for name in names.split(", ")}
    assert {"mrs", "mws", "interrupts"} <= kept
    kept.remove("stopped_ns")  # of the state, which "adapters" shows
    kept |= {"qemu_clients", "qemu_messages", "qemu_refused"}
    shown = {line.split()[0] for line in daemon.must("stats", "node1").splitlines()[1:]}
    assert shown == kept
    assert set(daemon.counters("node1")) - {"name", "state"} == kept
    man = (ROOT / "docs/man/pvrdmactl.8").read_text().split(".Sh COUNTERS")[1].split(".Sh EXIT")[0]
    objects = {"contexts", "pds", "mrs", "mws", "cqs", "qps", "srqs", "gids"}
    assert kept - objects <= set(re.findall(r"\w+", man))


@pytest.mark.parametrize("args", [["stats", "nix"], ["qps", "nix"], ["link", "nix", "up"], ["remove-adapter", "nix"]],
                         ids=lambda args: args[0])
def test_no_such_adapter(daemon, args):
    done = daemon.ctl(*args)
    assert done.returncode == 1
    assert done.stderr == "pvrdmactl: there is no adapter 'nix': see 'pvrdmactl adapters'\n"


def test_add_and_remove(daemon):
    path = daemon.add_adapter("late", 7)
    with attach(path) as late:
        assert late.read_reg(0) == 20
        daemon.must("remove-adapter", "late")
        assert late.ends()
    assert not path.exists()
    assert "\nlate " not in daemon.must("adapters")


@pytest.mark.parametrize("text, status, complaint", [
    ("name=x,socket={folder}/x,mac=zz", 2, "is not a MAC address"),
    (f"name=node1,socket={{folder}}/x,mac={mac(9)}", 1, "node1"),
    (f"name=x,socket={{folder}}/x,mac={mac(1)}", 1, "has this MAC address"),
    (f"name=x,socket={{folder}}/adapter1,mac={mac(9)}", 1, "is in use by process"),
    (f"name=x,mac={mac(9)}", 1, "lacks socket=PATH"),
    (f"name=x,socket={{folder}}/x,mac={mac(9)},uar=maybe", 2, "uar 'maybe' is neither mapped nor trapped"),
    *((f"name=x,socket={{folder}}/x,mac={mac(9)},memory={size}", 2, f"memory '{size}' is not a number with a unit")
      for size in ("lots", "4", "-1G", "4GB", "4g", "1.5G")),
    *((f"name=x,socket={{folder}}/x,mac={mac(9)},memory={size}", 2, f"memory {size} is not between 1K and 16T")
      for size in ("0G", "17T", "99999999999999999999999K")),
    (f"name=x,socket={{folder}}/x,mac={mac(9)},object-memory=1", 2, "object-memory '1' is not a number with a unit"),
    (f"name=x,socket={{folder}}/x,mac={mac(9)},object-memory=17T", 2, "object-memory 17T is not between 1K and 16T"),
    (f"name=x,socket={{folder}}/x,mac={mac(9)},worker=1", 1, "worker 1: pvrdmad has 1, numbered from 0; see --workers"),
    (f"name=x,socket={{folder}}/x,mac={mac(9)},wire=br0", 2, "wire 'br0' is neither unix:PATH, eth:INTERFACE nor tap:NAME"),
    (f"name=x,socket={{folder}}/x,mac={mac(9)},wire=unix:{'/x' * 60}", 2, "wire path"),
    (f"name=x,socket={{folder}}/x,mac={mac(9)},roce=v1,wire=unix:/x", 1, "wire needs RoCE v2"),
    (f"name=x,socket={{folder}}/x,mac={mac(9)},wire-ecn=yes", 2, "wire-ecn 'yes' is neither on nor off"),
    (f"name=x,socket={{folder}}/x,mac={mac(9)},wire-ecn=on", 1, "wire-ecn=on needs a wire"),
], ids=["mac", "name", "same mac", "same socket", "no socket", "uar", *["memory"] * 9, *["object-memory"] * 2, "worker", "wire", "wire too long", "wire with v1", "wire-ecn", "wire-ecn alone"])
def test_add_refuses_what_options_refuse(daemon, text, status, complaint):
    done = daemon.ctl("add-adapter", text.format(folder=daemon.folder))
    assert done.returncode == status and complaint in done.stderr, done.stderr
    assert len(daemon.query("adapters")["adapters"]) == 2


def test_link(daemon):
    for state in ("down", "up"):
        daemon.must("link", "node1", state)
        assert daemon.table("adapters")[0]["LINK"] == state
    assert "neither up nor down" in daemon.ctl("link", "node1", "sideways").stderr


def test_log_level(daemon):
    daemon.must("log-level", "debug")
    assert "none of error, warn, info, debug" in daemon.ctl("log-level", "loud").stderr


def test_paths_without_traffic(daemon):
    assert daemon.must("paths") == "no adapter has talked to another yet\n"


def test_control_socket_is_private(daemon):
    assert stat.S_IMODE(os.stat(daemon.control).st_mode) == 0o600


@pytest.mark.parametrize("line", [b"", b"garbage", b"[]", b"42", b"{}", b'{"command": 1}', b'{"command": "nix"}',
                                  b'{"command": "stats", "name": "nix"}', b'{"command": "link"}', b"[" * 1000,
                                  b'{"command": "log-level", "level": null}', b"\x00\xff\xfe"])
def test_bad_request_gets_an_error(control, line):
    control.sendall(line + b"\n")
    reply = json.loads(control.makefile().readline())
    assert reply["ok"] is False and reply["error"]


def pages(control, **request):
    """All replies to a request that is answered in pages."""
    lines, cursor = control.makefile(), 0
    while cursor is not None:
        control.sendall(json.dumps({**request, "cursor": cursor}).encode() + b"\n")
        reply = json.loads(lines.readline())
        assert reply["ok"], reply
        yield reply
        cursor = reply.get("next")


def test_stats_in_pages(start_daemon):
    """A page has at most 64 adapters. All pages have what one reply without pages has."""
    daemon = start_daemon(adapters=70)
    with socket.socket(socket.AF_UNIX) as sock:
        sock.settimeout(PATIENCE)
        sock.connect(str(daemon.control))
        replies = [[adapter["name"] for adapter in reply["adapters"]] for reply in pages(sock, command="stats")]
    assert [len(names) for names in replies] == [64, 6]
    assert sum(replies, []) == [adapter["name"] for adapter in daemon.query("stats")["adapters"]]


def test_qps_in_pages(daemon, client, control):
    sender = Sender(client)
    replies = list(pages(control, command="qps", name="node1"))
    assert all(len(reply["adapters"]) == 1 and len(reply["adapters"][0]["qps"]) <= 256 for reply in replies)
    qpns = [qp["qpn"] for reply in replies for qp in reply["adapters"][0]["qps"]]
    assert qpns == [qp["qpn"] for qp in daemon.query("qps", "node1")["adapters"][0]["qps"]] and sender.qpn in qpns
    sender.close()


def test_adapters_and_workers_in_pages(start_daemon):
    """A page has at most 16 of them. pvrdmactl shows all."""
    daemon = start_daemon(adapters=40, args=("--workers", "20"))
    with socket.socket(socket.AF_UNIX) as sock:
        sock.settimeout(PATIENCE)
        sock.connect(str(daemon.control))
        for command, sizes in (("adapters", [16, 16, 8]), ("workers", [16, 4])):
            replies = [reply[command] for reply in pages(sock, command=command)]
            assert [len(rows) for rows in replies] == sizes
            assert len(daemon.query(command)[command]) == sum(sizes)
    assert [row["ADAPTER"] for row in daemon.table("adapters")] == [f"node{number}" for number in range(1, 41)]


@pytest.fixture
def crowded(start, tmp_path):
    """A daemon with 200 peers."""
    peers = tmp_path / "peers"
    peers.write_text("".join(f"[host n{number}]\naddress = 127.9.1.{number}\n" for number in range(1, 201)))
    return start(1, args=("--peers", peers, "--insecure"), guest=True)


def test_peers_and_paths_in_pages(crowded):
    """A page has at most 64 peers, and only the first one has this host. pvrdmactl shows all, sorted."""
    names = sorted(f"n{number}" for number in range(1, 201))
    with socket.socket(socket.AF_UNIX) as sock:
        sock.settimeout(PATIENCE)
        sock.connect(str(crowded.control))
        replies = list(pages(sock, command="peers"))
        assert [len(reply["peers"]) for reply in replies] == [64, 64, 64, 8]
        assert ["host" in reply for reply in replies] == [True, False, False, False]
        assert sorted(peer["name"] for reply in replies for peer in reply["peers"]) == names
        replies = list(pages(sock, command="paths"))
        assert max(len(reply["hosts"]) + len(reply["paths"]) for reply in replies) == 64
        assert sorted(host["host"] for reply in replies for host in reply["hosts"]) == names
    shown = crowded.query("peers")
    assert [peer["name"] for peer in shown["peers"]] == names and shown["host"]["name"] == "h1" and "next" not in shown
    assert [host["host"] for host in crowded.query("paths")["hosts"]] == names
    assert [row["HOST"] for row in (dict(zip(("HOST",), line.split())) for line in crowded.must("peers").splitlines()[2:])] == names


def test_requests_without_a_cursor_get_all(crowded, start_daemon):
    """Programs that do not know pages get the whole lists as before."""
    with socket.socket(socket.AF_UNIX) as sock:
        sock.settimeout(PATIENCE)
        sock.connect(str(crowded.control))
        lines = sock.makefile()
        for command, key in (("peers", "peers"), ("paths", "hosts")):
            sock.sendall(json.dumps({"command": command}).encode() + b"\n")
            reply = json.loads(lines.readline())
            assert len(reply[key]) == 200 and "next" not in reply


def test_paths_between_adapters_in_pages(daemon):
    """One that has traffic is in the pages as in the whole list."""
    verify = Path(PVRDMACTL).parent / "tests/hosts/hosts_verify"
    subprocess.run([verify, "--seconds", "0.1", f"1={daemon.socket(1)}", f"2={daemon.socket(2)}"], timeout=PATIENCE,
                   stdout=subprocess.DEVNULL, check=True)
    with socket.socket(socket.AF_UNIX) as sock:
        sock.settimeout(PATIENCE)
        sock.connect(str(daemon.control))
        sock.sendall(b'{"command":"paths"}\n')
        whole = json.loads(sock.makefile().readline())["paths"]
        paged = [path for reply in pages(sock, command="paths") for path in reply["paths"]]
    assert len(whole) == 2 and sorted(whole, key=lambda row: row["from"]) == sorted(paged, key=lambda row: row["from"])


@pytest.mark.parametrize("request_of, complaint", [
    ({"command": "stats", "cursor": -1}, "cursor is no number from 0 to 4294967295"),
    ({"command": "stats", "cursor": "0"}, "cursor is no number from 0 to 4294967295"),
    *(({"command": command, "cursor": -1}, "cursor is no number from 0 to 4294967295")
      for command in ("adapters", "paths", "peers", "workers")),
    ({"command": "qps", "name": "node1", "cursor": 1 << 32}, "cursor is no number from 0 to 4294967295"),
    ({"command": "qps", "cursor": 0}, 'the request has no "name"'),
    ({"command": "qps", "cursor": 0, "name": "nix"}, "there is no adapter 'nix'"),
], ids=["negative", "text", "adapters", "paths", "peers", "workers", "too large", "no name", "unknown name"])
def test_bad_cursor(control, request_of, complaint):
    control.sendall(json.dumps(request_of).encode() + b"\n")
    reply = json.loads(control.makefile().readline())
    assert reply["ok"] is False and complaint in reply["error"]


def test_cursor_behind_the_end_is_the_last_page(control):
    for request, adapters in (({"command": "stats"}, []),
                              ({"command": "qps", "name": "node1"}, [{"name": "node1", "qps": []}])):
        control.sendall(json.dumps({**request, "cursor": (1 << 32) - 1}).encode() + b"\n")
        assert json.loads(control.makefile().readline()) == {"adapters": adapters, "ok": True}
    for request, reply in (("workers", {"workers": []}), ("peers", {"peers": []}), ("paths", {"paths": [], "hosts": []})):
        control.sendall(json.dumps({"command": request, "cursor": (1 << 32) - 1}).encode() + b"\n")
        assert json.loads(control.makefile().readline()) == {**reply, "ok": True}


def test_several_requests_in_one_connection(control):
    control.sendall(b'{"command":"version"}\n' * 50)
    lines = control.makefile()
    for _ in range(50):
        assert json.loads(lines.readline())["ok"]


def test_line_too_long_is_closed(daemon, control):
    control.sendall(b"x" * 5000)
    try:
        assert control.recv(1) == b""
    except ConnectionResetError:
        pass
    daemon.must("version")


def test_reader_that_does_not_read(daemon, control):
    control.setblocking(False)
    with pytest.raises(BlockingIOError):
        while True:
            control.send(b'{"command":"adapters"}\n' * 100)
    daemon.must("version")


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
    one, two = daemon.query("qps")["adapters"]
    assert (one["name"], two["name"], two["qps"]) == ("node1", "node2", [])
    qp = next(qp for qp in one["qps"] if qp["qpn"] == sender.qpn)
    assert (qp["type"], qp["state"], qp["tx_messages"], qp["wait"]) == ("UD", "RTS", 1, "")
    rows = [line.split() for line in daemon.must("qps", "node1").splitlines()]
    assert rows[0] == ["node1:"] and rows[1][:4] == ["QPN", "TYPE", "STATE", "PEER"]
    assert any(row[:5] == [str(sender.qpn), "UD", "RTS", "-", "-"] for row in rows)
    sender.close()


# ------------------------------------------------------------------- authors of changes


def change(control, **request):
    control.sendall(json.dumps(request).encode() + b"\n")
    return json.loads(control.makefile().readline())


def test_log_has_the_author_of_a_change(daemon):
    daemon.must("link", "node1", "down")
    line = next(line for line in daemon.log().splitlines() if "control: uid" in line)
    assert re.search(rf'control: uid {os.getuid()}, pid \d+: {{"command":"link","name":"node1","state":"down"}}: done$', line)


def test_log_has_the_author_of_a_refused_change(daemon, control):
    assert not change(control, command="remove-adapter", name="vm9")["ok"]
    daemon.wait_for_log(f'control: uid {os.getuid()}, pid {os.getpid()}: {{"command":"remove-adapter","name":"vm9"}}: refused: ')


@pytest.mark.parametrize("command", ["adapters", "paths", "peers", "qps", "stats", "workers", "fault-list", "version"])
def test_query_is_not_logged(daemon, control, command):
    assert change(control, command=command)["ok"]
    assert "control: uid" not in daemon.log()


def test_change_cannot_look_like_another_line(daemon, control):
    change(control, command="log-level", level="x\npvrdmad: node1: removed\x1b[2J")
    line, = (line for line in daemon.log().splitlines() if "control: uid" in line)
    assert r"x\npvrdmad: node1: removed\u001b[2J" in line


def test_long_change_is_cut(daemon, control):
    change(control, command="log-level", level="x" * 3000)
    line, = (line for line in daemon.log().splitlines() if "control: uid" in line)
    assert len(line) < 1000 and "refused: " in line
