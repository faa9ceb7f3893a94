# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
"""Data between guests of different hosts arrive whole, in order and once."""

from hosts_checks import TCP_IN_CHECK, TLS_IN_CHECK, assert_right
from lab import LIMIT


@TLS_IN_CHECK
def test_data_are_right(start_lab, pipe):
    assert_right(start_lab(pipe=pipe).verify(seconds=3))


@TCP_IN_CHECK
def test_data_are_right_with_many_connections(start_lab, pipe):
    assert_right(start_lab(pipe=pipe).verify(seconds=3, streams=64, max_write=16384))


def test_large_messages_are_right(start_lab):
    assert_right(start_lab().verify(seconds=3, streams=2, max_write=1 << 20))


def test_gids_of_ipv4_addresses_are_found(start_lab):
    assert_right(start_lab().verify(seconds=1, ipv4=True))


@TLS_IN_CHECK
def test_three_hosts_at_once(start_lab, pipe):
    lab = start_lab(hosts=3, pipe=pipe)
    for one, other in ((1, 2), (2, 3), (3, 1)):
        assert_right(lab.verify(one, other, seconds=2))


@TCP_IN_CHECK
def test_two_pairs_share_the_connections(start_lab, pipe):
    lab = start_lab(pipe=pipe, guests_per_host=2)
    runs = [lab.begin_verify(1, 2, seconds=4), lab.begin_verify(3, 4, seconds=4)]
    for run in runs:
        assert_right(run.result())


def begin_in_two_processes(lab, seconds):
    """The process that joins, and the one that serves."""
    second = lab.begin_alone("hosts_verify", 2, "--serve", 7998, "--seconds", seconds)
    return lab.begin_alone("hosts_verify", 1, "--join", "127.0.0.1:7998", "--seconds", seconds), second


def test_guests_in_two_processes(start_lab):
    """As where hosts are machines: each process checks what arrives at its own guest."""
    for run in begin_in_two_processes(start_lab(), 3):
        result = run.result()
        assert_right(result)
        assert result["steps"] > 10, result


def test_one_of_two_processes_is_killed(start_lab):
    first, second = begin_in_two_processes(start_lab(), LIMIT)
    first.wait_begun()
    second.child.kill()
    second.wait()
    assert first.wait() not in (0, 2) and "the other process" in first.error()


def test_several_workers(start_lab):
    assert_right(start_lab(args=["--workers", "2"]).verify(seconds=3, streams=16))
