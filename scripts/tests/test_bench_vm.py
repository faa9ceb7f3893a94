# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
"""bench/vm without VMs: what it reads out of programs' output, what it lets run, what it makes of it."""


import pytest

from bench_lib.targets import target_of
from bench_lib.vm import output, plan, rows, runs, summary, table
from bench_lib.vm import main as bench_vm
from bench_lib.vm.rows import PVRDMA, RXE, TCP, Row

BW_HEAD = " #bytes     #iterations    BW peak[MB/sec]    BW average[MB/sec]   MsgRate[Mpps]\n"
BW_LARGE = BW_HEAD + " 1048576    20               25.10              24.80\t\t   0.000025\n"
BW_MIDDLE = BW_HEAD + " 65536      2000             24506.83            12965.48\t\t   0.207448\n"
BW_SMALL = BW_HEAD + " 8          100              0.08               0.08   \t\t   0.010118\n"
LAT = (" #bytes #iterations    t_min[usec]    t_max[usec]  t_typical[usec]    t_avg[usec]    t_stdev[usec]   "
       "99% percentile[usec]   99.9% percentile[usec] \n"
       " 8       2000          13.83          1723.63      14.53    \t       34.24       \t126.30 \t\t858.16  \t\t1544.59\n")
PINGPONG = "16384000 bytes in 0.13 seconds = 993.20 Mbit/sec\n2000 iters in 0.13 seconds = 65.98 usec/iter\n"
QPERF_BW = "tcp_bw:\n    bw  =  63913822 bytes/sec\n"
QPERF_LAT = "tcp_lat:\n    latency  =  210881 ns\n"


# --- output

@pytest.mark.parametrize("program, text, expected", [
    ("ib_write_bw", BW_LARGE, {"bandwidth": 24.80 * (1 << 20), "rate": 24.80, "iterations": 20}),
    ("ib_read_bw", BW_MIDDLE, {"bandwidth": 207448 * 65536, "rate": 207448, "iterations": 2000}),
    ("ib_send_bw", BW_SMALL, {"bandwidth": 10118 * 8, "rate": 10118, "iterations": 100}),
    ("ib_send_bw", BW_HEAD + " 8  5  0.00  0.00  0.000712\n", {"bandwidth": 712 * 8, "rate": 712}),
    ("ib_write_lat", LAT, {"seconds": 14.53e-6, "iterations": 2000}),
    ("ibv_rc_pingpong", PINGPONG, {"seconds": 65.98e-6, "iterations": 2000}),
    ("qperf", QPERF_BW, {"bandwidth": 63913822, "iterations": None}),
    ("qperf", QPERF_LAT, {"seconds": 210881e-9, "iterations": None}),
])
def test_figures_are_read_out_of_output(program, text, expected):
    found = output.parse(program, f"local address: LID 0000 QPN 0x0002\n{text}-------\n")
    assert {name: getattr(found, name) for name in expected} == pytest.approx(expected)


@pytest.mark.parametrize("program", ["ib_write_bw", "ib_write_lat", "ibv_rc_pingpong", "qperf"])
def test_output_without_result_is_an_error(program):
    with pytest.raises(output.Unreadable):
        output.parse(program, "Unable to init the socket connection\n")


def test_nothing_moved_is_an_error():
    with pytest.raises(output.Unreadable, match="nothing moved"):
        output.parse("ib_write_bw", BW_HEAD + " 8  100  0.00  0.00  0.000000\n")


def test_columns_that_do_not_fit_their_titles_are_an_error():
    with pytest.raises(output.Unreadable, match="4 values below 5 titles"):
        output.parse("ib_write_bw", BW_HEAD + " 8  100  0.08  0.08\n")


# --- plan

def test_commands_of_each_device():
    row = Row("write_bw", 65536)
    assert plan.command(row, PVRDMA, 7) == "ib_write_bw -s 65536 -n 7"
    assert plan.command(row, TCP, 7) == "qperf -t 1 -uu -m 65536 node1 tcp_bw"
    assert plan.command(Row("write_rate_qps", 4), RXE, 7) == "ib_write_bw -s 8 -n 7 -q 4"
    assert plan.command(Row("pingpong_event", 4096), RXE, 7) == "ibv_rc_pingpong -s 4096 -n 7 -e"


def test_each_row_runs_once_a_round_on_each_device_in_turns():
    row = Row("write_bw", 65536)
    steps = {step.name: step for step in plan.steps([row], 5, 2)}
    rounds = [steps[plan.round_name(number, row)] for number in range(1, 6)]
    first = []
    for step in rounds:
        devices = [line.split()[1] for line in step.script.splitlines() if line.startswith("measure ")]
        assert sorted(devices) == sorted(row.devices)
        first.append(devices[0])
    assert set(first) == set(row.devices)
    assert all(step.seconds <= plan.SECONDS for step in steps.values())


def test_only_starts_that_are_needed():
    names = [step.name for step in plan.steps([Row("read_bw", 65536)], 1, 2) if step.name.startswith("start")]
    assert names == ["start1.vm.read_bw.8", "start2.vm.read_bw.8"]


@pytest.mark.parametrize("row", rows.EVERY, ids=lambda row: row.name)
def test_each_row_has_a_start_and_pilots_that_tell_its_length(row):
    assert plan.start_of(row).kind.program == row.kind.program
    assert SLOW.iteration(row) > FAST.iteration(row) > 0


FAST = plan.Speed(rate=1e6, bandwidth=1e10, latency=1e-6, pingpong=4e-6, pingpong_event=1e-5)
SLOW = plan.Speed(rate=1e4, bandwidth=2.5e7, latency=3e-4, pingpong=2e-3, pingpong_event=1e-3)


def test_counts_fill_the_time_within_bounds():
    assert plan.count(Row("write_bw", 1048576), FAST, 0.5) == pytest.approx(0.5 / 1.05e-4, rel=0.01)
    assert plan.count(Row("write_bw", 1048576), SLOW, 0.1) == plan.BOUNDS["B/s"][0]
    assert plan.count(Row("write_lat", 8), SLOW, 0.6) == pytest.approx(1000, rel=0.01)
    assert plan.count(Row("pingpong", 4096), SLOW, 1) == 500
    assert plan.count(Row("write_rate", 8), FAST, 1000) == plan.BOUNDS["1/s"][1]


@pytest.mark.parametrize("qps", rows.QPS[1:])
def test_many_queue_pairs_share_whole_completions(qps):
    for speed in (FAST, SLOW):
        count = plan.count(Row("write_rate_qps", qps), speed, 0.33)
        assert count > 0 and count % plan.CQ_MOD == 0


def test_counts_file_has_a_line_for_each_verbs_device():
    wanted = [Row("write_lat", 8), Row("send_rate", 8)]
    lines = plan.counts_file(wanted, {PVRDMA: FAST, RXE: SLOW}, 0.5).splitlines()
    assert [line.split("=")[0] for line in lines] == [
        "vm.write_lat.8.pvrdma", "vm.write_lat.8.rxe", "vm.send_rate.8.pvrdma", "vm.send_rate.8.rxe"]


# --- runs

def printed(device, text, guest=(100, 150), host=(1_000_000_000, 3_500_000_000), status=0):
    lines = [f"@run {device}"]
    if host:
        lines.append(f"@host node1={host[0]} node2={host[0]} pvrdmad=5")
    lines += [f"@guest {guest[0]}", text, f"@guest {guest[1]}"]
    if host:
        lines.append(f"@host node1={host[1]} node2={host[1]} pvrdmad=500000005")
    return "\n".join([*lines, f"@end {status}", ""])


def step_texts(row, status=0):
    texts = {PVRDMA: BW_MIDDLE, RXE: BW_MIDDLE, TCP: QPERF_BW}
    server = "".join(printed(device, "", host=None) for device in row.devices)
    client = "".join(printed(device, texts[device], guest=(7, 17), status=status) for device in row.devices)
    return server, client


def test_run_has_value_work_and_all_cpu_time():
    found = runs.read(Row("write_bw", 65536), step_texts(Row("write_bw", 65536)))
    assert found[PVRDMA] == runs.Run(value=207448 * 65536, host=2.5 + 2.5 + 0.5, guest=0.5 + 0.1,
                                     work=2000 * 65536 / 1e9)
    assert found[TCP].value == 63913822 and found[TCP].work == pytest.approx(0.063913822)


def test_tcp_stands_beside_messages_and_iterations():
    """Its bandwidth is a rate of messages, and an iteration is there and back."""
    figures = output.qperf(QPERF_BW)
    assert runs.value_of(Row("write_rate", 8), TCP, figures) == pytest.approx(63913822 / 8)
    assert runs.work_of(Row("write_rate", 8), figures) == pytest.approx(63913822 / 8)
    figures = output.qperf(QPERF_LAT)
    assert runs.value_of(Row("write_lat", 8), TCP, figures) == pytest.approx(210881e-9)
    assert runs.value_of(Row("pingpong", 4096), TCP, figures) == pytest.approx(2 * 210881e-9)


def test_latency_programs_send_two_messages_an_iteration():
    assert runs.work_of(Row("write_lat", 8), output.parse("ib_write_lat", LAT)) == 4000


def test_failed_program_is_an_error_that_names_it():
    row = Row("read_bw", 65536)
    with pytest.raises(output.Unreadable, match="vm.read_bw.65536 on pvrdma failed"):
        runs.read(row, step_texts(row, status=1))
    with pytest.raises(output.Unreadable, match="vm.read_bw.65536 on pvrdma failed"):
        runs.read(row, ("", ""))


# --- summary

def entry(row=Row("write_bw", 65536), ours=(30e9, 10e9, 20e9), theirs=(2e7, 4e7, 3e7)):
    def several(values):
        return [runs.Run(value=value, host=3.0, guest=1.0, work=2.0) for value in values]

    starts = {device: [runs.Run(1, host, 0.25, 1) for host in (0.5, 1.0, 9.0)] for device in (PVRDMA, RXE)}
    return summary.row_entry(row, {PVRDMA: several(ours), RXE: several(theirs), TCP: several([5e7] * 3)}, starts)


def test_entry_has_medians_and_their_ratio():
    found = entry()
    assert (found["name"], found["unit"], found["peer"]) == ("vm.write_bw.65536", "B/s", "Soft-RoCE")
    assert (found["value"], found["min"], found["max"], found["runs"]) == (20e9, 10e9, 30e9, 3)
    assert (found["peer_value"], found["ratio"]) == (3e7, pytest.approx(20e9 / 3e7))
    assert found["tcp"]["value"] == 5e7


def test_cpu_time_is_per_work_without_the_start():
    found = entry()
    assert (found["host_cpu"], found["guest_cpu"]) == (1.0, 0.375)      # (3 x 3 - 3 x 1) / 6, (3 x 1 - 3 x 1/4) / 6
    assert found["tcp"]["host_cpu"] == 1.5


def test_line_shows_verdict_and_ratio():
    assert "667 x" in table.line(entry()) and " met " in table.line(entry())
    slow = entry(Row("write_lat", 8), ours=(2e-4,) * 3, theirs=(1e-3,) * 3)
    assert "1/5.0" in table.line(slow) and "MISSED" in table.line(slow)


@pytest.mark.parametrize("row", rows.MAIN, ids=lambda row: row.name)
def test_each_main_row_has_a_target_that_can_be_missed(row):
    target = target_of(row.name)
    ratios = [1e9, 1e-9]
    assert [target.met({"ratio": ratio}) for ratio in (ratios if target.at_least else ratios[::-1])] == [True, False]


def test_curves_have_no_target_and_rows_have_names_of_their_own():
    assert not any(target_of(row.name) for row in rows.CURVES)
    assert len({row.name for row in rows.EVERY}) == len(rows.EVERY)


# --- options

def test_rows_can_be_chosen():
    options = bench_vm.arguments(["--rows", "vm.write_lat.*"])
    assert {row.kind_name for row in options.wanted} == {"write_lat"} and options.json is None
    assert bench_vm.arguments(["--rows", "main"]).wanted == rows.MAIN
    assert bench_vm.arguments([]).json.name == "vm.json"


@pytest.mark.parametrize("argv, said", [
    (["--rows", "nonsense"], "no row is called nonsense"),
    (["--rounds", "0"], "something positive"),
    (["--seconds", "-1"], "something positive"),
    (["--no-such-option"], "--no-such-option"),
])
def test_bad_options_say_what_is_wrong(argv, said, capsys):
    with pytest.raises(SystemExit):
        bench_vm.arguments(argv)
    assert said in capsys.readouterr().err
