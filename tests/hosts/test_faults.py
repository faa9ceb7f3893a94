# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
"""Faults between hosts lose no message, and no queue pair before its retries are used up."""

import random
import time

import pytest
from hosts_checks import (FLUSHED, RETRY_EXCEEDED, SHORT_RETRIES, TCP_IN_CHECK, TLS_IN_CHECK, assert_right,
                          statuses_at_guest_1)


@TCP_IN_CHECK
def test_link_down_for_five_seconds(start_lab, pipe):
    lab = start_lab(pipe=pipe)
    run = lab.begin_verify()
    run.wait_begun()
    lab.hosts.link(2, False)
    time.sleep(5)
    lab.hosts.link(2, True)
    # Steps that have begun come to their end, too.
    assert_right(run.end())


def assert_all_fail(result):
    assert result["wrong"] == 0 and len(result["failed"]) == result["streams"], result


def test_link_down_for_longer_than_a_queue_pair_waits(start_lab):
    """No reset and no end of the connections: only silence."""
    lab = start_lab()
    run = lab.begin_verify(**SHORT_RETRIES)
    run.wait_begun()
    lab.hosts.link(2, False)
    result = run.result()
    assert_all_fail(result)
    assert {failure["status"] for failure in result["failed"]} == {RETRY_EXCEEDED}, result
    # Queue pairs that are connected to the silent host fail, too.
    assert_all_fail(lab.begin_verify(**SHORT_RETRIES).result())
    lab.hosts.link(2, True)
    assert_right(lab.verify())


@pytest.mark.parametrize("netem", [
    pytest.param({"loss": 0.01}, id="loss", marks=pytest.mark.long),
    pytest.param({"delay_ms": 50}, id="delay", marks=pytest.mark.long),
    pytest.param({"delay_ms": 2, "reorder": 0.2}, id="reorder", marks=pytest.mark.long),
    pytest.param({"delay_ms": 20, "loss": 0.01, "reorder": 0.05}, id="all"),
])
def test_netem_faults(start_lab, netem):
    lab = start_lab(netem=True)
    for host in (1, 2):
        lab.hosts.shape(host, **netem)
    assert_right(lab.verify(seconds=6, max_write=65536))


def verify_under_resets(lab, rounds, **options):
    """All connections of a host are broken about once a second; each time there are some."""
    run = lab.begin_verify(**options)
    run.wait_begun()
    for _ in range(rounds):
        time.sleep(random.uniform(0.5, 1.5))
        lab.wait_connected()
        broken = lab.hosts.reset(random.choice([1, 2]))
        assert broken, "no connection could be broken: is CONFIG_INET_DIAG_DESTROY on?"
    assert_right(run.end())


@TLS_IN_CHECK
def test_connections_are_reset_every_second(start_lab, pipe):
    verify_under_resets(start_lab(pipe=pipe), 6)


@pytest.mark.long
@TLS_IN_CHECK
def test_connections_are_reset_every_second_for_a_minute(start_lab, pipe):
    verify_under_resets(start_lab(pipe=pipe), 60, streams=16)


@TCP_IN_CHECK
def test_peer_daemon_is_killed_and_started_again(start_lab, pipe):
    lab = start_lab(pipe=pipe)
    run = lab.begin_verify(**SHORT_RETRIES)
    run.wait_begun()
    lab.daemons[2].kill()
    # The device of guest 1 still works, the other one is gone.
    assert set(statuses_at_guest_1(run.result())) == {RETRY_EXCEEDED}
    lab.daemons[2].start()
    assert_right(lab.verify())


@TLS_IN_CHECK
def test_adapter_that_is_removed(start_lab, pipe):
    """Queue pairs fail at once: a timeout of 17 s and 7 retries would take above two minutes, and twice that at most."""
    lab = start_lab(pipe=pipe)
    run = lab.begin_verify(may_fail=True, timeout=22)
    run.wait_begun()
    lab.daemons[2].must("remove-adapter", "vm2")
    result = run.result(60)
    # With no request under way at that moment, the next one is flushed.
    found = statuses_at_guest_1(result)
    assert len(found) == result["streams"] // 2 and set(found) <= {RETRY_EXCEEDED, FLUSHED}, result
