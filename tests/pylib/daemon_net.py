# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
"""Hosts on loopback: addresses that one test owns, options of their daemons, the state of their peers."""

import random
import re
import socket
import ssl
import subprocess

import pipe_peer as p
from daemon_process import wait_until
from pipe_peer import Conn

LOCK_PORT = 7470
LOCK_HOST = 254
_network = None


class _Network:
    """A /24 of 127.0.0.0/8 that no other test uses as long as this socket is bound."""

    def __init__(self):
        while True:
            self.prefix = f"127.{random.randrange(1, 255)}.{random.randrange(256)}"
            self.sock = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
            try:
                self.sock.bind((f"{self.prefix}.{LOCK_HOST}", LOCK_PORT))
                return
            except OSError:
                self.sock.close()


def leave_network():
    """The next address() is of another network."""
    global _network
    if _network:
        _network.sock.close()
    _network = None


def address(number):
    """Of host `number`, 1 to 253, in this test's own network. All ports are free there."""
    global _network
    if not _network:
        _network = _Network()
    return f"{_network.prefix}.{number}"


def options(number, *peers, name=None, args=()):
    """Host `number` is named h1, h2, ... and listens at its address."""
    return ["--name", name or f"h{number}", "--listen", address(number),
            *(f"--peer=h{peer}={address(peer)}" for peer in peers), *map(str, args)]


def state_of(daemon):
    return daemon.query("peers")


def host_of(daemon):
    return state_of(daemon)["host"]


def peers_of(daemon):
    return {peer["name"]: peer for peer in state_of(daemon)["peers"]}


def peer_of(daemon, name):
    return peers_of(daemon).get(name, {"state": "unknown", "conns_out": 0, "conns_in": 0})


def wait_up(daemon, name, out=2, incoming=2):
    def up():
        peer = peer_of(daemon, name)
        return peer["state"] == "up" and (peer["conns_out"], peer["conns_in"]) == (out, incoming)

    wait_until(up, f"{name} is up")


def wait_pair(one, two):
    """h1 and h2 are connected both ways."""
    wait_up(one, "h2")
    wait_up(two, "h1")


def start_pair(start, first=(), second=(), **kwargs):
    """Hosts h1 and h2, connected both ways; `first` and `second`: their options."""
    pair = start(1, 2, args=first, **kwargs), start(2, 1, args=second, **kwargs)
    wait_pair(*pair)
    return pair


def greeted(name, **fields):
    """A connection to h1 that has exchanged HELLOs as host `name`."""
    conn = Conn.dial(address(1))
    assert conn.greet(name, **fields) == "h1"
    return conn


def dscp_of(end, address_and_port):
    """DSCP of a socket of this machine whose "src" or "dst" this is."""
    rows = subprocess.run(["ss", "-tnH", "--tos", end, address_and_port], capture_output=True, text=True, check=True).stdout
    return int(re.search(r"tos:(0x[0-9a-f]+|\d+)", rows)[1], 0) >> 2


def congestion_of(source, port):
    """The congestion control of each socket of this machine from the address to that port, or from that port."""
    rows = subprocess.run(["ss", "-tniOH", "src", source, "and", "(", "sport", f"= :{port}", "or", "dport", f"= :{port}", ")"],
                          capture_output=True, text=True, check=True).stdout
    return re.findall(r"\b([a-z_]+) wscale:", rows)


def numbered(kind, numbers):
    """Frames of 16 bytes."""
    return b"".join(p.frame(kind, b"%08d" % number) for number in numbers)


def flood(conn, check_full=lambda: None):
    """Send PINGs until the daemon reads no more and check_full(), then read all replies."""
    conn.sock.settimeout(1)
    sent = 0
    try:
        while sent < 4 << 20:
            data = numbered(p.PING, range(sent, sent + 1024))
            while data:
                data = data[conn.sock.send(data):]
            sent += 1024
        assert False, "64 MB of PINGs, and the daemon still reads"
    except (TimeoutError, ssl.SSLWantWriteError):
        whole = sent + 1024 - (len(data) + 15) // 16
    check_full()
    conn.sock.settimeout(p.PATIENCE)
    for first in range(0, whole, 1024):
        numbers = range(first, min(first + 1024, whole))
        assert conn.receive(16 * len(numbers)) == numbered(p.PONG, numbers)


def assert_well(daemon):
    """h1 still accepts an honest peer."""
    with greeted("honest") as conn:
        conn.ping()
    assert daemon.child.poll() is None
