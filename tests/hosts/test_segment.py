# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
"""Adapters of pvrdmads that do not know of each other, with wires to the Ethernet between their hosts."""

import re
import signal
import time

import pytest
from daemon_process import wait_until
from documents import Document
from hosts_checks import RETRY_EXCEEDED, SHORT_RETRIES, assert_right, statuses_at_guest_1


@pytest.fixture
def lab(start_lab):
    return start_lab(pipe="wire")


def counter(daemon, name):
    return daemon.counters(f"vm{daemon.number}")[f"wire_{name}"]


def test_data_are_right_and_the_path_is_shown(lab):
    assert_right(lab.verify(seconds=3))
    for number, daemon in lab.daemons.items():
        path, = daemon.query("paths")["paths"]
        assert (path["from"], path["to"], path["path"]) == (f"vm{number}", f"fe80::5054:ff:fe12:340{3 - number}", "wire")
        assert path["messages"] > 100 and path["bytes"] > 1 << 20
        assert counter(daemon, "rx_frames") > 1000 and counter(daemon, "rx_malformed") == counter(daemon, "rx_icrc") == 0


def test_queue_pair_shows_its_window_and_the_time_of_an_answer(lab):
    run = lab.begin_verify()
    run.wait_begun()
    one = lab.daemons[1]

    def measured():
        shown = (one.query("qp", "vm1", str(qp["qpn"]))["qp"] for qp in one.query("qps", "vm1")["adapters"][0]["qps"])
        return [qp for qp in shown if qp.get("round_trip_us")]

    wait_until(measured, "a queue pair that has got an answer")
    shown = measured()[0]
    assert (shown["type"], shown["path"], shown["dmac"]) == ("RC", "wire", "52:54:00:12:34:02")
    # A READ of up to 64 packets begins within the window; and a loss makes the window smaller than what is in flight.
    assert 2 <= shown["window_packets"] <= 512 and shown["packets_in_flight"] <= 512 + 64
    assert shown["probe_after_us"] == 0 or 1000 <= shown["probe_after_us"] < shown["timeout_us"]
    assert_right(run.end())


def packets_at(lab, host):
    """Packets that the interface has received; a frame of several counts once."""
    return int(re.search(r"eth0: *\d+ +(\d+)", lab.hosts.run(host, "cat", "/proc/self/net/dev"))[1])


@pytest.mark.parametrize("mtu", [1500, 4200])
@pytest.mark.parametrize("gso", ["auto", "off"])
def test_packets_share_frames_with_gso(start_lab, gso, mtu):
    lab = start_lab(pipe="wire", mtu=mtu, settings={"wire-gso": gso})
    assert_right(lab.verify(seconds=2))
    for number, daemon in lab.daemons.items():
        frames = counter(daemon, "rx_frames")
        assert frames > 1000 and counter(daemon, "rx_malformed") == counter(daemon, "rx_icrc") == 0
        assert packets_at(lab, number) < frames * 0.8 if gso == "auto" else packets_at(lab, number) >= frames


def test_frames_of_several_packets_arrive_at_an_interface_that_sends_none(start_lab):
    """A macvlan is no bridge, veth or tap, and the kernel passes frames of its veth to it whole."""
    lab = start_lab(pipe="wire", start=False)
    lab.hosts.start()
    lab.hosts.run(1, "ip", "link", "add", "link", "eth0", "name", "own0", "address", "52:54:00:12:34:01", "type",
                  "macvlan", "mode", "bridge")
    lab.hosts.run(1, "ip", "link", "set", "own0", "up")
    lab.daemons[1].settings["wire"] = "eth:own0"
    for daemon in lab.daemons.values():
        daemon.start()
    assert_right(lab.verify(seconds=2))
    assert packets_at(lab, 1) < counter(lab.daemons[1], "rx_frames") * 0.8
    assert packets_at(lab, 2) >= counter(lab.daemons[2], "rx_frames")
    assert counter(lab.daemons[1], "rx_malformed") == counter(lab.daemons[1], "rx_icrc") == 0


def test_kernel_without_frames_of_several_packets_gets_single_ones(start_lab):
    """Before Linux 6.2 no frame has a header that describes it. setarch gives the daemons an older release."""
    lab = start_lab(pipe="wire", start=False)
    lab.hosts.start()
    enter = lab.hosts.enter
    lab.hosts.enter = lambda number: [*enter(number), "setarch", "x86_64", "--uname-2.6"]
    for daemon in lab.daemons.values():
        daemon.start()
    assert_right(lab.verify(seconds=2))
    for number, daemon in lab.daemons.items():
        assert packets_at(lab, number) >= counter(daemon, "rx_frames") > 1000
        assert counter(daemon, "rx_malformed") == counter(daemon, "rx_icrc") == 0
    done = lab.daemons[1].ctl("add-adapter", f"name=vm9,socket={lab.folder}/vm9,mac=52:54:00:12:34:09,wire=eth:eth0,wire-gso=on")
    assert done.returncode != 0 and "wire-gso=on needs Linux 6.2 or later: omit it, or use wire-gso=off" in done.stderr


FLOOD = """
import socket, struct, sys
sock = socket.socket(socket.AF_PACKET, socket.SOCK_RAW)
sock.bind(("eth0", 0))
udp = struct.pack("!HHHH", 49152, 4791, 32, 0) + bytes(24)
ip = bytearray(struct.pack("!BBHHHBBH4s4s", 0x45, 0, 20 + len(udp), 0, 0, 64, 17, 0, bytes([10, 99, 0, 2]), bytes([10, 99, 0, 1])))
ip[10:12] = struct.pack("!H", 65535 - sum(struct.unpack("!10H", ip)) % 65535)
for _ in range(int(sys.argv[1])):
    sock.send(bytes.fromhex("525400123401 020000000001 0800") + ip + udp)
"""


def test_frames_without_room_in_the_ring_are_counted(lab):
    one = lab.daemons[1]

    def flood(frames):
        lab.hosts.run(2, "python3", "-c", FLOOD, str(frames))

    one.child.send_signal(signal.SIGSTOP)
    flood(5000)
    one.child.send_signal(signal.SIGCONT)
    # Losses are counted with the next frame that has a slot.
    wait_until(lambda: flood(1) or counter(one, "rx_lost") + counter(one, "rx_frames") > 5000, "all frames are counted")
    assert counter(one, "rx_lost") > 1000 and counter(one, "rx_malformed") == counter(one, "rx_frames") > 100
    assert_right(lab.verify(seconds=1))


def test_addresses_of_ipv4_are_reached(lab):
    assert_right(lab.verify(seconds=1, ipv4=True))


def test_frames_of_other_machines_are_left_alone(lab):
    """The filter passes RoCE frames to the adapter's MAC only, and those of hosts have another one."""
    send = "import socket; socket.socket(socket.AF_INET, socket.SOCK_DGRAM).sendto(bytes(60), ('10.99.0.2', 4791))"
    for _ in range(3):
        lab.hosts.run(1, "python3", "-c", send)
    assert packets_at(lab, 2) >= 3
    assert [counter(daemon, "rx_frames") for daemon in lab.daemons.values()] == [0, 0]


@pytest.mark.parametrize("loss, reorder", [(0.01, 0.0), (0.0, 0.02), pytest.param(0.1, 0.1, marks=pytest.mark.long)])
def test_data_are_right_in_bad_weather(start_lab, loss, reorder):
    lab = start_lab(pipe="wire", netem=True)
    for host in (1, 2):
        lab.hosts.shape(host, delay_ms=0.5, loss=loss, reorder=reorder)
    result = lab.verify(seconds=4, timeout=15, retries=7)
    assert_right(result)
    assert sum(counter(daemon, "retransmits") for daemon in lab.daemons.values()) > 10


@pytest.mark.parametrize("ipv4", [False, True], ids=["ipv6", "ipv4"])
def test_marks_of_the_network_are_answered_by_cnps(start_lab, ipv4):
    lab = start_lab(pipe="wire", netem=True, settings={"wire-ecn": "on"})
    for host in (1, 2):
        lab.hosts.shape(host, mark=0.3)
    assert_right(lab.verify(seconds=2, timeout=17, **({"ipv4": True} if ipv4 else {})))
    for daemon in lab.daemons.values():
        assert counter(daemon, "tx_cnps") > 5 and counter(daemon, "rx_cnps") > 5


def test_marks_need_a_sender_that_permits_them(start_lab):
    lab = start_lab(pipe="wire", netem=True)
    for host in (1, 2):
        lab.hosts.shape(host, mark=1.0)
    assert_right(lab.verify(seconds=1, timeout=17))
    assert [counter(daemon, "tx_cnps") for daemon in lab.daemons.values()] == [0, 0]


def test_interface_goes_down_and_up(lab):
    run = lab.begin_verify(timeout=17, retries=7)
    run.wait_begun()
    one = lab.daemons[1]
    lab.hosts.run(1, "ip", "link", "set", "eth0", "down")
    one.wait_for_log("wire eth:eth0: the interface is down or gone: frames are lost until it is up again")
    time.sleep(1)
    lab.hosts.run(1, "ip", "link", "set", "eth0", "up")
    one.wait_for_log("wire eth:eth0: the interface is up again")
    before = counter(one, "rx_frames")
    wait_until(lambda: counter(one, "rx_frames") > before + 1000, "frames after the interface is up")
    assert_right(run.end())


@pytest.mark.long
def test_interface_is_down_for_a_minute(lab):
    """The guests' timeout is 17 s."""
    run = lab.begin_verify(timeout=22, retries=7)
    run.wait_begun()
    lab.hosts.run(1, "ip", "link", "set", "eth0", "down")
    time.sleep(60)
    lab.hosts.run(1, "ip", "link", "set", "eth0", "up")
    before = counter(lab.daemons[1], "rx_frames")
    wait_until(lambda: counter(lab.daemons[1], "rx_frames") > before + 1000, "frames after the interface is up")
    assert_right(run.end())


def test_mtu_that_shrinks_loses_frames_until_it_is_back(start_lab):
    """An interface sends frames of several packets in spite of its MTU; and lost READ data must not end the run.

    Long frames to this interface are lost, too: a stream that waits for READ data sends none. So there are many streams."""
    lab = start_lab(pipe="wire", settings={"wire-gso": "off"})
    run = lab.begin_verify(streams=16, timeout=19, retries=7)
    run.wait_begun()
    lab.hosts.run(1, "ip", "link", "set", "eth0", "mtu", "1280")  # packets with 1024 bytes fit
    before = counter(lab.daemons[1], "rx_frames")
    wait_until(lambda: counter(lab.daemons[1], "rx_frames") > before + 1000, "frames at the smaller MTU")
    lab.hosts.run(1, "ip", "link", "set", "eth0", "mtu", "600")
    lab.daemons[1].wait_for_log("wire eth:eth0: frames are longer than the interface's MTU of 600")
    lab.hosts.run(1, "ip", "link", "set", "eth0", "mtu", "1500")
    before = counter(lab.daemons[1], "rx_frames")
    wait_until(lambda: counter(lab.daemons[1], "rx_frames") > before + 1000, "frames at the old MTU")
    assert_right(run.end())


# A datagram to QP1 of guest 1 from the GID of guest 2. Its ICRC is wrong, but the source is checked first.
FORGED = """
import socket
sock = socket.socket(socket.AF_PACKET, socket.SOCK_RAW)
sock.bind(("eth0", 0))
gid = "fe80000000000000505400fffe12340"
udp = "c00012b700200000" + "6440ffff0000000100000000" + "8001000000000001" + "00000000"
sock.send(bytes.fromhex("525400000001 525400000002 86dd 6000000000201140" + gid + "2" + gid + "1" + udp))
"""


def test_source_of_another_pvrdmads_vm_is_dropped(start_lab):
    """The hosts know each other, so their VMs meet by TCP only: else TLS would protect nothing."""
    lab = start_lab(pipe="tcp", settings={"wire": "eth:eth0"})
    run = lab.begin_verify()
    run.wait_begun()
    lab.hosts.run(2, "python3", "-c", FORGED)
    lab.daemons[1].wait_for_log("dropped a RoCE frame whose source GID an adapter here or another pvrdmad has")
    assert_right(run.end())
    assert {path["path"] for path in lab.daemons[1].query("paths")["paths"]} == {"tcp"}
    assert counter(lab.daemons[1], "tx_frames") == 0 and counter(lab.daemons[1], "rx_unknown") == 1


def test_peer_that_is_gone_ends_with_an_error(lab):
    run = lab.begin_verify(**SHORT_RETRIES)
    run.wait_begun()
    lab.hosts.link(2, up=False)
    assert set(statuses_at_guest_1(run.result())) == {RETRY_EXCEEDED}


def test_adapter_is_added_as_documented(start_lab):
    lab = start_lab(hosts=1)
    command = Document("docs/native-endpoints.md").starting_with("pvrdmactl add-adapter name=vm2")
    lab.daemons[1].must(*command.replace("/run/pvrdma", str(lab.folder)).split()[1:])
    assert lab.daemons[1].counters("vm2")["wire_rx_frames"] == 0


def test_interface_is_removed_and_made_again(lab):
    """Adapters at another interface go on meanwhile, and nothing of theirs is lost."""
    one = lab.daemons[1]

    def make():
        lab.hosts.run(1, "ip", "link", "add", "lan7", "type", "bridge")
        lab.hosts.run(1, "ip", "link", "set", "lan7", "up")

    make()
    one.add_adapter("wired", 7, wire="eth:lan7")
    run = lab.begin_verify(timeout=17)
    run.wait_begun()
    lab.hosts.run(1, "ip", "link", "del", "lan7")
    one.wait_for_log("wire eth:lan7: the interface is down or gone")
    before = counter(one, "rx_frames")
    wait_until(lambda: counter(one, "rx_frames") > before + 1000, "frames at the other interface")
    make()
    one.wait_for_log("wire eth:lan7: the interface is up again")
    assert_right(run.end())
    assert "wire eth:eth0: the interface is down" not in one.log()
    one.must("remove-adapter", "wired")
