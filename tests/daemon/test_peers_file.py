# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
"""Daemons that find each other by a peers file, or in etcd."""

import ipaddress
import itertools
import re
import signal
import socket
import time

import pytest

import pipe_peer as p
from daemon_load import Load
from daemon_net import address, greeted, options, peer_of, peers_of, state_of
from daemon_process import ROOT, run_pvrdmad, wait_until
from guest import Guest
from vfio_user import attach


@pytest.fixture(name="write_peers")
def fixture_write_peers(tmp_path):
    """A function that writes a peers file. Return: its path."""

    def write(hosts, gids=None):
        pins = f"gids = {gids}\n" if gids else ""
        path = tmp_path / "peers"
        path.write_text("".join(f"[host h{number}]\naddress = {address(number)}\n{pins}" for number in hosts))
        return path

    return write


def directory(daemon):
    return state_of(daemon)["directory"]


def where(conn, fabric, gid):
    """The type of a GID at the daemon that `conn` leads to, as peers request it; 0: it has no such GID."""
    conn.send(p.frame(p.FABRIC, fabric.encode().ljust(32, b"\0"), fabric=1))
    conn.send(p.frame(p.GID_QUERY, socket.inet_pton(socket.AF_INET6, gid) + bytes(8), fabric=1))
    kind, body = conn.frame()
    assert kind == p.HERE
    return body[16]


def test_hosts_of_a_file(start, write_peers):
    path = write_peers([1, 2, 3])
    one = start(1, args=["--peers", path])
    assert {name: (row["address"], row["state"]) for name, row in peers_of(one).items()} == {
        "h2": (f"{address(2)}:7471", "idle"), "h3": (f"{address(3)}:7471", "idle")}, "none is dialled before it is needed"
    assert directory(one)["backend"] == "static"


def test_file_is_read_again(start, write_peers):
    path = write_peers([1, 2])
    one = start(1, args=["--peers", path])
    write_peers([1, 3])
    one.child.send_signal(signal.SIGHUP)
    wait_until(lambda: "h3" in peers_of(one), "h3 is known")
    assert peers_of(one).get("h2", {"address": ""})["address"] == ""
    path.write_text("[host h4]\naddress = here\n")
    one.child.send_signal(signal.SIGHUP)
    one.wait_for_log(f"{path}:2: 'here' is not an IP address")
    assert "keys and hosts stay as they were" in one.log()
    assert peer_of(one, "h3")["address"] == f"{address(3)}:7471"


@pytest.mark.parametrize("text, says", [
    ("[host h2]\n", ":1: host 'h2' lacks address = ADDRESS"),
    ("[host h2]\naddress = 192.0.2.2\ngids = all\n", ":3: gids 'all' is not PREFIX/LENGTH"),
    ("[host h2]\naddress = 192.0.2.2\n", ":1: "),  # no key, and not --insecure
])
def test_mistakes_name_file_and_line(refuse, tmp_path, text, says):
    path = tmp_path / "peers"
    path.write_text(text)
    refuse(1, f"\npvrdmad: {path}{says}", *options(1, args=["--peers", path]), lines=2)


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


@pytest.mark.parametrize("args, announced", [((), "{own}:7471"), (("--advertise", "192.0.2.7:7000"), "192.0.2.7:7000")],
                         ids=["listen", "advertise"])
def test_daemon_announces_itself(start, etcd, args, announced):
    announced = announced.format(own=address(1))
    one = start(1, args=["--etcd", etcd.url, "--etcd-prefix", "lab/", "--etcd-lease", 2, *args])
    one.wait_for_log(f"directory: announced as h1 at {announced}")
    assert etcd.keys("lab/") == {"lab/hosts/h1/address": f'{{"address":"{announced}"}}'}
    now = directory(one)
    assert now["backend"] == "etcd" and now["connected"] and now["registered"]
    one.stop()
    assert etcd.keys("lab/") == {}


def test_settings_in_the_configuration_file(start_daemon, etcd, write_config):
    config = write_config(f"name = h1\nlisten = {address(1)}\netcd = {etcd.url}\netcd-lease = 2\netcd-prefix = x/\n")
    start_daemon(adapters=0, args=[config]).wait_for_log("announced as h1")
    assert list(etcd.keys("x/")) == ["x/hosts/h1/address"]


def test_daemon_without_etcd_serves(start, etcd):
    etcd.stop()
    one = start(1, args=["--etcd", etcd.url])
    assert not directory(one)["connected"]
    greeted("honest").close()
    assert one.stop() == 0


def documented_gids(text):
    """(host, fabric or "", network) of each prefix in the example."""
    host = None
    for line in text.splitlines():
        if section := re.match(r"\[host (\w+)\]", line):
            host = section[1]
        elif gids := re.match(r"gids ?(\w*) = (.*)", line):
            for word in gids[2].split():
                prefix, _, length = word.partition("/")
                wide = "." in prefix
                yield host, gids[1], ipaddress.ip_network(f"{'::ffff:' * wide}{prefix}/{int(length) + 96 * wide}")


@pytest.mark.parametrize("path", ["docs/multi-host.md", "docs/man/pvrdmad.conf.5"])
def test_examples_give_each_gid_to_one_host(path):
    gids = list(documented_gids((ROOT / path).read_text()))
    assert len({host for host, _, _ in gids}) == 2
    for (host, fabric, prefix), (other, its_fabric, its_prefix) in itertools.combinations(gids, 2):
        if host != other and (not fabric or not its_fabric or fabric == its_fabric):
            assert not prefix.overlaps(its_prefix), f"{host} and {other}: {prefix}, {its_prefix}"


# ---------------------------------------------------------------------- with guests

CREATE_BIND, DESTROY_BIND, VLAN_NONE, ROCE_V2 = 15, 16, 0xfff, 2
GID = "fd00::77"
KEY = "pvrdma/hosts/h1/gids/default/fd000000000000000000000000000077"


@pytest.fixture(name="plug")
def fixture_plug():
    """A function that puts a guest on an adapter."""
    made = []

    def plug(daemon, number=1):
        client = attach(daemon.socket(number))
        guest = Guest(client)
        guest.start()
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
    one = start(1, args=["--etcd", etcd.url, "--etcd-lease", 2], guest=True)
    guest = plug(one)
    bind(guest, GID)
    wait_until(lambda: etcd.keys().get(KEY) == '{"type":"v2"}', "the GID is announced")
    unbind(guest, GID)
    wait_until(lambda: KEY not in etcd.keys(), "the GID is withdrawn")
    bind(guest, GID)
    wait_until(lambda: KEY in etcd.keys(), "the GID is announced")
    one.kill()
    wait_until(lambda: not etcd.keys(), "the lease has ended")


def test_query_for_a_gid_gets_its_type(start, plug, write_peers):
    path = write_peers([1, 2])
    one = start(1, args=["--peers", path], guest=True)
    bind(plug(one), GID)
    for fabric, gid_type in (("default", ROCE_V2), ("blue", 0)):
        with greeted("h2") as conn:
            assert where(conn, fabric, GID) == gid_type


def start_pair(start, *args):
    return [start(number, args=args, guest=True) for number in (1, 2)]


def test_data_by_a_file(start, write_peers):
    path = write_peers([1, 2])
    one, two = start_pair(start, "--peers", path)
    Load(one, two).end()
    assert directory(one)["gids"] > 0


def test_pins_are_kept(start, write_peers):
    """A host that may not have a GID is not asked for it."""
    path = write_peers([1, 2], gids="198.51.100.0/24")
    one, two = start_pair(start, "--peers", path)
    load = Load(one, two, progress=False)
    try:
        wait_until(lambda: directory(one)["lookups"] > 0, "the peer is looked up")
        time.sleep(2)
        assert load.child.poll() is None
        assert peer_of(one, "h2")["state"] == peer_of(two, "h1")["state"] == "idle"
    finally:
        load.kill()
