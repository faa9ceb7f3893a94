# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
"""Guests that move among the daemons of three hosts while they send: each byte is right, and comes once."""

import random
import time

import pytest

from daemon_process import wait_until
from hosts_checks import assert_right

GUESTS = (1, 2)
# Flushed, RETRY_EXC_ERR, GENERAL_ERR of a receive without peer. Streams of a dead device have none.
FAILED_IN_TIME = (5, 12, 21)


@pytest.fixture
def start_travel(start_lab):
    """A function: a lab of three hosts; each has an adapter for each guest."""

    def start(**kwargs):
        lab = start_lab(hosts=3, **kwargs)
        for daemon in lab.daemons.values():
            for guest in GUESTS:
                if guest not in daemon.guests:
                    daemon.add_adapter(f"vm{guest}", guest, **daemon.settings)
        return lab

    return start


def begin(lab, moves, seed, **options):
    over = lab.folder / "over"
    args = ["--seconds", 600, "--until", over, "--moves", moves, "--seed", seed]
    for name, value in options.items():
        args += [f"--{name.replace('_', '-')}", *([] if value is True else [value])]
    sockets = [f"{guest}=" + ",".join(str(daemon.socket(guest)) for daemon in lab.daemons.values()) for guest in GUESTS]
    return lab.begin_alone_with("hosts_verify", [*args, *sockets], over=over)


def moves_of(lab):
    return sum(daemon.log().count(": moved to host") for daemon in lab.daemons.values())


@pytest.mark.parametrize("pipe", ["tcp", pytest.param("tls", marks=pytest.mark.long)])
def test_moves_while_etcd_does_not_respond(start_lab, pipe):
    """Guest 1 moves between hosts 1 and 3, which know each other. Its peer is at host 2, which does not know host 3."""
    lab = start_lab(hosts=3, etcd=True, pipe=pipe)
    first, second, third = lab.daemons.values()
    first.add_adapter("vm4", 4, **first.settings)
    third.add_adapter("vm1", 1, **third.settings)
    end_both, go, over = (lab.folder / name for name in ("end_both", "go", "over"))
    both = lab.begin_with("hosts_verify", (3,), "--seconds", 600, "--until", end_both, f"4={first.socket(4)}", over=end_both)
    both.wait_begun()
    args = ["--seconds", 600, "--timeout", 16, "--until", over, "--moves", 10000, "--moves-from", go]
    run = lab.begin_alone_with("hosts_verify", [*args, f"1={first.socket(1)},{third.socket(1)}", f"2={second.socket(2)}"],
                               over=over)
    run.wait_begun()
    lab.etcd.kill()
    go.touch()
    wait_until(lambda: moves_of(lab) >= 4, "guest 1 has moved four times")
    lab.start_etcd()
    wait_until(lambda: all("responds" in daemon.log().rsplit("cached GIDs stay", 1)[-1] for daemon in (first, second, third)),
               "all hosts have connected to etcd again")
    before = moves_of(lab)
    wait_until(lambda: moves_of(lab) >= before + 4, "guest 1 has moved four times more")
    assert_right(run.end())
    assert_right(both.end())


def expect_moves(result, moves):
    assert_right(result)
    assert result["moves"] >= moves and result["both"] > moves / 20 and result["cancelled"] > moves / 50, result


@pytest.mark.parametrize("pipe", ["tcp", "tls"])
def test_100_moves_under_load(start_travel, pipe):
    expect_moves(begin(start_travel(pipe=pipe), 100, seed=18).result(), 100)


@pytest.mark.long
@pytest.mark.parametrize("seed", range(1, 6))
def test_200_moves_under_load(start_travel, seed):
    expect_moves(begin(start_travel(), 200, seed=seed).result(), 200)


def test_moves_with_an_etcd(start_travel):
    expect_moves(begin(start_travel(etcd=True), 40, seed=3).result(), 40)


@pytest.mark.parametrize("victim", [1, 2, 3])
@pytest.mark.parametrize("seed", [0, *(pytest.param(seed, marks=pytest.mark.long) for seed in range(1, 8))])
def test_daemon_is_killed_while_guests_move(start_travel, victim, seed):
    """At any moment of a move: data are right at one side, or connections fail in time."""
    lab = start_travel()
    run = begin(lab, 15, seed=seed, may_fail=True, timeout=14, retries=3)
    run.wait_begun()
    time.sleep(random.Random(10 * seed + victim).uniform(0, 0.8))
    lab.daemons[victim].kill()
    result = run.result()
    assert not result["wrong"], result
    assert {row["status"] for row in result["failed"]} <= {0, *FAILED_IN_TIME}, result
