# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
"""Daemons that find each other by a peers file, or in etcd: what the operator writes, and what comes of it."""

import json
import os
import signal
import socket
import subprocess
import time
from pathlib import Path

import pytest

import pipe_peer as p
from conftest import PVRDMAD, mac, run_pvrdmad, wait_until
from etcd import Etcd, free_port
from guest import Guest
from pipe_peer import Conn
from vfio_user import Client

NET = f"127.{110 + os.getpid() // 250 % 100}.{os.getpid() % 250}"


def address(number):
    return f"{NET}.{number}"


def write_peers(path, hosts, gids=None):
    pins = f"gids = {gids}\n" if gids else ""
    path.write_text("".join(f"[host h{number}]\naddress = {address(number)}\n{pins}" for number in hosts))


def state(daemon):
    return json.loads(daemon.ctl("--json", "peers").stdout)


def peer(daemon, name):
    return {row["name"]: row for row in state(daemon)["peers"]}.get(name)


@pytest.fixture(name="start")
def fixture_start(start_daemon):
    def start_host(number, *args, **kwargs):
        return start_daemon(args=["--name", f"h{number}", "--listen", address(number), *map(str, args)], **kwargs)

    return start_host


def where(conn, fabric, gid):
    """Ask a daemon as a peer does: the type of who has it there, 0 for nobody."""
    conn.send(p.frame(p.FABRIC, fabric.encode().ljust(32, b"\0"), fabric=1))
    conn.send(p.frame(p.WHERE, socket.inet_pton(socket.AF_INET6, gid) + bytes(8), fabric=1))
    kind, body = conn.frame()
    assert kind == p.HERE
    return body[16]


def test_hosts_of_a_file(start, tmp_path):
    path = tmp_path / "peers"
    write_peers(path, [1, 2, 3])
    one = start(1, "--peers", path, adapters=0)
    assert {row["name"]: row["address"] for row in state(one)["peers"]} == {
        "h2": f"{address(2)}:7471", "h3": f"{address(3)}:7471"}
    assert state(one)["directory"]["backend"] == "static"
    # Nobody is dialled before it is needed.
    assert all(row["state"] == "idle" for row in state(one)["peers"])


def test_file_is_read_again(start, tmp_path):
    path = tmp_path / "peers"
    write_peers(path, [1, 2])
    one = start(1, "--peers", path, adapters=0)
    write_peers(path, [1, 3])
    one.child.send_signal(signal.SIGHUP)
    wait_until(lambda: peer(one, "h3"), "h3 is known")
    assert not peer(one, "h2") or peer(one, "h2")["address"] == ""
    path.write_text("[host h4]\naddress = here\n")
    one.child.send_signal(signal.SIGHUP)
    one.wait_for_log(f"{path}:2: 'here' is no IP address")
    assert "keys and hosts stay as they were" in one.log()
    assert peer(one, "h3")["address"] == f"{address(3)}:7471"


def test_sighup_without_a_file(daemon):
    daemon.child.send_signal(signal.SIGHUP)
    assert daemon.ctl("adapters").returncode == 0


@pytest.mark.parametrize("text, says", [
    ("[host h2]\n", ":1: host 'h2' lacks address = ADDRESS"),
    ("[host h2]\naddress = 192.0.2.2\ngids = all\n", ":3: gids 'all' is no PREFIX/LENGTH"),
    ("[host h2]\naddress = 192.0.2.2\n", ":1: "),  # no key, and not --insecure
])
def test_mistakes_name_file_and_line(tmp_path, text, says):
    path = tmp_path / "peers"
    path.write_text(text)
    done = run_pvrdmad("--control", tmp_path / "c", "--name", "h1", "--listen", address(1), "--peers", path)
    assert done.returncode == 1
    assert done.stderr.splitlines()[-1].startswith(f"pvrdmad: {path}{says}"), done.stderr


@pytest.mark.parametrize("args, says", [
    (["--peers", "/none"], "cannot read peers file /none: No such file"),
    (["--peers", "/none", "--etcd", "http://127.0.0.1:1"], "peers and etcd: hosts are found by a file, or in etcd"),
    (["--etcd", "127.0.0.1"], "etcd '127.0.0.1' is no URL"),
    (["--etcd-lease", "5"], "there are settings of etcd, but not etcd = URL itself"),
    (["--advertise", "host.example"], "'host.example' is no IP address"),
    (["--etcd", "http://127.0.0.1:1", "--listen", "0.0.0.0:PORT", "--insecure"], "give --advertise ADDRESS"),
])
def test_wrong_options(tmp_path, args, says):
    args = [arg.replace("PORT", str(free_port())) for arg in args]
    done = run_pvrdmad("--control", tmp_path / "c", "--name", "h1", *args)
    assert done.returncode in (1, 2) and says in done.stderr, done.stderr


@pytest.fixture(name="etcd")
def fixture_etcd(tmp_path):
    server = Etcd(tmp_path)
    yield server
    server.stop()


def test_daemon_announces_itself(start, etcd):
    one = start(1, "--etcd", etcd.url, "--etcd-prefix", "lab/", "--etcd-lease", 2, adapters=0)
    one.wait_for_log(f"directory: announced as h1 at {address(1)}:7471")
    assert etcd.keys("lab/") == {"lab/hosts/h1": f'{{"address":"{address(1)}:7471"}}'}
    directory = state(one)["directory"]
    assert directory["backend"] == "etcd" and directory["connected"] and directory["registered"]
    one.stop()
    assert etcd.keys("lab/") == {}


def test_advertised_address(start_daemon, etcd):
    one = start_daemon(adapters=0, args=["--name", "h1", "--listen", f"{address(1)}", "--etcd", etcd.url,
                                         "--advertise", "192.0.2.7:7000"])
    one.wait_for_log("announced as h1 at 192.0.2.7:7000")


def test_settings_in_the_configuration_file(start_daemon, etcd, tmp_path):
    path = tmp_path / "conf"
    path.write_text(f"name = h1\nlisten = {address(1)}\netcd = {etcd.url}\netcd-lease = 2\netcd-prefix = x/\n")
    start_daemon(adapters=0, args=["--config", str(path)]).wait_for_log("announced as h1")
    assert list(etcd.keys("x/")) == ["x/hosts/h1"]


def test_daemon_without_etcd_serves(start, etcd):
    etcd.stop()
    one = start(1, "--etcd", etcd.url, adapters=0)
    assert not state(one)["directory"]["connected"]
    with Conn.dial(address(1)) as conn:
        assert conn.greet("honest") == "h1"
    assert one.stop() == 0


# ---------------------------------------------------------------------- with guests

CREATE_BIND, DESTROY_BIND, VLAN_NONE, ROCE_V2 = 15, 16, 0xfff, 2
GID = "fd00::77"
KEY = "pvrdma/gids/default/fd000000000000000000000000000077"


@pytest.fixture(name="plug")
def fixture_plug():
    """A function that puts a guest on an adapter."""
    made = []

    def plug(daemon, number=1):
        client = Client(daemon.socket(number))
        client.negotiate()
        guest = Guest(client)
        assert guest.start() == 0
        made.append((guest, client))
        return guest

    yield plug
    for guest, client in made:
        client.close()
        guest.close()


def bind(guest, gid):
    guest.command(CREATE_BIND, "III16sB3x", 1024, VLAN_NONE, 0, socket.inet_pton(socket.AF_INET6, gid), ROCE_V2)


def unbind(guest, gid):
    guest.command(DESTROY_BIND, "I16s", 0, socket.inet_pton(socket.AF_INET6, gid))


def test_gids_of_guests_are_announced(start, etcd, plug):
    one = start(1, "--etcd", etcd.url, "--etcd-lease", 2)
    guest = plug(one)
    bind(guest, GID)
    wait_until(lambda: etcd.keys().get(KEY) == '{"host":"h1","type":"v2"}', "the GID is announced")
    unbind(guest, GID)
    wait_until(lambda: KEY not in etcd.keys(), "the GID is withdrawn")
    bind(guest, GID)
    wait_until(lambda: KEY in etcd.keys(), "the GID is announced")
    one.child.kill()
    one.child.wait()
    wait_until(lambda: not etcd.keys(), "the lease has ended")
    one.child.returncode = 0  # as it was to be


def test_gid_is_taken_from_nobody(start, etcd, plug):
    one, two = start(1, "--etcd", etcd.url), start(2, "--etcd", etcd.url)
    first = plug(one)
    bind(first, GID)
    wait_until(lambda: KEY in etcd.keys(), "the GID is announced")
    bind(plug(two), GID)
    two.wait_for_log(f"directory: {GID} in fabric default is host h1's: an adapter here claims it too, and is refused")
    unbind(first, GID)
    wait_until(lambda: etcd.keys().get(KEY) == '{"host":"h2","type":"v2"}', "the other one has it")


def test_hosts_are_told_what_they_ask_for(start, plug, tmp_path):
    path = tmp_path / "peers"
    write_peers(path, [1, 2])
    one = start(1, "--peers", path)
    bind(plug(one), GID)
    with Conn.dial(address(1)) as conn:
        assert conn.greet("h2") == "h1"
        assert where(conn, "default", GID) == ROCE_V2
    with Conn.dial(address(1)) as conn:
        assert conn.greet("h2") == "h1"
        assert where(conn, "blue", GID) == 0


def verify(one, two, seconds):
    program = Path(PVRDMAD).parent / "tests/hosts/hosts_verify"
    return subprocess.Popen([program, "--seconds", str(seconds), f"1={one.socket(1)}", f"2={two.socket(1)}"],
                            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)


def assert_right(child, one, two):
    output = child.communicate(timeout=60)[0]
    assert child.returncode == 0, output + one.log() + two.log()


def start_pair(start, *args):
    pair = []
    for number in (1, 2):
        daemon = start(number, *args, adapters=0)
        done = daemon.ctl("add-adapter", f"name=node1,socket={daemon.socket(1)},mac={mac(number)}")
        assert done.returncode == 0, done.stderr
        pair.append(daemon)
    return pair


def test_data_by_a_file(start, tmp_path):
    path = tmp_path / "peers"
    write_peers(path, [1, 2])
    one, two = start_pair(start, "--peers", path)
    assert_right(verify(one, two, 1), one, two)
    assert state(one)["directory"]["gids"] > 0


def test_pins_are_kept(start, tmp_path):
    """A host that may not have the GIDs of its guests is not even asked."""
    path = tmp_path / "peers"
    write_peers(path, [1, 2], gids="198.51.100.0/24")
    one, two = start_pair(start, "--peers", path)
    child = verify(one, two, 1)
    try:
        wait_until(lambda: state(one)["directory"]["lookups"] > 0, "the peer is looked for")
        time.sleep(2)
        assert child.poll() is None
        assert peer(one, "h2")["state"] == peer(two, "h1")["state"] == "idle"
    finally:
        child.kill()
        child.communicate()


def test_data_by_etcd(start, etcd):
    one, two = start_pair(start, "--etcd", etcd.url, "--etcd-lease", 2)
    assert_right(verify(one, two, 1), one, two)
    assert state(one)["directory"]["lookups"] > 0 and state(two)["directory"]["lookups"] > 0


def test_etcd_stopped_under_load_costs_nothing(start, etcd):
    """For longer than the leases last."""
    one, two = start_pair(start, "--etcd", etcd.url, "--etcd-lease", 2)
    child = verify(one, two, 10)
    wait_until(lambda: state(one)["directory"]["watches"] > 0, "the peer is found")
    time.sleep(1)
    etcd.stop(signal.SIGKILL)
    time.sleep(6)
    etcd.start()
    assert_right(child, one, two)
    wait_until(lambda: state(one)["directory"]["registered"], "it is announced again")
    assert_right(verify(one, two, 1), one, two)
