# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
"""An adapter whose wire is the bridge of its VM, by the commands of docs/native-endpoints.md."""

import re

import pytest
from documents import Document
from hosts_checks import RETRY_EXCEEDED, SHORT_RETRIES, assert_right, statuses_at_guest_1

DOCUMENT = Document("docs/native-endpoints.md")
RULES = sorted(command for command in DOCUMENT.commands() if command.startswith("tc "))[::-1]  # the qdisc is first


@pytest.fixture
def lab(start_lab):
    """On host 1, eth0 and the VM's tap are ports of br0. A pair of veth devices takes the place of tap and VM's NIC."""
    lab = start_lab(pipe="wire")
    one, guest_mac = lab.daemons[1], "52:54:00:12:34:01"
    one.must("remove-adapter", "vm1")
    for command in ("link add br0 type bridge forward_delay 0", "link set eth0 master br0", "link set br0 up",
                    f"link add vnet1 type veth peer name nic address {guest_mac}", "link set vnet1 master br0 up", "link set nic up"):
        lab.hosts.run(1, "ip", *command.split())
    # As after the first frame of the VM.
    lab.hosts.run(1, "bridge", "fdb", "replace", guest_mac, "dev", "vnet1", "master", "static")
    one.add_adapter("vm1", 1, mac=guest_mac, socket=one.socket(1), wire="eth:br0")
    return lab


def frames_for_the_vm(lab):
    """That its kernel got."""
    return int(re.search(r"^ *nic: *\d+ +(\d+)", lab.hosts.run(1, "cat", "/proc/net/dev"), re.MULTILINE)[1])


def frames_for_the_adapter(lab):
    return lab.daemons[1].counters("vm1")["wire_rx_frames"]


def test_data_are_right_with_the_documented_rules(lab):
    assert len(RULES) == 3
    for rule in RULES:
        lab.hosts.run(1, *rule.split())
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
