# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
"""Adapters move between the workers of a pvrdmad while their guests talk."""

import pytest
from daemon_process import wait_until
from hosts_checks import assert_right

ADAPTERS = ("vm1", "vm2", "vm3", "vm4")


def placed(daemon):
    return [adapter["worker"] for adapter in daemon.query("adapters")["adapters"]]


def one_host(start_lab, workers):
    lab = start_lab(hosts=1, guests_per_host=4, args=["--workers", workers])
    return lab, lab.daemons[1]


def move_during_verify(lab, daemon):
    run = lab.begin_verify(1, 2, seconds=4)
    run.wait_begun()
    moves = 0
    while run.child.poll() is None:
        name = ADAPTERS[moves % 2]
        daemon.must("move-adapter", name, str(1 - placed(daemon)[moves % 2]))
        moves += 1
    assert_right(run.result())
    return moves


def test_data_are_right_while_adapters_move(start_lab):
    """There are 50 moves in a run of an idle machine, and 3 of one that has much else to do."""
    lab, daemon = one_host(start_lab, "2")
    moves = 0
    while moves < 4:
        moves += move_during_verify(lab, daemon)


def test_adapters_leave_a_full_worker(start_lab):
    lab, daemon = one_host(start_lab, "auto")
    if len(daemon.query("workers")["workers"]) < 2:
        pytest.skip("this process may use one CPU, so there is one worker")
    for name in ADAPTERS:
        daemon.must("move-adapter", name, "0")
    assert placed(daemon) == [0, 0, 0, 0]
    runs = [lab.begin("hosts_bench", one, one + 1, "--what", "write_bw", "--seconds", 12, "--size", 65536, "--depth", 16)
            for one in (1, 3)]
    wait_until(lambda: set(placed(daemon)) == {0, 1}, "an adapter has moved to the other worker")
    daemon.wait_for_log("moved from worker 0, which was busy for ")
    assert all(run.result()["value"] > 0 for run in runs)
