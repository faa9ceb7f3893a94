# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
"""Traffic of a class has a connection of its own, whose packets have the DSCP of the class."""

import select
import struct
import threading
import time

import pytest

import pipe_peer as p
from daemon_net import address, dscp_of, options, peer_of, wait_up
from daemon_process import PATIENCE, wait_until
from pipe_peer import Listener
from sender import Sender
from vfio_user import attach

CREATE_BIND = 15
ROCE_V2 = 2
OURS = bytes.fromhex("fe800000000000005054" "00fffe000001")
THEIRS = bytes.fromhex("fe800000000000005054" "00fffe000099")


class Peer(threading.Thread):
    """A host that claims every GID, and records the datagrams of each connection."""

    def __init__(self, listener):
        super().__init__(daemon=True)
        self.listener, self.conns, self.datagrams, self.ending = listener, {}, [], False
        self.start()

    def run(self):
        while not self.ending:
            for sock in select.select([self.listener.sock, *self.conns], [], [], 0.1)[0]:
                if sock is self.listener.sock:
                    conn = self.listener.welcome("h2")
                    self.conns[conn.sock] = conn
                else:
                    self.take(self.conns[sock])

    def take(self, conn):
        try:
            size, kind, _, fabric = struct.unpack("<IBBH", conn.receive(8))
            body = conn.receive(size - 8)
        except p.Closed:
            del self.conns[conn.sock]
            return
        if kind == p.PING:
            conn.send(p.frame(p.PONG, body))
        elif kind == p.GID_QUERY:
            conn.send(p.frame(p.HERE, body[:16] + bytes([ROCE_V2]) + bytes(7), fabric=fabric))
        elif kind == p.DATAGRAM:
            self.datagrams.append((conn.dscp, body[6]))

    def dscps(self):
        return sorted(conn.dscp for conn in self.conns.values())

    def end(self):
        self.ending = True
        self.join()
        for conn in self.conns.values():
            conn.close()


@pytest.fixture
def peer():
    with Listener(address(2)) as listener:
        made = Peer(listener)
        yield made
        made.end()


@pytest.fixture
def start_sender(start_daemon, peer):
    """A function that starts h1 with these options. Return: the daemon, and a sender that has a GID."""
    made = []

    def start(*args):
        daemon = start_daemon(adapters=1, args=options(1, 2, args=args))
        client = attach(daemon.socket())
        sender = Sender(client, features=0)
        made.extend([client, sender])
        sender.guest.command(CREATE_BIND, "III16sB3x", 4096, 0xFFFFFFFF, 0, OURS, ROCE_V2)
        return daemon, sender

    yield start
    for thing in reversed(made):
        thing.close()


def post(sender, traffic_class):
    sender.put(THEIRS, traffic_class)
    sender.ring()
    sender.wait()


def send_until(sender, peer, traffic_class, dscp):
    """Datagrams of this class, until one comes by a connection of this DSCP."""
    end = time.monotonic() + PATIENCE
    while (dscp, traffic_class) not in peer.datagrams:
        assert time.monotonic() < end, peer.datagrams
        post(sender, traffic_class)
        time.sleep(0.02)


def post_steadily(daemon, sender, seconds, limit):
    """Datagrams for `seconds`. Return: the number of connects before, None if two were `limit` seconds apart."""
    begin = last = time.monotonic()
    post(sender, 0)
    wait_up(daemon, "h2", incoming=0)
    connects = peer_of(daemon, "h2")["connects"]
    while last < begin + seconds:
        post(sender, 0)
        last, before = time.monotonic(), last
        if last - before > limit:
            return None
        time.sleep(0.1)
    return connects


def test_traffic_class(start_sender, peer):
    daemon, sender = start_sender("--connections", "1")
    send_until(sender, peer, 0, 0)
    assert peer.dscps() == [0]
    send_until(sender, peer, 46 << 2, 46)
    send_until(sender, peer, 10 << 2 | 3, 10)  # the lower two bits are ECN's
    assert peer.dscps() == [0, 10, 46]
    for conn in list(peer.conns.values()):
        assert dscp_of("src", f":{conn.sock.getpeername()[1]}") == conn.dscp
    # From now on each class uses its own connection.
    peer.datagrams.clear()
    for traffic_class in (0, 46 << 2, 10 << 2):
        send_until(sender, peer, traffic_class, traffic_class >> 2)
    assert all(dscp == traffic_class >> 2 for dscp, traffic_class in peer.datagrams), peer.datagrams
    assert peer_of(daemon, "h2")["conns_out"] == peer_of(daemon, "h2")["wanted"] == 3
    # More classes than there are connections: those above use the first one.
    for dscp in range(20, 60):
        post(sender, dscp << 2)
    send_until(sender, peer, 59 << 2, 0)
    assert len(peer.conns) <= 16


def test_connections_that_are_used_stay(start_sender, peer):
    """Unused connections to a host stay, too, as long as one of them is used."""
    daemon, sender = start_sender("--idle-timeout", "2", "--keepalive", "3")
    # Once more if this process did not run for so long that the connections may have been closed.
    tries = (post_steadily(daemon, sender, 5, 1) for _ in range(10))
    connects = next((found for found in tries if found is not None), None)
    now = peer_of(daemon, "h2")
    assert (now["conns_out"], now["connects"]) == (2, connects)
    wait_until(lambda: peer_of(daemon, "h2")["state"] == "idle", "unused ones are closed")
    # New traffic opens them again.
    peer.datagrams.clear()
    send_until(sender, peer, 0, 0)
    assert peer_of(daemon, "h2")["connects"] > connects
