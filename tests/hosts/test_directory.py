# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
"""GIDs are found at their hosts, and data under way do not depend on it: etcd that fails, adapters that move."""

import time

import pytest
from hosts_checks import TCP_IN_CHECK, assert_right
from daemon_process import wait_until


def registered(lab):
    return all(daemon.query("peers")["directory"]["registered"] for daemon in lab.daemons.values())


def verify_without_etcd(lab, seconds, **options):
    """Data all the time, no etcd for a part of it: longer than its leases last."""
    run = lab.begin_verify(**options)
    run.wait_begun()
    lab.etcd.kill()
    time.sleep(seconds)
    sent = lab.sent()
    wait_until(lambda: lab.sent() > sent + (1 << 20), "data arrive without etcd")
    lab.start_etcd()
    wait_until(lambda: registered(lab), "all hosts are in etcd again")
    assert_right(run.end())
    assert_right(lab.verify())


@TCP_IN_CHECK
def test_etcd_is_killed_and_started_again(start_lab, pipe):
    verify_without_etcd(start_lab(etcd=True, pipe=pipe), 6)


@pytest.mark.long
@TCP_IN_CHECK
def test_no_etcd_for_a_minute(start_lab, pipe):
    verify_without_etcd(start_lab(etcd=True, pipe=pipe), 60, streams=16)


@pytest.mark.long
def test_etcd_is_out_of_reach(start_lab):
    """Its connections do not end, they are silent."""
    lab = start_lab(etcd=True)
    run = lab.begin_verify()
    run.wait_begun()
    lab.hosts.link(lab.etcd_host, False)
    time.sleep(6)
    lab.hosts.link(lab.etcd_host, True)
    time.sleep(2)
    assert_right(run.end())


@pytest.mark.parametrize("etcd", [pytest.param(False, marks=pytest.mark.long), True], ids=["peers", "etcd"])
def test_adapter_that_moves_is_found_again(start_lab, etcd):
    lab = start_lab(hosts=3, etcd=etcd)
    assert_right(lab.verify(1, 2, seconds=1))
    lab.move(2, 3)
    assert_right(lab.verify(1, 2, seconds=2))
    # Not by way of its previous host.
    lab.daemons[2].kill()
    assert_right(lab.verify(1, 2, seconds=1))
