# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
"""What make bench says of its rows."""


import pytest

from bench_lib import idle, table
from bench_lib.targets import target_of


def row(name, value, unit="1/s", peer_value=None, runs=5):
    return {"name": name, "value": value, "unit": unit, "peer": "memcpy" if peer_value else None,
            "peer_value": peer_value, "ratio": value / peer_value if peer_value else None,
            "min": value, "max": value, "runs": runs}


@pytest.mark.parametrize("name,good,bad", [
    ("write_bw.65536", {"peer_value": 105, "value": 100}, {"peer_value": 106, "value": 100}),
    ("read_bw_cold.1048576", {"peer_value": 105, "value": 100}, {"peer_value": 106, "value": 100}),
    ("write_rate.8", {"value": 10e6}, {"value": 9.9e6}),
    ("write_insn.8", {"value": 400}, {"value": 401}),
    ("send_rate.8", {"value": 6e6}, {"value": 5.9e6}),
    ("write_lat.8", {"value": 0.5e-6}, {"value": 0.51e-6}),
    ("write_rate_10kqp.8", {"peer_value": 10, "value": 8}, {"peer_value": 10, "value": 7.9}),
    ("write_rate_2workers.8", {"peer_value": 10, "value": 18}, {"peer_value": 10, "value": 17.9}),
    ("qp_bytes", {"value": 1024}, {"value": 1025}),
    ("mr_reg_1g", {"value": 20e-3}, {"value": 21e-3}),
    ("mr_lookup", {"peer_value": 10, "value": 8}, {"peer_value": 10, "value": 7.9}),
    ("idle_cpu_64", {"value": 0}, {"value": 0.01}),
    ("idle_switches_256", {"value": 0}, {"value": 0.01}),
    ("write_rate_beside_limited.8", {"peer_value": 100, "value": 97}, {"peer_value": 100, "value": 96.9}),
    ("qos_rate_error", {"value": 2}, {"value": 2.1}),
    ("hostile_doorbells", {"peer_value": 10, "value": 8}, {"peer_value": 10, "value": 7.9}),
    ("hostile_indices", {"peer_value": 10, "value": 8}, {"peer_value": 10, "value": 7.9}),
    ("wire.rxe_write_bw_out.65536", {"peer_value": 10, "value": 13}, {"peer_value": 10, "value": 12.9}),
    ("wire.rxe_write_bw_in.65536", {"peer_value": 10, "value": 13}, {"peer_value": 10, "value": 12.9}),
])
def test_targets_are_met_and_missed(name, good, bad):
    assert table.verdict(row(name, **good))[1] == "met"
    assert table.verdict(row(name, **bad))[1] == "MISSED"


@pytest.mark.parametrize("name", ["write_bw.8", "write_rate_signaled.8", "write_rate_10kqp_single.8", "mr_reg_1g_bytes",
                                  "write_rate_2workers_cross.8"])
def test_other_rows_have_no_target(name):
    assert target_of(name) is None
    assert table.line(row(name, 1.0, peer_value=2.0)).split()[-1] not in ("met", "MISSED")


@pytest.mark.parametrize("value,unit,text", [
    (2.5e9, "B/s", "2.5 GB/s"), (2.5e6, "B/s", "2.5 MB/s"), (12.34e6, "1/s", "12.3 M/s"), (999, "1/s", "999.0 /s"),
    (0.0, "1/s", "0.0 /s"), (83e-9, "s", "83.0 ns"), (1.2e-3, "s", "1.2 ms"), (461.0, "insn", "461 insn"),
    (799.6, "B", "799.6 B"),
])
def test_values_have_units_for_people(value, unit, text):
    assert table.plain(value, unit) == text


def test_a_line_has_all_there_is():
    words = table.line(row("write_bw.65536", 50e9, "B/s", peer_value=100e9))
    for text in ("write_bw.65536", "50.0 GB/s", "memcpy 100.0 GB/s", "0.50 x", ">= 0.95 x", "MISSED"):
        assert text in words


def test_idle_rows_are_medians():
    assert idle.row("x", "%", [3, 1, 2]) == {
        "name": "x", "value": 2, "unit": "%", "peer": None, "peer_value": None, "ratio": None, "min": 1, "max": 3,
        "runs": 3}
