# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
"""An adapter whose wire is the bridge of its VM, or a tap on it, by the commands of docs/native-endpoints.md."""

import re

import pytest
from daemon_process import wait_until
from documents import Document
from hosts_checks import RETRY_EXCEEDED, SHORT_RETRIES, assert_right, statuses_at_guest_1

DOCUMENT = Document("docs/native-endpoints.md")
RULES = sorted((command for command in DOCUMENT.commands() if command.startswith("tc ")), key=lambda rule: "filter" in rule)


GUEST_MAC = "52:54:00:12:34:01"
TAP = ("ip tuntap add", "ip link set pvr1", "bridge link set dev pvr1")
TO_TAP = ("ingress redirect dev br0", "egress redirect dev pvr1")


def _bridged(start_lab, mtu=1500):
    """On host 1, eth0 and the VM's tap are ports of br0. A pair of veth devices takes the place of tap and VM's NIC."""
    lab = start_lab(pipe="wire", mtu=mtu)
    lab.daemons[1].must("remove-adapter", "vm1")
    for command in ("link add br0 type bridge forward_delay 0", "link set eth0 master br0", "link set br0 up",
                    f"link add vnet1 type veth peer name nic address {GUEST_MAC}", "link set vnet1 master br0 up", "link set nic up"):
        lab.hosts.run(1, "ip", *command.split())
    # As after the first frame of the VM.
    lab.hosts.run(1, "bridge", "fdb", "replace", GUEST_MAC, "dev", "vnet1", "master", "static")
    return lab


def _add(lab, **settings):
    one = lab.daemons[1]
    one.add_adapter("vm1", 1, mac=GUEST_MAC, socket=one.socket(1), **settings)


@pytest.fixture
def lab(start_lab):
    lab = _bridged(start_lab)
    _add(lab, wire="eth:br0")
    return lab


def _make_tap(lab):
    for begin in TAP:
        command = DOCUMENT.starting_with(begin).replace("user pvrdma", "user root")
        lab.hosts.run(1, *command.split())


def _add_rules(lab, target=("", "")):
    for rule in RULES:
        lab.hosts.run(1, *rule.replace(*target).split())


RX, TX = 1, 9  # columns of /proc/net/dev: packets


def _packets_of(lab, device, column):
    line = re.search(rf"^ *{device}:(.*)$", lab.hosts.run(1, "cat", "/proc/self/net/dev"), re.MULTILINE)[1]
    return int(line.split()[column])


def frames_for_the_vm(lab):
    """That its kernel got."""
    return _packets_of(lab, "nic", RX)


def frames_for_the_adapter(lab):
    return lab.daemons[1].counters("vm1")["wire_rx_frames"]


def roce_frames_for_the_adapter(lab):
    """Without those of other protocols: the host's own IPv6 sends a few to a new tap."""
    counters = lab.daemons[1].counters("vm1")
    return counters["wire_rx_frames"] - counters["wire_rx_other"]


def test_data_are_right_with_the_documented_rules(lab):
    assert len(RULES) == 5
    _add_rules(lab)
    assert_right(lab.verify(seconds=2))
    assert frames_for_the_adapter(lab) > 1000 > 100 > frames_for_the_vm(lab)
    path, = lab.daemons[1].query("paths")["paths"]
    assert path["path"] == "wire" and path["bytes"] > 1 << 20


def test_adapter_is_added_as_documented(lab):
    command = DOCUMENT.starting_with("pvrdmactl add-adapter name=vm3").replace("/run/pvrdma", str(lab.folder))
    lab.daemons[1].must(*command.split()[1:])
    assert lab.daemons[1].counters("vm3")["wire_rx_frames"] == 0


def test_without_the_rules_no_answer_arrives(lab):
    result = lab.verify(**SHORT_RETRIES)
    assert set(statuses_at_guest_1(result)) == {RETRY_EXCEEDED}
    assert frames_for_the_adapter(lab) == 0


# A RoCE frame with a VLAN tag, to the VM's MAC. Its queue pair does not exist.
TAGGED = """
import socket
sock = socket.socket(socket.AF_PACKET, socket.SOCK_RAW)
sock.bind(("eth0", 0))
udp = "c00012b700180000" + "6440ffff0000000100000000" + "00000000"
ipv4 = "0800" + "4500002c0000400040110000" + "0a4f00020a4f0001" + udp
ipv6 = "86dd" + "60000000" + "00181140" + "fd79" + "00" * 13 + "02" + "fd79" + "00" * 13 + "01" + udp
for _ in range(20):
    for packet in (ipv4, ipv6):
        sock.send(bytes.fromhex("525400123401 525400123402 81000005" + packet))
"""


COUNT_TAGGED = "tc filter add dev nic ingress protocol 802.1Q u32 match u32 0 0 action mirred egress mirror dev lo"


def tagged_frames_for_the_vm(lab):
    """Counted by the rule. The VM's kernel gets others, too: IPv6 of new interfaces sends some 30 to the bridge within seconds."""
    shown = lab.hosts.run(1, *"tc -s filter show dev nic ingress".split())
    return int(re.search(r"Sent \d+ bytes (\d+) pkt", shown)[1])


@pytest.mark.parametrize("wire, target", [("eth:br0", ("", "")), ("tap:pvr1", TO_TAP)])
def test_frames_with_a_vlan_tag_are_redirected_by_the_documented_rules(start_lab, wire, target):
    lab = _bridged(start_lab)
    _make_tap(lab)
    _add(lab, wire=wire)
    lab.hosts.run(1, *"tc qdisc replace dev nic clsact".split())
    lab.hosts.run(1, *COUNT_TAGGED.split())
    lab.hosts.run(2, "python3", "-c", TAGGED)
    wait_until(lambda: tagged_frames_for_the_vm(lab) == 40, "the frames at the VM, without the rules")
    assert roce_frames_for_the_adapter(lab) == 0
    _add_rules(lab, target)
    lab.hosts.run(2, "python3", "-c", TAGGED)
    wait_until(lambda: roce_frames_for_the_adapter(lab) == 40, "the frames at the adapter")
    assert tagged_frames_for_the_vm(lab) == 40


@pytest.mark.parametrize("gso, mtu", [("auto", 4200), ("off", 1500)])
def test_data_are_right_by_a_tap_without_capabilities(start_lab, gso, mtu):
    """Root without capabilities has no more right than another user whose tap it is."""
    lab = _bridged(start_lab, mtu)
    _make_tap(lab)
    for device in ("br0", "vnet1", "nic", "pvr1"):
        lab.hosts.run(1, "ip", "link", "set", device, "mtu", str(mtu))
    _add_rules(lab, TO_TAP)
    one = lab.daemons[1]
    one.stop()
    enter = lab.hosts.enter
    lab.hosts.enter = lambda number: [*enter(number), "setpriv", "--bounding-set=-all"]
    one.settings |= {"wire": "tap:pvr1", "wire-gso": gso}
    one.start()
    lab.hosts.enter = enter
    assert_right(lab.verify(seconds=2))
    counters = one.counters("vm1")
    assert counters["wire_rx_frames"] > 1000 and counters["wire_rx_malformed"] == counters["wire_rx_icrc"] == 0
    assert frames_for_the_vm(lab) < 100
    # The device receives frames that the daemon sends. The other host always sends frames of several packets.
    frames, packets = _packets_of(lab, "pvr1", RX), counters["wire_tx_frames"]
    assert frames < packets * 0.8 if gso == "auto" else frames >= packets * 0.99
    assert _packets_of(lab, "pvr1", TX) < counters["wire_rx_frames"] * 0.8


def test_tap_is_added_as_documented(lab):
    _make_tap(lab)
    command = DOCUMENT.starting_with("pvrdmactl add-adapter name=vm4").replace("/run/pvrdma", str(lab.folder))
    lab.daemons[1].must(*command.split()[1:])
    assert "wire_rx_frames" in lab.daemons[1].counters("vm4")
    again = lab.daemons[1].ctl(*command.replace("vm4", "vm5").replace(":59", ":60").split()[1:])
    assert again.returncode == 1 and "another process uses the tap device 'pvr1'" in again.stderr
    lab.hosts.run(1, "ip", "tuntap", "add", "pvr2", "mode", "tap", "multi_queue")
    many = lab.daemons[1].ctl(*command.replace("vm4", "vm6").replace(":59", ":61").replace("pvr1", "pvr2").split()[1:])
    assert many.returncode == 1 and "'pvr2' is no tap device with one queue" in many.stderr


def test_tap_that_goes_is_used_again_when_it_is_back(lab):
    one = lab.daemons[1]
    _make_tap(lab)
    one.must("remove-adapter", "vm1")
    _add(lab, wire="tap:pvr1")
    _add_rules(lab, TO_TAP)
    run = lab.begin_verify(timeout=19, retries=7)
    run.wait_begun()
    lab.hosts.run(1, "ip", "link", "set", "pvr1", "down")
    one.wait_for_log("wire tap:pvr1: the interface is down or gone")
    lab.hosts.run(1, "ip", "link", "set", "pvr1", "up")
    one.wait_for_log("wire tap:pvr1: the interface is up again")
    lab.hosts.run(1, "ip", "link", "del", "pvr1")
    wait_until(lambda: one.log().count("the interface is down or gone") == 2, "the loss in the log")
    lab.hosts.run(1, "tc", "qdisc", "del", "dev", "vnet1", "clsact")
    _make_tap(lab)
    _add_rules(lab, TO_TAP)
    before = frames_for_the_adapter(lab)
    wait_until(lambda: frames_for_the_adapter(lab) > before + 1000, "frames of the new tap")
    assert_right(run.end())


def test_random_frames_at_a_tap_are_dropped(lab):
    """Also those that pass its filter: UDP at the port of RoCE to the adapter's MAC."""
    one = lab.daemons[1]
    _make_tap(lab)
    one.must("remove-adapter", "vm1")
    _add(lab, wire="tap:pvr1")
    lab.hosts.run(1, "ip", "link", "set", "pvr1", "nomaster")
    lab.hosts.run(1, "python3", "-c", RANDOM)
    wait_until(lambda: frames_for_the_adapter(lab) >= 500, "the frames")
    counters = one.counters("vm1")
    assert counters["wire_rx_malformed"] > 100 and counters["wire_tx_frames"] == 0
    one.must("adapters")


RANDOM = """
import random, socket
seeded = random.Random(7)
sock = socket.socket(socket.AF_PACKET, socket.SOCK_RAW)
sock.bind(("pvr1", 0))
for i in range(2000):
    udp = seeded.randbytes(2) + bytes.fromhex("12b7") + seeded.randbytes(seeded.randrange(1400))
    ip = bytes.fromhex("0800 4500") + seeded.randbytes(4) + bytes.fromhex("4000 4011 0000") + seeded.randbytes(8)
    sock.send(bytes.fromhex("525400123401 525400123402") + (ip + udp if i % 2 else seeded.randbytes(60)))
"""
