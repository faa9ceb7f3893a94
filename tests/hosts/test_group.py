# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
"""Multicast groups with members on several hosts: the first datagrams arrive although there is no retransmission."""

import pytest
from hosts_checks import TCP_IN_CHECK, TLS_IN_CHECK


def send(lab, guests, *args, seconds=60):
    """Datagrams from the first guest to a group of the others; how many arrived at each, within that time."""
    result = lab.begin_with("hosts_group", guests, "--seconds", seconds, *args).result()
    assert result["sent"] == 20 and result["wrong"] == 0, result
    return result["got"]


@pytest.mark.parametrize("group", [[], ["--ipv6"]], ids=["ipv4", "ipv6"])
@TCP_IN_CHECK
def test_first_datagrams_arrive(start_lab, pipe, group):
    lab = start_lab(hosts=3, pipe=pipe)
    assert send(lab, (3, 1, 2), *group) == [20, 20]


@TLS_IN_CHECK
def test_connections_that_are_not_there_yet_are_waited_for(start_lab, pipe):
    lab = start_lab(hosts=3, pipe=pipe, args=["--idle-timeout", "1"])
    lab.wait_idle()
    assert send(lab, (3, 1, 2)) == [20, 20]


@TLS_IN_CHECK
def test_sender_that_leaves_at_once(start_lab, pipe):
    """Before the members' hosts are known."""
    lab = start_lab(hosts=3, pipe=pipe)
    assert send(lab, (3, 1, 2), "--leave") == [20, 20]


def test_members_on_the_senders_host_and_elsewhere(start_lab):
    lab = start_lab(hosts=2, guests_per_host=2)
    assert send(lab, (1, 2, 3, 4)) == [20, 20, 20]


@pytest.mark.parametrize("group", [[], ["--ipv6"]], ids=["ipv4", "ipv6"])
def test_members_on_an_ethernet(start_lab, group):
    """The adapters have wires, and their pvrdmads do not know of each other."""
    assert send(start_lab(hosts=3, pipe="wire"), (3, 1, 2), *group) == [20, 20]


def test_members_on_an_ethernet_and_on_the_senders_host(start_lab):
    """Those of the sender's pvrdmad get one copy, although its frames may come back to them."""
    assert send(start_lab(hosts=2, pipe="wire", guests_per_host=2), (1, 2, 3, 4)) == [20, 20, 20]


def test_dead_host_holds_up_no_member(start_lab):
    lab = start_lab(hosts=3)
    lab.wait_connected()
    lab.daemons[2].kill()
    assert send(lab, (3, 1), seconds=3) == [20]


def test_fabrics_are_apart(start_lab):
    """Guests of one fabric meet across hosts, those of another one do not."""
    lab = start_lab(hosts=3, fabrics={1: "blue", 2: "red", 3: "red"})
    assert send(lab, (3, 1, 2), seconds=4) == [0, 20]
