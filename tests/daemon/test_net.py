# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
"""Connections of daemons of several hosts, on loopback addresses; peers that break the protocol."""

import contextlib
import os
import re
import signal
import socket
import time
from pathlib import Path

import pytest

import pipe_peer as p
from daemon_idle import cpu, sleeps
from daemon_net import (address, assert_well, congestion_of, dscp_of, flood, greeted, host_of, options, peer_of, peers_of, start_pair,
                        wait_pair, wait_up)
from daemon_process import wait_until
from pipe_peer import Closed, Conn


def named(value):
    """Test ids: random or long values are left out."""
    return value if isinstance(value, str) else f"{len(value)} bytes"


# ------------------------------------------------------------------------- connecting


def test_two_hosts_meet(start):
    one, _ = start_pair(start)
    assert "connected to host h2 at" in one.log() and "host h2 has connected from" in one.log()
    rows = one.must("peers").splitlines()
    assert rows[0] == "this host is h1, TLS: off"
    assert re.match(rf"h2 +{re.escape(address(2))}:7471 +up +2 +2 +- +\d+ +off$", rows[2])
    assert 0 < peer_of(one, "h2")["rtt_us"] < 5e6


def test_three_hosts_and_one_direction(start):
    one, two, three = start(1), start(2, 1), start(3, 1)
    wait_until(lambda: {name: peer["conns_in"] for name, peer in peers_of(one).items()} == {"h2": 2, "h3": 2}, "both are in")
    assert {peer["conns_out"] for peer in peers_of(one).values()} == {0}
    wait_up(two, "h1", incoming=0)
    wait_up(three, "h1", incoming=0)


@pytest.mark.parametrize("args, num", [((), 2), (("--connections", "5"), 5), (("--workers", "3"), 3),
                                       (("--workers", "2", "--connections", "1"), 1)])
def test_number_of_connections(start, args, num):
    one = start(1, args=["--workers", "2"])
    two = start(2, 1, args=args)
    wait_up(two, "h1", out=num, incoming=0)
    wait_until(lambda: peer_of(one, "h2")["conns_in"] == num, "all are in")


def test_ipv6(start_daemon, namespace):
    one = start_daemon(adapters=0, args=["--name", "h1", "--listen", "[::1]:17471"], prefix=namespace)
    two = start_daemon(adapters=0, args=["--name", "h2", "--peer", "h1=[::1]:17471"], prefix=namespace)
    wait_up(two, "h1", incoming=0)
    assert host_of(one)["listen"] == ["[::1]:17471"]


def test_paths_show_hosts(start):
    one, _ = start(1, 2, 3), start(2)
    wait_up(one, "h2", incoming=0)
    wait_until(lambda: peer_of(one, "h3")["state"] == "unreachable", "h3 is off")
    hosts = {host["host"]: host for host in one.query("paths")["hosts"]}
    assert hosts["h2"]["path"] == "tcp" and hosts["h2"]["tx_bytes"] > 0
    assert hosts["h3"]["path"] == "none" and hosts["h3"]["reason"] == "Connection refused"
    assert list(peers_of(one)) == ["h2", "h3"]
    assert re.search(r"^host h2 +path tcp \(.*\) +rtt \d+ us +sent ", one.must("paths"), re.M)


def test_alone_without_options(daemon):
    assert host_of(daemon) is None
    assert "this host is by itself" in daemon.must("peers")
    inodes = {os.readlink(fd) for fd in Path(f"/proc/{daemon.child.pid}/fd").iterdir()}
    listening = {f"socket:[{line.split()[9]}]" for kind in ("tcp", "tcp6")
                 for line in Path(f"/proc/net/{kind}").read_text().splitlines()[1:]}
    assert not inodes & listening


# ---------------------------------------------------------------- connections that end, and new ones


def test_peer_that_comes_later(start):
    one = start(1, 2)
    wait_until(lambda: peer_of(one, "h2")["state"] == "unreachable", "h2 is off")
    assert peer_of(one, "h2")["error"] == "Connection refused"
    assert "h2: Connection refused" in one.must("peers")
    start(2)
    wait_up(one, "h2", incoming=0)


@pytest.mark.long
def test_attempts_are_few_and_logged_once(start):
    """The first ones after 50, 100, 200, 400 and 800 ms, then one a second, each plus or minus a quarter."""
    begin = time.monotonic()
    one = start(1, 2)

    def failures():
        return peer_of(one, "h2")["failures"]

    wait_until(lambda: failures() >= 10, "ten attempts")
    assert failures() <= 7 + (time.monotonic() - begin) / 0.75
    assert one.log().count("cannot connect to host h2") == 1


def test_peer_stopped_and_started(start):
    one, two = start_pair(start)
    before = one.open_files()
    assert two.stop() == 0
    one.wait_for_log("the connection to host h2 has ended: closed by the peer: not needed any more: this daemon ends")
    wait_until(lambda: peer_of(one, "h2")["conns_in"] == 0, "its connections are gone")
    wait_pair(one, start(2, 1))
    one.wait_for_files(before)


def test_peer_killed_and_started(start):
    one, two = start_pair(start)
    before = one.open_files()
    for _ in range(5):
        two.kill()
        two = start(2, 1)
        wait_pair(one, two)
    one.wait_for_files(before)


def test_resets(start, listener):
    """A connection that lasted is dialled again at once after a reset; after seven failures it would take a second."""
    one, pauses = start(1, 2, args=["--connections", "1"]), []
    conn = listener.welcome("h2")
    for _ in range(7):
        wait_up(one, "h2", out=1, incoming=0)
        time.sleep(0.6)  # above half a second it counts as a good one
        conn.reset()
        begin = time.monotonic()
        conn = listener.welcome("h2")
        pauses.append(time.monotonic() - begin)
    assert min(pauses[-3:]) < 0.5, pauses
    assert "Connection reset by peer" in one.log()


def test_peer_that_drops_us_at_once_is_dialled_with_pauses(start, listener):
    one = start(1, 2, args=["--connections", "1"])
    begin, count = time.monotonic(), 0
    while time.monotonic() < begin + 3:
        listener.welcome("h2").close()
        count += 1
    assert count < 9 + 2 * (time.monotonic() - begin), count
    assert one.child.poll() is None


def test_silent_peer_is_given_up(start, listener):
    one = start(1, 2, args=["--connections", "1", "--keepalive", "1"])
    conn = listener.welcome("h2")
    assert conn.frame()[0] == p.PING
    one.wait_for_log("connected to host h2 at")
    one.wait_for_log("the connection to host h2 has ended: it was silent for 1 s")
    listener.welcome("h2")


def test_silent_dialler_is_given_up(start):
    one = start(1, args=["--keepalive", "1"])
    with greeted("h2") as conn:
        assert conn.ends()
    assert "host h2 is not connected any more: it was silent for 1 s" in one.log()


def test_stopped_peer_is_given_up_and_found_again(start):
    """A host that does not answer, without an end of its connections: SIGSTOP."""
    one, two = start_pair(start, ["--keepalive", "1"], ["--keepalive", "1"])
    two.child.send_signal(signal.SIGSTOP)
    try:
        one.wait_for_log("the connection to host h2 has ended: it was silent for 1 s")
    finally:
        two.child.send_signal(signal.SIGCONT)
    wait_pair(one, two)


def test_unused_connections_are_closed(start):
    one = start(1, 2, args=["--keepalive", "1", "--idle-timeout", "2"])
    two = start(2)
    one.wait_for_log("connected to host h2 at")
    wait_until(lambda: peer_of(one, "h2")["state"] == "idle", "it is not needed")
    wait_until(lambda: peer_of(two, "h1")["conns_in"] == 0, "they are closed")
    assert "the connection to host h2 has ended: it was not used for long" in one.log()
    time.sleep(1)
    assert peer_of(one, "h2")["state"] == "idle"


def test_both_connect_at_once(start):
    """Each has its own set of connections, so neither has to give way."""
    for _ in range(5):
        one, two = start_pair(start)
        assert peer_of(one, "h2")["connects"] == peer_of(two, "h1")["connects"] == 2
        assert two.stop() == one.stop() == 0


@pytest.mark.long
def test_idle_with_peers(start):
    """Only keep-alive wakes it: 4 connections, a PING in 3.3 s each."""
    one, _ = start_pair(start)
    time.sleep(1.5)
    begin, used, slept = time.monotonic(), cpu(one), sleeps(one)
    time.sleep(7)
    seconds = time.monotonic() - begin
    assert sleeps(one) - slept <= 6 * seconds, "it wakes up too often"
    assert cpu(one) - used <= 1 + seconds / 7, "CPU time"


# ---------------------------------------------------------------------------- wrong identity


def test_two_hosts_of_one_name(start):
    one = start(1)
    two = start(2, name="h1", args=["--peer", f"other={address(1)}"])
    one.wait_for_log("is refused: host h1: this host has the same name: each needs one of its own")
    wait_until(lambda: peer_of(two, "other")["state"] == "unreachable", "it is refused")
    assert "the peer refuses the connection (wrong identity): this host has the same name" in peer_of(two, "other")["error"]


def test_dialling_oneself(start):
    start(1, args=["--peer", f"h2={address(1)}"]).wait_for_log("that is this daemon itself")


def test_wrong_host_at_the_address(start):
    one = start(1, 2)
    start(2, name="else")
    wait_until(lambda: peer_of(one, "h2")["error"] == "host 'else' has this address: correct the peer's address",
               "it is noticed")
    assert peer_of(one, "h2")["conns_out"] == 0


def test_name_that_is_taken(host):
    """A newer daemon of the same name replaces the older one, as after a restart. The older one is refused while the
    newer one runs."""
    with greeted("twin", instance=1) as old, greeted("twin", instance=2) as new:
        assert old.close_frame() == (p.CLOSE_REPLACED, "a newer connection is there")
        assert old.ends()
        with Conn.dial(address(1)) as again:
            again.send(p.hello("twin", instance=1))
            reason, text = again.close_frame()
            assert reason == p.CLOSE_IDENTITY and re.match(r"another daemon at .* has the same name, and is newer", text)
        assert peer_of(host, "twin")["conns_in"] == 1
        new.ping()
    wait_until(lambda: peer_of(host, "twin")["conns_in"] == 0, "it has left")
    greeted("twin", instance=1).close()


def test_same_index_replaces(host):
    fields = {"instance": 7, "count": 2}
    with greeted("h2", index=0, **fields) as old, greeted("h2", index=1, **fields) as other:
        assert peer_of(host, "h2")["conns_in"] == 2
        with greeted("h2", index=0, **fields):
            assert old.close_frame()[0] == p.CLOSE_REPLACED
            other.ping()
            wait_until(lambda: peer_of(host, "h2")["conns_in"] == 2, "two are left")


# ------------------------------------------------------------------------------ wrong frames


@pytest.mark.parametrize("data, pattern", [
    (p.hello("x", magic=0x12345678), "this is not a pvrdma daemon"),
    (p.hello("x", versions=(2, 1)), "its lowest version is above its highest"),
    (p.hello("x", size=12), "frame too short"),
    (p.hello("x", size=1 << 30), "frame too long"),
    (p.hello("x", chunk=0), "chunk size out of range"),
    (p.hello("x", index=3, count=2), "connection index out of range"),
    (p.hello("x", count=17), "connection index out of range"),
    (p.hello("x", dscp=64), "DSCP out of range"),
    (p.hello(""), "a host's name must be"),
    (p.hello("a b"), "a host's name must be"),
    (p.hello("n" * 64), "a host's name must be"),
    (b"GET / HTTP/1.1\r\n\r\n", "unknown frame type"),
    (b"\x16\x03\x01\x02\x00\x01\x00\x01", "it begins with TLS, and here TLS is off"),
    (p.frame(p.PING, b"x" * 8), "its first frame is not HELLO"),
    (p.frame(p.ACK, b"x" * 48), "frame type of the other direction"),
    (p.frame(99), "unknown frame type"),
    (p.frame(p.HELLO, b"\0" * 96, flags=1), "unknown flag"),
    (b"\0" * 200, "unknown frame type"),
    (b"\xff" * 200, "unknown frame type"),
], ids=named)
def test_bad_beginning(host, data, pattern):
    with Conn.dial(address(1)) as conn:
        conn.send(data)
        assert conn.ends()
    assert re.search(r"a connection from [\d.]+:\d+ is refused: .*" + pattern, host.log()), host.log()
    assert_well(host)


def test_wrong_version_gets_both_versions(host):
    with Conn.dial(address(1)) as conn:
        conn.send(p.hello("future", versions=(2, 9)))
        reason, text = conn.close_frame()
        assert reason == p.CLOSE_VERSION and "versions 2 to 9" in text
        assert conn.ends()
    with Conn.dial(address(1)) as conn:
        conn.send(p.hello("past", versions=(0, 0)))
        assert conn.ends()
    greeted("future", versions=(1, 9)).close()


@pytest.mark.parametrize("fields, pattern", [
    ({"versions": (2, 2)}, "it answers with versions 2 to 2"),
    ({"versions": (1, 3)}, "it answers with versions 1 to 3"),
    ({"index": 1, "count": 2}, "it answers for connection 1 of 2, expected 0 of 1"),
    ({"magic": 1}, "this is not a pvrdma daemon"),
])
def test_bad_answer(start, listener, fields, pattern):
    one = start(1, 2, args=["--connections", "1"])
    conn = listener.welcome("h2", **fields)
    assert conn.ends()
    one.wait_for_log(pattern)
    listener.welcome("h2")
    wait_up(one, "h2", out=1, incoming=0)


@pytest.mark.parametrize("versions", [(2, 2), (0, 0)], ids=["future", "past"])
def test_peer_that_comes_back_with_another_version(start, listener, versions):
    """It is upgraded or downgraded while this daemon runs, and then has a version again that this one speaks."""
    one = start(1, 2, args=["--connections", "1"])
    conn = listener.welcome("h2")
    wait_up(one, "h2", out=1, incoming=0)
    conn.close()
    for _ in range(3):
        conn = listener.welcome("h2", versions=versions)
        assert conn.ends()
    one.wait_for_log(f"it answers with versions {versions[0]} to {versions[1]}")
    assert peer_of(one, "h2")["state"] != "up"
    listener.welcome("h2", versions=(1, 1), instance=7)
    wait_up(one, "h2", out=1, incoming=0)
    assert one.log().count(f"it answers with versions {versions[0]}") == 1


def test_hello_byte_by_byte(host):
    with Conn.dial(address(1)) as conn:
        data = p.hello("slow") + p.frame(p.PING, b"01234567")
        for number, byte in enumerate(data):
            conn.send(bytes([byte]))
            # Some bytes arrive alone. A pause after each one takes longer than the daemon waits, on a busy machine.
            if number % 8 == 0:
                time.sleep(0.002)
        assert conn.frame()[0] == p.HELLO
        assert conn.frame() == (p.PONG, b"01234567")


def test_hello_and_frames_in_one_packet(host):
    with Conn.dial(address(1)) as conn:
        conn.send(p.hello("quick") + p.frame(p.PING, b"01234567") * 3)
        assert conn.frame()[0] == p.HELLO
        for _ in range(3):
            assert conn.frame() == (p.PONG, b"01234567")


@pytest.mark.parametrize("data", [
    p.frame(99), p.frame(p.HELLO, b"\0" * 96), p.hello("again"), p.frame(p.REQUEST, b"\0" * 4), p.frame(p.PING, size=3),
    p.frame(p.REQUEST, b"\xff" * 112, fabric=1), p.frame(p.ACK, b"\0" * 48), p.frame(p.PING, b"x" * 8, fabric=7),
    p.frame(p.GID_QUERY, b"\0" * 24, fabric=5), p.frame(p.FABRIC, b"\xff" * 32, fabric=1), p.frame(p.PING, size=1 << 31),
], ids=named)
def test_bad_frame_ends_the_connection(host, data):
    with greeted("bad") as conn:
        conn.send(data)
        reason, _ = conn.close_frame()
        assert reason == p.CLOSE_PROTOCOL
        assert conn.ends()
    host.wait_for_log("host bad is not connected any more: ")
    assert_well(host)


def test_truncated_frame(host):
    with greeted("h2") as conn:
        conn.send(p.frame(p.PING, b"0123", size=16))
    wait_until(lambda: peer_of(host, "h2")["conns_in"] == 0, "it has left")
    assert_well(host)


def test_garbage(host):
    for number in range(64):
        with greeted("noise") if number % 2 else Conn.dial(address(1)) as conn, contextlib.suppress(Closed):
            conn.send(os.urandom(1024))
    assert_well(host)


# ------------------------------------------------------------------------------ unauthenticated


def test_slow_loris(host):
    with Conn.dial(address(1)) as conn:
        begin = time.monotonic()
        try:
            conn.send(b"\x68\0\0\0\x01\0\0\0")  # the header of a HELLO of 104 bytes; then a byte a second
            while not conn.ends(1):
                assert time.monotonic() - begin < p.PATIENCE, "its bytes put the end off"
                conn.send(b"\x68")
        except Closed:
            pass
        assert time.monotonic() - begin > 3
    assert "is refused: no HELLO within 5 s" in host.log()


def test_half_open(host):
    conns = [Conn.dial(address(1)) for _ in range(20)]
    wait_until(lambda: host_of(host)["handshakes"] + host_of(host)["refused"] >= 20, "they are accepted")
    assert_well(host)
    for conn in conns:
        assert conn.ends()
        conn.close()
    wait_until(lambda: host_of(host)["handshakes"] == 0, "all are closed")


def test_half_closed(host):
    with greeted("h2") as conn:
        conn.sock.shutdown(socket.SHUT_WR)
        assert conn.ends()


def test_bound_of_an_address(host):
    conns = [Conn.dial(address(1), source=address(200)) for _ in range(80)]
    wait_until(lambda: host_of(host)["refused"] >= 16, "those above the bound are refused")
    assert host_of(host)["handshakes"] <= 64
    assert "64 of that address have not finished their handshake" in host.log()
    assert_well(host)  # from another address
    for conn in conns:
        conn.close()


def test_bound_of_all_makes_room_for_the_newest(host):
    conns = [Conn.dial(address(1), source=address(100 + number // 50)) for number in range(300)]

    def all_came():
        now = host_of(host)
        assert now["handshakes"] <= 256
        return now["accepted"] + now["refused"] + now["handshakes"] == 300

    wait_until(all_came, "all came")
    assert "is refused: its handshake is slow, and 256 newer ones are in progress" in host.log()
    assert_well(host)
    for conn in conns:
        conn.close()


def test_a_thousand_connects(host):
    for number in range(1000):
        with Conn.dial(address(1)) as conn:
            if number % 3 == 0:
                conn.reset()
            elif number % 3 == 1:
                conn.send(p.hello("many")[:number % 104])
            else:
                conn.greet("many", instance=1)
    assert_well(host)


def test_log_is_not_flooded(host):
    begin = time.monotonic()
    for _ in range(200):
        with Conn.dial(address(1)) as conn:
            conn.send(b"x" * 200)
            conn.ends()
    # Ten lines in 5 s, and one with the number of suppressed lines.
    assert host.log().count("is refused") <= 30 + 2 * (time.monotonic() - begin)
    assert host_of(host)["refused"] == 200


def test_unread_answers(host):
    """The daemon stops reading, and keeps a bound of memory. Replies arrive completely once the peer reads."""

    def check_full():
        assert_well(host)
        assert host.resident() < 400 << 10

    with greeted("late") as conn:
        flood(conn, check_full)


# ------------------------------------------------------------------------------------- DSCP


@pytest.mark.parametrize("args, dscp, result", [((), 46, 46), ((), 0, 0), (("--dscp", "10"), 46, 10), (("--dscp", "10"), 0, 10),
                                                (("--dscp", "0"), 46, 0), (("--dscp", "guest"), 10, 10)])
def test_answers_are_of_the_same_class(start, args, dscp, result):
    start(1, args=args)
    with greeted("h2", dscp=dscp) as conn:
        assert dscp_of("dst", f":{conn.sock.getsockname()[1]}") == result


def congestion_controls(kind):
    return (Path("/proc/sys/net/ipv4") / f"tcp_{kind}congestion_control").read_text().split()


def test_congestion_control_of_both_ends(start):
    """The other end has the kernel's default, or its own option."""
    default, = congestion_controls("")
    others = [name for name in congestion_controls("allowed_") if name != default]
    if not others:
        pytest.skip(f"this kernel allows no congestion control but {default}")
    start_pair(start, first=["--congestion", others[0]])
    for source, wanted in ((1, others[0]), (2, default)):
        sockets = congestion_of(address(source), 7471)
        assert sockets and set(sockets) == {wanted}, source


def test_congestion_control_without_the_capability_is_one_line(refuse):
    restricted = set(congestion_controls("available_")) - set(congestion_controls("allowed_"))
    if not restricted:
        pytest.skip("this kernel allows each congestion control that it has")
    refuse(2, "needs the capability CAP_NET_ADMIN here", "--congestion", min(restricted),
           prefix=["setpriv", "--bounding-set=-net_admin"] if os.geteuid() == 0 else [])


def test_fixed_class_of_what_is_dialled(start, listener):
    one = start(1, 2, args=["--connections", "1", "--dscp", "12"])
    listener.welcome("h2")
    wait_up(one, "h2", out=1, incoming=0)
    assert dscp_of("dst", f"{address(2)}:7471") == 12


# ------------------------------------------------------------------------------ wrong settings


@pytest.mark.parametrize("args, pattern", [
    (["--listen", "192.0.2.1"], "listen 192.0.2.1:7471 without TLS: give tls-psk-file, or tls-cert"),
    (["--listen", "0.0.0.0"], "listen 0.0.0.0:7471 without TLS"),
    (["--peer", "x=192.0.2.1"], "peer 192.0.2.1:7471 without TLS"),
    (["--listen", "[::]:1"], r"listen \[::\]:1 without TLS"),
    (["--listen", "myhost"], "'myhost' is not an IP address, such as 192.0.2.1:7471"),
    (["--listen", "127.0.0.1:0"], "port '0' is not a number from 1 to 65535"),
    (["--listen", "127.0.0.1:70000"], "port '70000' is not a number"),
    (["--listen", "[::1"], r"address '\[::1': expected \[ADDRESS\]:PORT"),
    (["--peer", "x"], "peer 'x' is not NAME=ADDRESS"),
    (["--peer", "a b=127.0.0.1"], "host name 'a b' has characters"),
    (["--peer", "=127.0.0.1"], "a host's name is empty"),
    (["--peer", "x=127.0.0.1", "--peer", "x=127.0.0.2"], "two peers are named 'x'"),
    (["--name", "x", "--peer", "x=127.0.0.1"], "peer 'x' has the name of this host"),
    (["--name", "n" * 64], "has 64 characters, the limit is 63"),
    (["--connections", "17"], "connections '17' is not a number from 1 to 16"),
    (["--keepalive", "0"], "keepalive '0' is not a number from 1"),
    (["--idle-timeout", "x"], "idle-timeout 'x' is not a number"),
    (["--tls-cert", "c"], "tls-cert, tls-key and tls-ca belong together"),
    (["--tls-cert", "c", "--tls-key", "k", "--tls-ca", "a", "--tls-psk-file", "f"], "not both"),
    (["--insecure", "--tls-psk-file", "f"], "insecure turns TLS off"),
    (["--congestion", ""], "congestion '' is empty, or longer than 15 characters"),
    (["--congestion", "n" * 16], "congestion 'n+' is empty, or longer than 15 characters"),
    (["--congestion", "none"], "congestion 'none': No such file or directory: expected one of /proc/sys/net/ipv4/tcp_available"),
    (["--dscp", "64"], "dscp '64' is neither guest nor a number from 0 to 63"),
    (["--dscp", "high"], "dscp 'high' is neither guest nor"),
])
def test_wrong_options(refuse, args, pattern):
    refuse(2, pattern, *args)


@pytest.mark.usefixtures("host")
def test_address_in_use(refuse):
    refuse(1, f"cannot listen at {address(1)}:7471: Address already in use: another daemon is there", *options(1))


def test_address_of_no_interface(refuse):
    refuse(1, "this host has no such address", "--insecure", "--listen", "192.0.2.1")


def test_configuration_file(start_daemon, start, write_config):
    config = write_config(f"name = h1\nlisten = {address(1)}\nlisten = {address(4)}:7472\npeer = h2={address(2)}\n"
                          "connections = 3\nkeepalive = 5\ninsecure = off\n")
    one, two = start_daemon(adapters=0, args=[config]), start(2)
    wait_up(one, "h2", out=3, incoming=0)
    assert host_of(one)["listen"] == [f"{address(1)}:7471", f"{address(4)}:7472"]
    assert peer_of(two, "h1")["conns_in"] == 3
