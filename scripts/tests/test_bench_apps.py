# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
"""bench/apps without VMs: its steps, what it reads out of programs' output, what it makes of it."""

import dataclasses
import json
import re

import pytest
from conftest import SCRIPTS


from bench_lib.apps import apps, cm, mpi, plan, qp, storage, summary
from bench_lib.apps import main as bench_apps
from bench_lib.apps.app import PVRDMA, RXE, TCP, App, Row
from bench_lib.targets import target_of
from bench_lib.vm.output import Unreadable

CMTIME = """\
creating id
step              total ms     max ms     min us  us / conn
create id    :       27.00       0.43       5.00      13.51
resolve addr :       98.00       9.19      31.00      48.34
connect      :      125.00    1216.06   54780.00     627.26
destroy      :      250.00       0.44       7.00      11.87
@connections 500
"""
LATER_CMTIME = """\
cm_conn               500
threads                 1
step             avg/iter  total(us)    us/conn    sum(us)    max(us)    min(us)
full connect          450     225000          0          0          0          0
create id              50      25000         10       5000         40          5
bind addr               0          0          0          0          0          0
cm connect            400     200000        350     175000       5000        100
destroy id             50      25000          0          0          0          0
@connections 500
"""
NETPIPE = """\
0: node2
Now starting the main loop
  0:       1 bytes    100 times -->      0.29 Mbps in      26.19 usec
  1:       8 bytes    100 times -->      2.44 Mbps in      25.00 usec
  2:     512 bytes    100 times -->    100.00 Mbps in       9.00 usec
  0:   65536 bytes     50 times -->   8000.00 Mbps in      62.50 usec
  1: 4194304 bytes     50 times -->   4000.00 Mbps in    8000.00 usec
"""
SPEEDS = "".join(f"@{test} 2.5e-05\n" for test in mpi.SPEEDS)
WORD = App("word", (PVRDMA, RXE, TCP), (Row("apps.word", "s", "a word"),),
           lambda text: {"apps.word": float(re.search(r"^took (\S+)$", text, re.MULTILINE)[1])})


def fio(**changes):
    job = {"error": 0, "read": {"iops": 0, "bw_bytes": 0}, "write": {"iops": 0, "bw_bytes": 0}}
    jobs = [{**job, "jobname": "single", "read": {"iops": 900, "bw_bytes": 3686400}},
            {**job, "jobname": "random", "read": {"iops": 4000.5, "bw_bytes": 16386048}},
            {**job, "jobname": "read", "read": {"iops": 400, "bw_bytes": 419430400}},
            {**job, "jobname": "write", "write": {"iops": 300, "bw_bytes": 314572800}, **changes}]
    return f"@run rxe\nNote: a word before\n{json.dumps({'jobs': jobs}, indent=1)}\nNQN:ram disconnected\n@end 0\n"


# The later cmtime prints a sum first, which does not count.
@pytest.mark.parametrize("read, text, expected", [
    (cm.read_rping, "@run rxe\n@connections 20 500000000\n@end 0\n", {"rping": 40}),
    (cm.read_cmtime, CMTIME, {"cmtime": 1000, "cmtime_connect": 4000}),
    (cm.read_cmtime, LATER_CMTIME, {"cmtime": 2000, "cmtime_connect": 2500}),
    (qp.read, "@run rxe\n@qp_create_ns 150000\n@qp_create_destroy_ns 250000\n@end 0\n",
     {"qp_create": 150e-6, "qp_create_destroy": 250e-6}),
    (mpi.read_netpipe, NETPIPE, {"netpipe_lat": 25e-6, "netpipe_peak": 1000 << 20}),
    (mpi.UCX.read, f"mpirun: a warning\n{SPEEDS}", {f"mpi_ucx.{test}": 25e-6 for test in mpi.SPEEDS}),
    (storage.read_fio, fio(), {"nvme_random_read_single": 900, "nvme_random_read": 4000.5, "nvme_read": 419430400, "nvme_write": 314572800}),
    (storage.read_copy, "@run tcp\n@copied 2500000000 1250000000\n@end 0\n", {"nfs_to_server": 2.5, "nfs_to_client": 1.25}),
])
def test_output_is_read(read, text, expected):
    assert read(text) == pytest.approx({f"apps.{name}": value for name, value in expected.items()})


@pytest.mark.parametrize("change", [{"error": 5}, {"jobname": "other"}, {"write": {"iops": 0, "bw_bytes": 0}}])
def test_fio_that_failed_is_an_error(change):
    with pytest.raises(Unreadable):
        storage.read_fio(fio(**change))


@pytest.mark.parametrize("read", [cm.read_rping, cm.read_cmtime, qp.read, mpi.read_netpipe, mpi.UCX.read, storage.read_fio, storage.read_copy])
def test_output_without_result_is_an_error(read):
    with pytest.raises(Unreadable):
        read("rdma_connect: Connection refused\n")


def test_names_are_unique_and_each_application_has_its_function():
    names = [row.name for row in apps.ROWS]
    assert len(set(names)) == len(names) and all(name.startswith("apps.") for name in names)
    text = "".join(path.read_text() for path in (SCRIPTS / "guest").glob("bench-app*.sh"))
    for app in apps.EVERY:
        assert re.search(rf"^app_{app.name}\(\)", text, re.MULTILINE), app.name


def test_devices_take_turns():
    firsts = [re.search(r"run_app (\w+)", plan.step(number, WORD).script)[1] for number in (1, 2, 3)]
    assert sorted(firsts) == sorted(WORD.devices)


def test_long_applications_have_fewer_rounds():
    long = dataclasses.replace(WORD, name="long", rounds=1)
    assert [step.name for step in plan.steps([WORD, long], 2)] == ["setup", "1.word", "1.long", "2.word"]


def ran(device, value, status=0):
    return f"@run {device}\ntook {value}\n@end {status}\n"


def test_runs_are_read_by_device():
    client = ran("rxe", 3) + ran("pvrdma", 1) + ran("tcp", 2)
    server = ran("rxe", 9) + ran("pvrdma", 9) + ran("tcp", 9)
    found, failures = plan.read(WORD, [server, client])
    assert found == {PVRDMA: {"apps.word": 1}, RXE: {"apps.word": 3}, TCP: {"apps.word": 2}} and not failures


@pytest.mark.parametrize("server, client", [
    (ran("pvrdma", 9, 1), ran("pvrdma", 1)),
    (ran("pvrdma", 9), ran("pvrdma", 1, 1)),
    (ran("pvrdma", 9), "@run pvrdma\ntook 1\n"),
    ("", ran("pvrdma", 1)),
])
def test_failed_run_does_not_count(server, client):
    rest = ran("rxe", 3) + ran("tcp", 2)
    found, failures = plan.read(WORD, [server + rest, client + rest])
    assert sorted(found) == [RXE, TCP]
    assert len(failures) == 1 and "word on pvrdma" in failures[0]


@pytest.mark.parametrize("statuses, ended", [((0, 0, 0, 0), None), ((0, 0, 1, 0), "0 on node1, 0 on node2, 1 on node3, 0 on node4")])
def test_all_nodes_must_end_well(statuses, ended):
    four = dataclasses.replace(WORD, devices=(PVRDMA,), nodes=4)
    found, failures = plan.read(four, [ran("pvrdma", node, status) for node, status in enumerate(statuses, 1)])
    assert found == ({} if ended else {PVRDMA: {"apps.word": 2}})
    assert failures == ([f"word on pvrdma: ended with {ended}"] if ended else [])


@pytest.fixture
def vmlabs(tmp_path, monkeypatch):
    """Commands of vmlab and names of the steps in their shares; each step is over at once, on all nodes."""
    ran_here = []

    def run(command, share, _watch, on_line):
        steps = sorted(path.name.partition("-")[2] for path in (share / "steps").iterdir())
        nodes = int(command[command.index("--nodes") + 1])
        ran_here.append((nodes, steps))
        for node in range(1, nodes + 1):
            results = share / "results" / f"node{node}"
            results.mkdir(parents=True)
            for step in steps:
                (results / f"{step}.rc").write_text("0 1000")
                (results / f"{step}.out").write_text("".join(ran(device, node) for device in (RXE, PVRDMA, TCP)))
                on_line(f"node{node}| step {step}: status 0")
        return 0, "", "", {}

    monkeypatch.setattr(bench_apps.vmlab_steps, "run", run)
    return ran_here


def test_each_number_of_vms_has_its_boot(vmlabs, tmp_path, monkeypatch, capsys):
    row = dataclasses.replace(WORD.rows[0], name="apps.words")
    four = dataclasses.replace(WORD, name="words", nodes=4, rows=(row,), read=lambda text: {row.name: WORD.read(text)["apps.word"]})
    monkeypatch.setattr(bench_apps.apps, "EVERY", (four, WORD))
    figures = tmp_path / "apps.json"
    assert bench_apps.main(["--rounds", "2", "--json", str(figures), "--keep-logs", str(tmp_path / "logs")]) == 0
    assert vmlabs == [(2, ["1.word", "2.word", "setup"]), (4, ["1.words", "2.words", "setup"])]
    assert [entry["name"] for entry in json.loads(figures.read_text())] == ["apps.words", "apps.word"]
    assert (tmp_path / "logs" / "4-vms" / "results" / "node4" / "2.words.out").exists()
    assert "1.words is over, 3 of 4" in capsys.readouterr().out


def test_entry_has_medians_and_the_ratio():
    item = summary.entry(WORD.rows[0], {PVRDMA: [1, 4, 2], RXE: [10, 30, 20], TCP: [5]})
    assert (item["value"], item["min"], item["max"], item["runs"]) == (2, 1, 4, 3)
    assert (item["peer"], item["peer_value"], item["ratio"]) == ("Soft-RoCE", 20, 0.1)
    assert item["tcp"] == {"value": 5, "min": 5, "max": 5, "runs": 1}
    assert summary.entry(WORD.rows[0], {PVRDMA: [1], RXE: [2]})["tcp"] is None


def test_queue_pairs_may_take_no_longer_than_with_soft_roce():
    for row in (qp.CREATE, qp.CREATE_DESTROY):
        assert target_of(row.name).met({"ratio": 1.0}) and not target_of(row.name).met({"ratio": 1.01})


def test_connection_rates_are_compared_with_soft_roce():
    for row, met in ((cm.RPING, 1.0), (cm.CMTIME, 2.0)):
        assert target_of(row.name).met({"ratio": met}) and not target_of(row.name).met({"ratio": 0.99 * met})


@pytest.fixture
def document(tmp_path, monkeypatch):
    monkeypatch.setattr(bench_apps, "DOCUMENT", tmp_path / "applications.md")
    return bench_apps.DOCUMENT


def test_document_gets_the_table(document):
    document.write_text(f"before\n{bench_apps.BEGIN}old\n{bench_apps.END}behind\n")
    slow = summary.entry(cm.RPING, {PVRDMA: [10], RXE: [20]})
    bench_apps.write_document([slow])
    text = document.read_text()
    assert text.startswith("before\n") and text.endswith("behind\n") and "old" not in text
    assert "| 10.0 /s | 20.0 /s | – | 1/2.0 | >= 1 x | **missed** |" in text


def test_figures_of_a_file_go_into_the_document(document, tmp_path, capsys):
    figures = tmp_path / "apps.json"
    document.write_text(f"{bench_apps.BEGIN}{bench_apps.END}")
    figures.write_text(json.dumps([summary.entry(cm.RPING, {PVRDMA: [30], RXE: [20]})]))
    assert bench_apps.main(["--from", str(figures), "--document"]) == 0
    assert "| 30.0 /s | 20.0 /s |" in document.read_text() and "1 of 1 targets met" in capsys.readouterr().out


@pytest.mark.parametrize("text", [None, "no JSON"])
def test_file_without_figures_is_an_error(tmp_path, capsys, text):
    if text:
        (tmp_path / "apps.json").write_text(text)
    assert bench_apps.main(["--from", str(tmp_path / "apps.json")]) == 1
    assert "has no figures" in capsys.readouterr().err


def test_document_without_place_is_an_error(document):
    document.write_text("nothing\n")
    with pytest.raises(bench_apps.BenchError, match="no place"):
        bench_apps.write_document([])


def test_place_is_in_the_document():
    text = bench_apps.DOCUMENT.read_text()
    assert text.count(bench_apps.BEGIN) == text.count(bench_apps.END) == 1
