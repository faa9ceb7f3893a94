# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
"""Who finds whom, and that data on their way do not depend on it: etcd that fails, adapters that move."""

import time

import pytest
from lab import wait_until


def is_right(result):
    return result["steps"] > 0 and result["wrong"] == 0 and not result["failed"]


def registered(lab):
    return all(daemon.ctl("peers")["directory"]["registered"] for daemon in lab.daemons.values())


def verify_without_etcd(lab, outage, **options):
    """Data all the time, no etcd for a part of it: longer than its leases last."""
    run = lab.begin_verify(seconds=outage + 4, **options)
    run.wait_begun()
    lab.etcd.kill()
    time.sleep(outage)
    lab.etcd.start()
    result = run.result(outage + 120)
    assert is_right(result), result
    wait_until(lambda: registered(lab), "all hosts are in etcd again")
    result = lab.verify()
    assert is_right(result), result


def test_etcd_is_killed_and_started_again(start_lab, pipe):
    verify_without_etcd(start_lab(etcd=True, pipe=pipe), 6)


@pytest.mark.long
def test_no_etcd_for_a_minute(start_lab, pipe):
    verify_without_etcd(start_lab(etcd=True, pipe=pipe), 60, streams=16)


def test_etcd_is_out_of_reach(start_lab):
    """Without an end of its connections: just silence."""
    lab = start_lab(etcd=True)
    run = lab.begin_verify(seconds=10)
    run.wait_begun()
    lab.hosts.link(lab.etcd.number, False)
    time.sleep(6)
    lab.hosts.link(lab.etcd.number, True)
    result = run.result()
    assert is_right(result), result


@pytest.mark.parametrize("etcd", [False, True], ids=["peers", "etcd"])
def test_adapter_that_moves_is_found_again(start_lab, etcd):
    lab = start_lab(hosts=3, etcd=etcd)
    result = lab.verify(1, 2, seconds=1)
    assert is_right(result), result
    lab.move(2, 3)
    result = lab.verify(1, 2, seconds=2)
    assert is_right(result), result
    # Not by way of where it was before.
    lab.daemons[2].kill()
    result = lab.verify(1, 2, seconds=1)
    assert is_right(result), result
