# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
"""The socket of an adapter's Ethernet segment, wire=unix:PATH, with this test in the place of QEMU."""

import os
import random
import socket
import struct

import pytest
from daemon_process import wait_until


@pytest.fixture
def wire(daemon):
    path = daemon.folder / "wire"
    daemon.add_adapter("wired", 7, wire=f"unix:{path}")
    return path


def _connect(path):
    qemu = socket.socket(socket.AF_UNIX)
    qemu.settimeout(10)
    qemu.connect(str(path))
    return qemu


def _frame(data):
    return struct.pack("!I", len(data)) + data


def _is_closed(qemu):
    return qemu.recv(1) == b""


def _counters(daemon):
    return {name: value for name, value in daemon.counters("wired").items() if name.startswith("wire")}


def test_frames_that_are_no_roce_are_dropped(daemon, wire):
    seeded = random.Random(1)
    mac = bytes.fromhex("525400123407")
    with _connect(wire) as qemu:
        for _ in range(2000):
            data = seeded.randbytes(seeded.randrange(200))
            qemu.sendall(_frame(mac + data if seeded.random() < 0.5 else data))
        # In parts, as a stream has them.
        for byte in _frame(mac + bytes(60)):
            qemu.sendall(bytes([byte]))
        wait_until(lambda: _counters(daemon)["wire_rx_frames"] == 2001, "the frames")
        counters = _counters(daemon)
        # Those that end inside of a header are malformed.
        other, malformed = counters.pop("wire_rx_other"), counters.pop("wire_rx_malformed")
        assert other > 1500 and malformed > 50 and other + malformed == counters.pop("wire_rx_frames")
        assert counters == dict.fromkeys(("wire_rx_icrc", "wire_rx_unknown", "wire_rx_lost", "wire_tx_frames", "wire_tx_full", "wire_retransmits",
                                             "wire_tx_cnps", "wire_rx_cnps"), 0)
        qemu.settimeout(0.2)
        with pytest.raises(TimeoutError):
            qemu.recv(1)


def test_a_frame_beyond_the_limit_ends_the_connection(daemon, wire):
    with _connect(wire) as qemu:
        qemu.sendall(struct.pack("!I", 1 << 20))
        assert _is_closed(qemu)
    daemon.wait_for_log("a frame longer than 68 KiB")
    with _connect(wire) as qemu:
        qemu.sendall(_frame(bytes(60)))
        daemon.must("adapters")


def test_a_new_connection_replaces_the_last_one(daemon, wire):
    with _connect(wire) as first, _connect(wire) as second:
        assert _is_closed(first)
        second.sendall(_frame(bytes(60)))
        daemon.must("adapters")


def test_the_socket_goes_with_its_adapter(daemon, wire):
    with _connect(wire) as qemu:
        daemon.must("remove-adapter", "wired")
        assert _is_closed(qemu)
    assert not wire.exists()


def test_two_adapters_cannot_share_a_wire(daemon, wire):
    done = daemon.ctl("add-adapter", f"name=x,socket={daemon.folder}/x,mac=52:54:00:12:34:09,wire=unix:{wire}")
    assert done.returncode == 1 and "is in use by process" in done.stderr


def test_an_adapter_without_a_wire_has_no_counters_of_one(daemon):
    assert not [name for name in daemon.counters("node1") if name.startswith("wire")]


@pytest.mark.parametrize("wire, why", [
    ("eth:none-such", "there is no network interface 'none-such'"),
    ("eth:lo", "the network interface 'lo' is no Ethernet"),
    ("eth:", "'' is no name of a network interface"),
    ("eth:a/b", "'a/b' is no name of a network interface"),
    ("eth:sixteen-letters-", "'sixteen-letters-' is no name of a network interface"),
    ("tap:none-such", "there is no tap device 'none-such': make it with 'ip tuntap add none-such mode tap user USER'"),
    ("tap:lo", "the network interface 'lo' is no tap device with one queue"),
    ("tap:", "'' is no name of a network interface"),
    ("tap:a/b", "'a/b' is no name of a network interface"),
    ("tap:tap%d", "'tap%d' is no name of a network interface"),
    ("tap:sixteen-letters-", "'sixteen-letters-' is no name of a network interface"),
    ("br0", "wire 'br0' is neither unix:PATH, eth:INTERFACE nor tap:NAME"),
    ("unix:wire", "wire path 'wire' is not absolute"),
    ("unix:/none-such/wire,wire-gso=on", "adapter 'x': wire-gso=on needs wire=eth:INTERFACE or tap:NAME"),
    ("eth:none-such,wire-gso=some", "wire-gso 'some' is neither auto, on nor off"),
])
def test_wire_that_cannot_be_is_one_line(daemon, wire, why):
    if os.geteuid() != 0 and ("network interface '" in why or wire.startswith("tap:")):
        pytest.skip("only root has CAP_NET_RAW and /dev/net/tun")
    done = daemon.ctl("add-adapter", f"name=x,socket={daemon.folder}/x,mac=52:54:00:12:34:09,wire={wire}")
    assert done.returncode in (1, 2) and done.stderr.rstrip().endswith(why), done.stderr
    assert len(done.stderr.splitlines()) == 1
    assert not (daemon.folder / "x").exists()


def test_interface_without_the_capability_is_one_line(start_daemon):
    daemon = start_daemon(prefix=["setpriv", "--bounding-set=-net_raw"] if os.geteuid() == 0 else [])
    done = daemon.ctl("add-adapter", f"name=x,socket={daemon.folder}/x,mac=52:54:00:12:34:09,wire=eth:lo")
    assert done.returncode == 1 and "wire=eth:lo needs the capability CAP_NET_RAW" in done.stderr, done.stderr
    daemon.must("adapters")
