# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
"""Guests that move among the daemons of three hosts while they send: each byte is right, and comes once."""

import pytest

from hosts_checks import assert_right

GUESTS = (1, 2)


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
        args += [f"--{name.replace('_', '-')}", value]
    sockets = [f"{guest}=" + ",".join(str(daemon.socket(guest)) for daemon in lab.daemons.values()) for guest in GUESTS]
    return lab.begin_alone_with("hosts_verify", [*args, *sockets], over=over)


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
