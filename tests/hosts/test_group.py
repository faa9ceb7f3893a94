# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
"""Multicast groups with members on several hosts: what is sent first arrives, as nobody is asked to send it twice."""

import time

import pytest


def send(lab, guests, *args):
    """Datagrams from the first guest to a group that the others are in; how many each of these got."""
    result = lab.begin_with("hosts_group", guests, *args).result()
    assert result["sent"] == 20 and result["wrong"] == 0, result
    return result["got"]


@pytest.mark.parametrize("group", [[], ["--ipv6"]], ids=["ipv4", "ipv6"])
def test_first_datagrams_arrive(start_lab, pipe, group):
    lab = start_lab(hosts=3, pipe=pipe)
    assert send(lab, (3, 1, 2), *group) == [20, 20]


def test_connections_that_are_not_there_yet_are_waited_for(start_lab, pipe):
    lab = start_lab(hosts=3, pipe=pipe, args=["--idle-timeout", "1"])
    lab.wait_connected()
    lab.wait_idle()
    assert send(lab, (3, 1, 2)) == [20, 20]


def test_sender_that_leaves_at_once(start_lab, pipe):
    """It is gone before anybody knows who is in the group."""
    lab = start_lab(hosts=3, pipe=pipe)
    assert send(lab, (3, 1, 2), "--leave") == [20, 20]


def test_members_on_the_senders_host_and_elsewhere(start_lab):
    lab = start_lab(hosts=2, guests_per_host=2)
    assert send(lab, (1, 2, 3, 4)) == [20, 20, 20]


def test_dead_host_holds_up_no_member(start_lab):
    lab = start_lab(hosts=3)
    lab.wait_connected()
    lab.daemons[2].kill()
    begin = time.monotonic()
    assert send(lab, (3, 1)) == [20]
    assert time.monotonic() - begin < 3


def test_fabrics_are_apart(start_lab):
    lab = start_lab(hosts=3, fabrics={1: "blue", 2: "red", 3: "red"})
    assert send(lab, (3, 1, 2), "--seconds", "2") == [0, 20]
