# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
"""pvrdmactl capture: the stream, its end, its limits; Wireshark's view of it."""

import contextlib
import json
import signal
import socket
import stat
import struct
import subprocess
import time
from pathlib import Path

import pytest

from daemon_process import PATIENCE, PVRDMACTL, PVRDMAD, wait_until
from sender import CREATE_BIND, ROCE_V2, VLAN_NONE, Sender

FRAMES = Path(PVRDMAD).parent / "tests/unit/roce_frames"
SECTION, INTERFACE, PACKET = 0x0A0D0D0A, 1, 6
COMMENT, FLAGS, DROPCOUNT = 1, 2, 4
IN, OUT = 1, 2


@contextlib.contextmanager
def capture(daemon, *args, **streams):
    """A pvrdmactl capture of node1 until the end of the block, which has begun."""
    began = daemon.log().count("capture of")
    child = subprocess.Popen([PVRDMACTL, "--control", str(daemon.control), "capture", *args], **streams)
    try:
        wait_until(lambda: daemon.log().count("capture of") > began, "capture")
        yield child
    finally:
        child.send_signal(signal.SIGINT)
        child.wait(PATIENCE)


def blocks(data):
    """[(type, body)] of a pcapng file, whose lengths are right."""
    found = []
    while data:
        kind, size = struct.unpack_from("<II", data)
        assert size % 4 == 0 and struct.unpack_from("<I", data, size - 4) == (size,)
        found.append((kind, data[8:size - 4]))
        data = data[size:]
    return found


def options(data):
    found = {}
    while data:
        code, size = struct.unpack_from("<HH", data)
        found[code] = data[4:4 + size]
        data = data[4 + (size + 3) // 4 * 4:]
    assert found.pop(0) == b""
    return found


def packets(path):
    """[(time in ns, frame, original size, options)]"""
    (section, head), (interface, _), *rest = blocks(path.read_bytes())
    assert (section, interface) == (SECTION, INTERFACE) and head[:4] == struct.pack("<I", 0x1A2B3C4D)
    found = []
    for kind, body in rest:
        assert kind == PACKET
        _, high, low, size, original = struct.unpack_from("<IIIII", body)
        end = 20 + (size + 3) // 4 * 4
        found.append((high << 32 | low, body[20:20 + size], original, options(body[end:])))
    return found


GID, PEER = socket.inet_pton(socket.AF_INET6, "fd77::1"), socket.inet_pton(socket.AF_INET6, "fd77::2")


@pytest.fixture
def sender(client):
    made = Sender(client)
    made.guest.command(CREATE_BIND, "III16sB3x", 4096, VLAN_NONE, 0, GID, ROCE_V2)
    yield made
    made.close()


def send(sender, num=1):
    for _ in range(num):
        sender.put(PEER)
        sender.ring()
        sender.wait()


def captured(daemon, sender, path, *args, num=1):
    """The packets of so many datagrams."""
    with capture(daemon, *args, "node1", path):
        wait_until(path.exists, "a file")
        send(sender, num)
    return packets(path)


def tshark(path, *fields):
    """These fields of each packet, by Wireshark."""
    # These two dissectors guess that some payload is theirs.
    guesses = (word for name in ("infiniband.eoib", "rpcordma") for word in ("--disable-protocol", name))
    command = ["tshark", "-n", *guesses, "-r", path, "-T", "fields", *(word for field in fields for word in ("-e", field))]
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return [line.split("\t") for line in done.stdout.splitlines()]


def refused(daemon, *args):
    done = daemon.ctl(*args)
    assert done.returncode != 0 and done.stdout == ""
    return done.stderr


def ask(daemon, **request):
    with socket.socket(socket.AF_UNIX) as control:
        control.connect(str(daemon.control))
        control.sendall(json.dumps(request).encode() + b"\n")
        return json.loads(control.makefile().readline())


def test_headers_of_datagrams(daemon, sender, tmp_path):
    path = tmp_path / "headers.pcapng"
    found = captured(daemon, sender, path, num=3)
    assert len(found) == 3 and stat.S_IMODE(path.stat().st_mode) == 0o600
    assert [packet[0] for packet in found] == sorted({packet[0] for packet in found})
    for time_ns, frame, original, given in found:
        assert abs(time_ns / 1e9 - time.time()) < PATIENCE
        assert len(frame) == original == 14 + 40 + 8 + 12 + 8 + 4
        assert given == {FLAGS: struct.pack("<I", OUT)}
        assert frame[22:54] == GID + PEER
    daemon.wait_for_log("node1: capture of headers begins")
    daemon.wait_for_log("node1: capture ends: 3 packets, 0 dropped")


def test_wireshark_dissects_datagrams(daemon, sender, tmp_path):
    path = tmp_path / "shark.pcapng"
    captured(daemon, sender, path, num=2)
    fields = ["ipv6.src", "infiniband.bth.opcode", "infiniband.bth.destqp", "infiniband.deth.srcqp", "infiniband.bth.psn",
              "frame.interface_name", "_ws.malformed"]
    assert tshark(path, *fields) == [["fd77::1", "100", "0x00004d", f"0x{sender.qpn:08x}", str(psn), "node1", ""]
                                     for psn in range(2)]


HEADERS = {
    "KEY": {"reth.va": "0x1122334455667788", "reth.r_key": "0x99aabbcc"},
    "RETH": {"reth.dmalen": "5"},
    "ATOMIC": {"atomiceth.swapdt": str(0x0102030405060708), "atomiceth.cmpdt": str(0x1112131415161718)},
    "AETH": {"aeth.syndrome": "31", "aeth.msn": str(0x13579B)},
    "ATOMICACK": {"atomicacketh.origremdt": str(0x2122232425262728)},
    "IMM": {"immdt": "01020304"},
    "IETH": {"ieth": "ddeeff00"},
    "DETH": {"deth.q_key": "0x0000000080010000", "deth.srcqp": "0x00654321"},
}
# Wireshark 4.0 does not know the headers of FLUSH (28) and ATOMIC_WRITE (29).
HEADERS_OF = {
    "KEY": {6, 10, 11, 12, 19, 20, 38, 42, 43},
    "RETH": {6, 10, 11, 12, 38, 42, 43}, "ATOMIC": {19, 20}, "AETH": {13, 15, 16, 17, 18}, "ATOMICACK": {18},
    "IMM": {3, 5, 9, 11, 35, 37, 41, 43, 101}, "IETH": {22, 23}, "DETH": {100, 101},
}


def test_wireshark_dissects_all_opcodes(tmp_path):
    """Of all networks: each header has its values, and no frame is malformed."""
    text, path = tmp_path / "frames.txt", tmp_path / "frames.pcap"
    text.write_bytes(subprocess.run([FRAMES], stdout=subprocess.PIPE, check=True).stdout)
    subprocess.run(["text2pcap", "-q", text, path], check=True)
    fields = [field for header in HEADERS.values() for field in header]
    found = tshark(path, "_ws.malformed", "frame.protocols", "vlan.id", "infiniband.bth.opcode", "infiniband.bth.destqp",
                   "infiniband.bth.psn", "infiniband.bth.padcnt", *(f"infiniband.{field}" for field in fields))
    assert len(found) == 3 * 40
    for malformed, protocols, vlan, opcode, qpn, psn, pad, *values in found:
        payload = protocols.endswith(":data") or opcode == "29"
        assert (malformed, vlan, qpn, psn, pad) == ("", "7", "0x123456", str(0xABCDEF), "3" if payload else "0")
        expected = {}
        for header, members in HEADERS.items():
            expected |= {field: value if int(opcode) in HEADERS_OF[header] else "" for field, value in members.items()}
        assert dict(zip(fields, (value.split(",")[0] for value in values))) == expected, opcode


def test_snaplen_cuts_frames(daemon, sender, tmp_path):
    (_, frame, original, _), = captured(daemon, sender, tmp_path / "short.pcapng", "--snaplen", "60")
    assert len(frame) == 60 < original


def test_payload_is_logged(daemon, sender, tmp_path):
    captured(daemon, sender, tmp_path / "payload.pcapng", "--payload")
    daemon.wait_for_log("node1: capture of headers and payload begins")


def test_standard_output(daemon, sender):
    with capture(daemon, "node1", "-", stdout=subprocess.PIPE) as child:
        send(sender)
        data = child.stdout.read(200)
    assert [kind for kind, _ in blocks(data[:data.rfind(struct.pack("<I", PACKET))])] == [SECTION, INTERFACE]


def test_reader_that_ends_is_no_error(daemon, sender, tmp_path):
    """As with a pipe to tshark -c 1."""
    with capture(daemon, "node1", "-", stdout=subprocess.PIPE, stderr=subprocess.PIPE) as child:
        child.stdout.close()
        send(sender)
        assert child.wait(PATIENCE) == 0 and child.stderr.read() == b""
    assert captured(daemon, sender, tmp_path / "next.pcapng")


def test_client_that_is_killed_ends_the_capture(daemon, sender, tmp_path):
    with capture(daemon, "node1", tmp_path / "killed.pcapng") as child:
        child.kill()
        daemon.wait_for_log("node1: capture ends")
    assert captured(daemon, sender, tmp_path / "next.pcapng")


def test_removed_adapter_ends_its_capture(daemon, tmp_path):
    with capture(daemon, "node1", tmp_path / "removed.pcapng", stderr=subprocess.PIPE, text=True) as child:
        daemon.must("remove-adapter", "node1")
        assert child.wait(PATIENCE) == 1
        assert child.stderr.read() == ("pvrdmactl: the capture has ended: adapter 'node1' was removed, or pvrdmad has "
                                       "ended\n")


def test_daemon_that_ends_ends_captures(daemon, tmp_path):
    with capture(daemon, "node1", tmp_path / "ended.pcapng", stderr=subprocess.PIPE) as child:
        daemon.stop()
        assert child.wait(PATIENCE) == 1


def test_adapter_has_one_capture(daemon, tmp_path):
    with capture(daemon, "node1", tmp_path / "first.pcapng"):
        assert "adapter 'node1' has a capture already" in refused(daemon, "capture", "node1", tmp_path / "second.pcapng")


def test_captures_are_limited(start_daemon, tmp_path):
    daemon = start_daemon(adapters=9)
    with contextlib.ExitStack() as stack:
        for number in range(1, 9):
            stack.enter_context(capture(daemon, f"node{number}", tmp_path / f"{number}.pcapng"))
        assert "pvrdmad has 8 captures already, which is the limit" in refused(daemon, "capture", "node9", tmp_path / "9.pcapng")


@pytest.mark.parametrize("args, why", [
    (["node9", "file"], "there is no adapter 'node9'"),
    (["--snaplen", "0", "node1", "file"], "--snaplen '0' is no number from 1 to 65535"),
    (["--snaplen", "65536", "node1", "file"], "--snaplen '65536' is no number"),
    (["--snaplen", "-1", "node1", "file"], "--snaplen '-1' is no number"),
    (["node1"], "'capture' with 1 arguments"),
    (["node1", "/nowhere/file"], "cannot create /nowhere/file: No such file or directory"),
], ids=str)
def test_refused(daemon, args, why):
    assert why in refused(daemon, "capture", *args)


def test_options_of_other_commands(daemon):
    assert "are for the command capture" in refused(daemon, "adapters", "--payload")


@pytest.mark.parametrize("snaplen", [0, 65536, "128", None, 1 << 40], ids=str)
def test_request_with_a_bad_snaplen(daemon, snaplen):
    reply = ask(daemon, command="capture", name="node1", snaplen=snaplen)
    assert reply == {"ok": False, "error": '"snaplen" is no number from 1 to 65535'}


def test_client_that_sends_more_ends_its_capture(daemon):
    with socket.socket(socket.AF_UNIX) as control:
        control.connect(str(daemon.control))
        control.sendall(b'{"command": "capture", "name": "node1"}\n')
        daemon.wait_for_log("node1: capture of headers begins")
        control.sendall(b"x")
        daemon.wait_for_log("node1: capture ends")


@pytest.mark.long
def test_client_that_does_not_read_loses_packets(daemon, sender):
    """The next packet that it gets has the number of the lost ones."""
    with socket.socket(socket.AF_UNIX) as control:
        control.connect(str(daemon.control))
        control.sendall(b'{"command": "capture", "name": "node1"}\n')
        daemon.wait_for_log("node1: capture of headers begins")
        send(sender, 40000)
        control.settimeout(1)
        data = b""
        with contextlib.suppress(TimeoutError):
            while True:
                data += control.recv(1 << 20)
        send(sender)
        data += control.recv(1 << 20)
        control.shutdown(socket.SHUT_RDWR)
    found = [body for kind, body in blocks(data[data.index(b"\n") + 1:]) if kind == PACKET]
    size, = struct.unpack_from("<I", found[-1], 12)
    lost, = struct.unpack("<Q", options(found[-1][20 + (size + 3) // 4 * 4:])[DROPCOUNT])
    assert len(found) + lost == 40001 and lost > 0
