# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
"""Daemons that find each other by a peers file, or in etcd."""

import signal
import socket
import time

import pytest

import pipe_peer as p
from daemon_load import Load
from daemon_net import address, peers_of, state_of
from daemon_process import mac, run_pvrdmad, wait_until
from etcd import Etcd
from guest import Guest
from pipe_peer import Conn
from vfio_user import Client

def write_peers(path, hosts, gids=None):
    pins = f"gids = {gids}\n" if gids else ""
    path.write_text("".join(f"[host h{number}]\naddress = {address(number)}\n{pins}" for number in hosts))


def peer(daemon, name):
    return peers_of(daemon).get(name)


def directory(daemon):
    return state_of(daemon)["directory"]


@pytest.fixture(name="start")
def fixture_start(start_daemon):
    def start_host(number, *args, **kwargs):
        return start_daemon(args=["--name", f"h{number}", "--listen", address(number), *map(str, args)], **kwargs)

    return start_host


def where(conn, fabric, gid):
    """The type of a GID at the daemon that `conn` leads to, as peers request it; 0: it has no such GID."""
    conn.send(p.frame(p.FABRIC, fabric.encode().ljust(32, b"\0"), fabric=1))
    conn.send(p.frame(p.GID_QUERY, socket.inet_pton(socket.AF_INET6, gid) + bytes(8), fabric=1))
    kind, body = conn.frame()
    assert kind == p.HERE
    return body[16]


def test_hosts_of_a_file(start, tmp_path):
    path = tmp_path / "peers"
    write_peers(path, [1, 2, 3])
    one = start(1, "--peers", path, adapters=0)
    assert {name: (row["address"], row["state"]) for name, row in peers_of(one).items()} == {
        "h2": (f"{address(2)}:7471", "idle"), "h3": (f"{address(3)}:7471", "idle")}, "none is dialled before it is needed"
    assert directory(one)["backend"] == "static"


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
    one.wait_for_log(f"{path}:2: 'here' is not an IP address")
    assert "keys and hosts stay as they were" in one.log()
    assert peer(one, "h3")["address"] == f"{address(3)}:7471"


def test_sighup_without_a_file(daemon):
    daemon.child.send_signal(signal.SIGHUP)
    assert daemon.ctl("adapters").returncode == 0


@pytest.mark.parametrize("text, says", [
    ("[host h2]\n", ":1: host 'h2' lacks address = ADDRESS"),
    ("[host h2]\naddress = 192.0.2.2\ngids = all\n", ":3: gids 'all' is not PREFIX/LENGTH"),
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
    (["--etcd", "127.0.0.1"], "etcd '127.0.0.1' is not a URL"),
    (["--etcd-lease", "5"], "there are settings of etcd, but not etcd = URL itself"),
    (["--advertise", "host.example"], "'host.example' is not an IP address"),
    (["--etcd", "http://127.0.0.1:1", "--listen", "0.0.0.0", "--insecure"], "give --advertise ADDRESS"),
])
def test_wrong_options(tmp_path, namespace, args, says):
    done = run_pvrdmad("--control", tmp_path / "c", "--name", "h1", *args, prefix=namespace)
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
    now = directory(one)
    assert now["backend"] == "etcd" and now["connected"] and now["registered"]
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
    assert not directory(one)["connected"]
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
    two.wait_for_log(f"directory: {GID} in fabric default belongs to host h1: the claim of an adapter here is refused")
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
    Load(one, two).end()
    assert directory(one)["gids"] > 0


def test_pins_are_kept(start, tmp_path):
    """A host that may not have a GID is not asked for it."""
    path = tmp_path / "peers"
    write_peers(path, [1, 2], gids="198.51.100.0/24")
    one, two = start_pair(start, "--peers", path)
    load = Load(one, two, progress=False)
    try:
        wait_until(lambda: directory(one)["lookups"] > 0, "the peer is looked up")
        time.sleep(2)
        assert load.child.poll() is None
        assert peer(one, "h2")["state"] == peer(two, "h1")["state"] == "idle"
    finally:
        load.kill()


def test_data_by_etcd(start, etcd):
    one, two = start_pair(start, "--etcd", etcd.url, "--etcd-lease", 2)
    Load(one, two).end()
    assert directory(one)["lookups"] > 0 and directory(two)["lookups"] > 0


@pytest.mark.long
def test_etcd_stopped_under_load_costs_nothing(start, etcd):
    """For longer than the leases last."""
    one, two = start_pair(start, "--etcd", etcd.url, "--etcd-lease", 2)
    load = Load(one, two)
    assert directory(one)["watches"] > 0
    etcd.stop(signal.SIGKILL)
    time.sleep(6)
    load.wait_for_progress()
    etcd.start()
    load.wait_for_progress()
    load.end()
    wait_until(lambda: directory(one)["registered"], "it is announced again")
    Load(one, two).end()
