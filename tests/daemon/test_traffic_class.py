# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
"""Traffic of a class has a connection of its own, whose packets have the DSCP of the class."""

import re
import select
import struct
import subprocess
import threading
import time

import pipe_peer as p
from daemon_net import address, options, peer_of, wait_up
from daemon_process import PATIENCE, wait_until
from pipe_peer import Listener
from sender import SIGNALED, SEND, STRIDE, WQES, Sender, SQ, QP_HEAD
from vfio_user import Client

CREATE_BIND = 15
ROCE_V2 = 2
OURS = bytes.fromhex("fe800000000000005054" "00fffe000001")
THEIRS = bytes.fromhex("fe800000000000005054" "00fffe000099")


class Peer(threading.Thread):
    """A host that claims every GID, and records the datagrams of each connection."""

    def __init__(self, listener):
        super().__init__(daemon=True)
        self.listener, self.conns, self.datagrams, self.ending = listener, [], [], False
        self.start()

    def run(self):
        self.listener.sock.settimeout(0.1)
        while not self.ending:
            ready, _, _ = select.select([self.listener.sock, *(conn.sock for conn, _ in self.conns)], [], [], 0.1)
            for sock in ready:
                if sock is self.listener.sock:
                    self.welcome()
                else:
                    self.take(next(pair for pair in self.conns if pair[0].sock is sock))

    def welcome(self):
        conn = self.listener.accept()
        kind, body = conn.frame()
        assert kind == p.HELLO
        index, dscp, count = struct.unpack_from("<BBB", body, 24)
        conn.send(p.hello("h2", index=index, count=count, dscp=dscp))
        self.conns.append((conn, dscp))

    def take(self, pair):
        conn, dscp = pair
        try:
            size, kind, _, fabric = struct.unpack("<IBBH", conn.read(8))
            body = conn.read(size - 8)
        except p.Closed:
            self.conns.remove(pair)
            return
        if kind == p.PING:
            conn.send(p.frame(p.PONG, body))
        elif kind == p.GID_QUERY:
            conn.send(p.frame(p.HERE, body[:16] + bytes([ROCE_V2]) + bytes(7), fabric=fabric))
        elif kind == p.DATAGRAM:
            self.datagrams.append((dscp, body[6]))

    def end(self):
        self.ending = True
        self.join()
        for conn, _ in self.conns:
            conn.close()


def post(sender, traffic_class):
    at = SQ + sender.posted % WQES * STRIDE
    sender.guest.put(at, "QIIIIII", sender.posted, 0, 0, SEND, SIGNALED, 0, 0)
    sender.guest.put(at + 32, "IIII16sBBBB", 77, 0x1234, sender.pd | 1 << 24, traffic_class << 20, THEIRS, 0, 0, 0, 64)
    sender.posted += 1
    sender.words[QP_HEAD // 4] = sender.posted % (2 * WQES)
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


def tos_of(port):
    rows = subprocess.run(["ss", "-tnH", "--tos", "src", f":{port}"], capture_output=True, text=True, check=True).stdout
    return int(re.search(r"tos:(0x[0-9a-f]+|\d+)", rows)[1], 0)


def test_traffic_class(start_daemon):
    with Listener(address(2)) as listener:
        peer = Peer(listener)
        daemon = start_daemon(adapters=1, args=options(1, 2, args=["--connections", "1"]))
        with Client(daemon.socket()) as client:
            client.negotiate()
            sender = Sender(client, features=0)
            sender.guest.command(CREATE_BIND, "III16sB3x", 4096, 0xFFFFFFFF, 0, OURS, ROCE_V2)
            send_until(sender, peer, 0, 0)
            assert [dscp for _, dscp in peer.conns] == [0]
            send_until(sender, peer, 46 << 2, 46)
            send_until(sender, peer, 10 << 2 | 3, 10)  # the lower two bits are ECN's
            assert sorted(dscp for _, dscp in peer.conns) == [0, 10, 46]
            assert {conn.sock.getpeername()[1]: dscp for conn, dscp in peer.conns} == {
                conn.sock.getpeername()[1]: tos_of(conn.sock.getpeername()[1]) >> 2 for conn, _ in peer.conns}
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
            sender.close()
        peer.end()


def test_connections_that_are_used_stay(start_daemon):
    """Unused connections to a host stay, too, as long as one of them is used."""
    with Listener(address(2)) as listener:
        peer = Peer(listener)
        daemon = start_daemon(adapters=1, args=options(1, 2, args=["--idle-timeout", "2", "--keepalive", "3"]))
        with Client(daemon.socket()) as client:
            client.negotiate()
            sender = Sender(client, features=0)
            sender.guest.command(CREATE_BIND, "III16sB3x", 4096, 0xFFFFFFFF, 0, OURS, ROCE_V2)
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
            sender.close()
        peer.end()
