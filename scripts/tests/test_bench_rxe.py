# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
"""The rows of bench/wire that VMs measure, some of which have Soft-RoCE."""

import pytest

from bench_lib import rxe
from bench_lib.targets import target_of

TEXT = """\
@wire.rxe_write_bw_out.65536
 #bytes     #iterations    BW peak[MB/sec]    BW average[MB/sec]   MsgRate[Mpps]
 65536      300              40.00              20.00              0.000320
@wire.rxe_write_bw_in.65536
 #bytes     #iterations    BW peak[MB/sec]    BW average[MB/sec]   MsgRate[Mpps]
 65536      300              11.00              10.00              0.000160
"""


def test_bandwidth_is_the_average_behind_the_row_s_name():
    assert [rxe.read(TEXT, name) for name in rxe.ROWS] == [20 * 2**20, 10 * 2**20]


@pytest.mark.parametrize("text", ["", TEXT.partition("@wire.rxe_write_bw_in")[0], TEXT.replace(" 65536 ", " 8 ")])
def test_run_without_a_result_is_an_error(text):
    with pytest.raises(RuntimeError, match="no bandwidth for wire.rxe_write_bw_in.65536"):
        rxe.read(text, "wire.rxe_write_bw_in.65536")


def test_the_adapter_and_soft_roce_take_turns_with_the_same_node():
    steps = rxe.steps(rounds=2, seconds=3)
    assert [step.name for step in steps] == ["ours-0", "peer-0", "ours-1", "peer-1"]
    for step, other in zip(steps, (1, 3, 1, 3)):
        assert f"perftest 18515 2 {other} ib_write_bw" in step.script  # out
        assert f"perftest 18516 {other} 2 ib_write_bw" in step.script
        assert "-D 5 -f 1" in step.script


def test_row_has_medians_and_a_target():
    row = rxe.row("wire.rxe_write_bw_out.65536", [30.0, 10.0, 20.0], [10.0, 10.0, 40.0])
    assert (row["value"], row["peer_value"], row["ratio"], row["min"], row["max"], row["runs"]) == (20.0, 10.0, 2.0, 10.0, 30.0, 3)
    assert target_of(row["name"]).text == ">= 1.3 x"
