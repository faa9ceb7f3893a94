# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
"""Hosts without an RDMA NIC, and peers that request a queue pair of one. tests/vm/test_verbs.py has a NIC."""

import os
import struct

import pytest

import pipe_peer as p
from daemon_net import address, assert_well, greeted, peer_of, start_pair
from daemon_process import wait_until
from keys import new_psk, psk_options
from pipe_peer import Conn

RDMA, VERBS, RNDV = 1, 2, 16
ALL = RDMA | VERBS | RNDV
SYSFS = "/sys/class/infiniband"
no_nic = pytest.mark.skipif(os.path.isdir(SYSFS) and bool(os.listdir(SYSFS)), reason="this host has an RDMA NIC")


def queue_pair(qpn=17, psn=1, mtu=3, buffers=16, size=65536, reads=0):
    return p.frame(p.VERBS_QP, struct.pack("<16sIIHBBIII", b"\x01" * 16, qpn, psn, 0, mtu, reads, buffers, size, 0))


def why_not(daemon, name):
    peer = peer_of(daemon, name)
    assert peer["verbs"] == "" and peer["verbs_in"] == 0
    assert peer["zerocopy"] is False and peer["zerocopy_error"] == ""
    return peer["verbs_error"]


@no_nic
def test_without_a_nic_all_is_as_ever(start):
    one, other = start_pair(start)
    assert why_not(one, "h2") == why_not(other, "h1") == "this host has no RDMA NIC"
    assert "RDMA" not in one.log() + other.log() and "warning" not in one.log() + other.log()
    assert "this host has no RDMA NIC" in one.must("--json", "paths")


def test_nics_that_are_not_to_be_used(start):
    one, other = start_pair(start, first=["--rdma-device", "none"])
    assert why_not(one, "h2") == "this host does not use RDMA NICs"
    assert why_not(other, "h1") == "it does not use RDMA NICs"


def test_nic_that_is_not_there(start):
    one, _ = start_pair(start, first=["--rdma-device", "nope0"])
    assert why_not(one, "h2") == "this host has no RDMA NIC nope0"
    assert one.log().count("there is no RDMA NIC nope0 yet") == 1


def test_tls_is_not_evaded_in_silence(start, tmp_path):
    """With keys, no NIC is used without --rdma-unencrypted; both ends show the reason."""
    key = new_psk()
    ends = [psk_options(tmp_path, f"h{number}", all=key) for number in (1, 2)]
    one, other = start_pair(start, [*ends[0], "--rdma-device", "rxe0"], [*ends[1], "--rdma-unencrypted"])
    why = "TLS is on, RDMA NICs do not encrypt, and --rdma-unencrypted was not given"
    assert why_not(one, "h2") == why
    assert why in one.must("--json", "paths") and why in one.must("paths")
    assert why_not(other, "h1") == "it does not use RDMA NICs"
    assert one.log().count(f"the RDMA NIC rxe0 is not used: {why}") == 1
    assert "not used" not in other.log()


@no_nic
def test_nics_in_spite_of_tls(start, tmp_path):
    key = new_psk()
    daemons = start_pair(start, *([*psk_options(tmp_path, name, all=key), "--rdma-unencrypted"] for name in ("h1", "h2")))
    assert [why_not(daemon, name) for daemon, name in zip(daemons, ("h2", "h1"))] == ["this host has no RDMA NIC"] * 2


@pytest.mark.parametrize("name", ["", "a/b", "x" * 64], ids=["empty", "slash", "long"])
def test_bad_name(refuse, name):
    refuse(2, "is neither auto, none nor a device's name", "--rdma-device", name)


def features_of(conn, features=None):
    """Of its HELLO: the reply to ours, or the one that it begins with."""
    if features is not None:
        conn.send(p.hello("curious", features=features))
    kind, body = conn.frame()
    assert kind == p.HELLO
    return struct.unpack_from("<I", body, 16)[0]


@pytest.mark.parametrize("args, offered, agreed", [
    ((), RDMA | RNDV, RDMA | RNDV),
    ((), RDMA, RDMA),
    (("--rdma-zerocopy", "on"), RDMA | RNDV | 1 << 31, RDMA | RNDV),
    (("--rdma-zerocopy", "off"), RDMA | RNDV, RDMA),
    (("--rdma-device", "none"), RDMA | RNDV, 0),
])
def test_hello_negotiates_rendezvous(start, listener, args, offered, agreed):
    """HELLO negotiates rendezvous: without it, its field in VERBS_QP is zero."""
    start(1, 2, args=args)
    with Conn.dial(address(1)) as conn:
        assert features_of(conn, offered) == agreed
    wanted = RDMA | RNDV if not args else agreed
    assert features_of(listener.accept()) & (RDMA | RNDV) == wanted


@no_nic
@pytest.mark.parametrize("features, reads", [(RDMA | VERBS, 0), (ALL, 1), (ALL, 255)], ids=["old", "one", "most"])
def test_request_for_a_queue_pair_gets_the_reason(host, features, reads):
    for _ in range(20):
        with Conn.dial(address(1)) as conn:
            conn.send(p.hello("hopeful", features=features) + queue_pair(reads=reads))
            reason, text = conn.close_frame()
            assert reason == p.CLOSE_DEVICE and text == "this host has no RDMA NIC"
            assert conn.ends()
    assert "refused" not in host.log()
    assert_well(host)


@pytest.mark.parametrize("features, data, why", [
    (ALL, queue_pair(reads=0), "RDMA READs and no RNDV, or the other way round"),
    (RDMA | VERBS, queue_pair(reads=1), "RDMA READs and no RNDV, or the other way round"),
    (RDMA | VERBS, p.frame(p.PING, b"12345678"), "its second frame is not VERBS_QP"),
    (RDMA | VERBS, p.hello("rogue"), "its second frame is not VERBS_QP"),
    (RDMA | VERBS, queue_pair(mtu=0), "MTU out of range"),
    (RDMA | VERBS, queue_pair(buffers=1 << 30), "number of buffers out of range"),
    (RDMA | VERBS, queue_pair(qpn=1 << 24), "QP number or PSN above 24 bits"),
    (RDMA | VERBS, queue_pair() + b"x", ""),  # it is refused for lack of a NIC, which is not logged
], ids=["no reads", "no rendezvous", "ping", "hello", "mtu", "buffers", "qpn", "more"])
def test_bad_queue_pair(host, features, data, why):
    with Conn.dial(address(1)) as conn:
        conn.send(p.hello("rogue", features=features) + data)
        assert conn.ends()
    assert why in host.log()
    assert_well(host)


def test_queue_pair_that_never_comes(host):
    with Conn.dial(address(1)) as conn:
        conn.send(p.hello("rogue", features=RDMA | VERBS))
        assert conn.ends()
    wait_until(lambda: "no HELLO within 5 s" in host.log(), "it is refused")
    assert_well(host)


def test_queue_pair_after_the_hellos(host):
    with greeted("rogue", features=RDMA) as conn:
        conn.send(queue_pair())
        reason, text = conn.close_frame()
        assert reason == p.CLOSE_PROTOCOL and "VERBS_QP" in text
    assert_well(host)
