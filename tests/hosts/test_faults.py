# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
"""What happens between hosts costs no message, and no connection before its own time is up."""

import random
import time

import pytest

RETRY_EXCEEDED = 12  # IBV_WC_RETRY_EXC_ERR


def is_right(result):
    return result["steps"] > 0 and result["wrong"] == 0 and not result["failed"]


def test_link_down_for_five_seconds(start_lab, pipe):
    lab = start_lab(pipe=pipe)
    run = lab.begin_verify(seconds=12)
    run.wait_begun()
    time.sleep(1)
    lab.hosts.link(2, False)
    time.sleep(5)
    lab.hosts.link(2, True)
    result = run.result()
    assert is_right(result), result


def test_link_down_for_longer_than_a_queue_pair_waits(start_lab):
    lab = start_lab()
    run = lab.begin_verify(seconds=20, timeout=14, retries=2, may_fail=True)
    run.wait_begun()
    lab.hosts.link(2, False)
    result = run.result(60)
    assert result["wrong"] == 0, result
    assert len(result["failed"]) == result["streams"], result
    assert {failure["status"] for failure in result["failed"]} == {RETRY_EXCEEDED}, result
    # What comes after it works.
    lab.hosts.link(2, True)
    result = lab.verify()
    assert is_right(result), result


@pytest.mark.parametrize("netem", [{"loss": 0.01}, {"delay_ms": 50}, {"delay_ms": 2, "reorder": 0.2},
                                   {"delay_ms": 20, "loss": 0.01, "reorder": 0.05}],
                         ids=["loss", "delay", "reorder", "all"])
def test_netem_faults(start_lab, netem):
    lab = start_lab(netem=True)
    for host in (1, 2):
        lab.hosts.shape(host, **netem)
    result = lab.verify(seconds=6, max_write=65536)
    assert is_right(result), result


def reset_for(lab, run, seconds):
    """Break all connections about once a second; how many there were."""
    broken, end = 0, time.monotonic() + seconds
    while time.monotonic() < end:
        time.sleep(random.uniform(0.5, 1.5))
        broken += lab.hosts.reset(random.choice([1, 2]))
    return broken


def test_connections_are_reset_every_second(start_lab, pipe):
    lab = start_lab(pipe=pipe)
    run = lab.begin_verify(seconds=12)
    run.wait_begun()
    broken = reset_for(lab, run, 10)
    assert broken >= 8, f"only {broken} connections could be broken: is CONFIG_INET_DIAG_DESTROY on?"
    result = run.result()
    assert is_right(result), result


@pytest.mark.long
def test_connections_are_reset_every_second_for_a_minute(start_lab, pipe):
    lab = start_lab(pipe=pipe)
    run = lab.begin_verify(seconds=62, streams=16)
    run.wait_begun()
    assert reset_for(lab, run, 60) >= 50
    result = run.result()
    assert is_right(result), result


def test_peer_daemon_is_killed_and_started_again(start_lab, pipe):
    lab = start_lab(pipe=pipe)
    run = lab.begin_verify(seconds=30, timeout=14, retries=3, may_fail=True)
    run.wait_begun()
    lab.daemons[2].kill()
    result = run.result(60)
    assert result["wrong"] == 0, result
    # Streams with even numbers begin at guest 1, whose device still works; the others' device is gone.
    left = {failure["status"] for failure in result["failed"] if failure["stream"] % 2 == 0}
    assert left == {RETRY_EXCEEDED}, result
    lab.daemons[2].start()
    result = lab.verify()
    assert is_right(result), result


def test_silent_host_is_noticed(start_lab):
    """No reset, no end of the connection: just silence."""
    lab = start_lab()
    result = lab.verify(seconds=1)
    assert is_right(result), result
    lab.hosts.link(2, False)
    run = lab.begin_verify(seconds=10, timeout=12, retries=1, may_fail=True)
    result = run.result(60)
    assert result["wrong"] == 0 and len(result["failed"]) == result["streams"], result
