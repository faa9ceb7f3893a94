# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
"""bench/report on figures made up for it."""

import json
import re
from xml.etree import ElementTree

import pytest
from conftest import ROOT

from bench_lib.report import charts, inputs, main, measured, page, readme

DOCS = ROOT / "docs"

MACHINE = {"CPU": "a CPU of tests", "cores": "2", "VMs under": "TCG"}


def native_row(name, value, peer_value, unit="B/s"):
    return {"name": name, "value": value, "unit": unit, "peer": "memcpy" if peer_value else None, "peer_value": peer_value,
            "ratio": value / peer_value if peer_value else None, "min": value / 2, "max": value * 2, "runs": 5}


def vm_row(name, value, peer_value, unit="B/s", tcp=None):
    device = {"value": tcp, "min": tcp, "max": tcp, "runs": 5, "host_cpu": 14.0, "guest_cpu": 12.0}
    return {**native_row(name, value, peer_value, unit), "peer": "Soft-RoCE", "cpu_unit": "s/GB", "host_cpu": 0.1,
            "guest_cpu": 0.05, "peer_min": 1, "peer_max": 2, "peer_runs": 5, "peer_host_cpu": 80.0, "peer_guest_cpu": 75.0,
            "tcp": device if tcp else None}


NATIVE = [native_row("write_bw.65536", 39e9, 40e9), native_row("write_bw.4096", 10e9, 20e9),
          native_row("write_rate.8", 4e6, None, "1/s")]
VM = [vm_row("vm.write_bw.65536", 12e9, 25e6, tcp=74e6), vm_row("vm.write_bw.512", 1e8, 1e6, tcp=4e6),
      vm_row("vm.write_rate.8", 2e5, 1e4, "1/s"), vm_row("vm.write_rate_qps.4", 3e5, 1e4, "1/s"),
      vm_row("vm.write_lat.8", 14e-6, 290e-6, "s", tcp=300e-6), vm_row("vm.write_lat.64", 15e-6, 290e-6, "s", tcp=300e-6)]
NOTES = """\
# Notes

## vm.write_rate.8, write_rate.8

Each message rings: 3 µs of QEMU's, by perf.

## vm.write_lat.*

A note on latency.

## Where the time goes

A section of its own.
"""


@pytest.fixture
def folders(tmp_path):
    """(figures, docs), filled."""
    figures, docs = tmp_path / "figures", tmp_path / "docs"
    figures.mkdir()
    (docs / "performance").mkdir(parents=True)
    for name, value in (("native.json", NATIVE), ("vm.json", VM), ("machine.json", MACHINE)):
        (figures / name).write_text(json.dumps(value))
    (docs / "performance" / "notes.md").write_text(NOTES)
    return figures, docs


def run(folders):
    figures, docs = folders
    return main.main(["--figures", str(figures), "--docs", str(docs)])


@pytest.fixture
def no_drawing(monkeypatch):
    """Charts need a package that checks do without; what is drawn is noted."""
    drawn = []
    monkeypatch.setattr(charts, "draw", lambda chart, folder: drawn.append(chart))
    return drawn


def text_of(folders):
    assert run(folders) == 0
    return (folders[1] / "performance.md").read_text()


# --- inputs

@pytest.mark.parametrize("name, maker", [("native.json", "`make bench`"), ("vm.json", "`make bench-vm`")])
def test_missing_file_names_the_target_that_makes_it(folders, capsys, name, maker):
    (folders[0] / name).unlink()
    assert run(folders) == 1
    said = capsys.readouterr().err
    assert name in said and maker in said and len(said.splitlines()) == 1


@pytest.mark.parametrize("text", ["{", "{}", '[{"name": "write_bw.8"}]'])
def test_file_that_is_no_list_of_rows_is_refused(folders, capsys, text):
    (folders[0] / "vm.json").write_text(text)
    assert run(folders) == 1
    assert "`make bench-vm` again" in capsys.readouterr().err


@pytest.mark.parametrize("name", ["vm.no_such.8", "hosts.no_such.8"])
def test_note_on_a_row_that_is_not_there_is_refused(folders, capsys, name):
    (folders[0] / "hosts.json").write_text(json.dumps([native_row("hosts.write_lat.8", 32e-6, 8e-6, "s")]))
    (folders[1] / "performance" / "notes.md").write_text(f"## {name}\n\ntext\n")
    assert run(folders) == 1
    assert name in capsys.readouterr().err


def test_other_hosts_are_optional_and_so_are_notes_on_them(folders, no_drawing):
    with open(folders[1] / "performance" / "notes.md", "a") as notes:
        notes.write("\n## hosts.write_lat.8\n\nWhy.\n\n## wire.write_lat.8\n\nHow.\n\n## peers.memory\n\nMore.\n")
    text = text_of(folders)
    assert "## Across hosts" not in text and "## Many hosts" not in text and "Why." not in text
    assert "## RoCEv2" not in text and "How." not in text


def test_other_hosts_have_sections_with_verdicts_and_notes(folders, no_drawing):
    hosts = [native_row("hosts.write_lat.8", 32e-6, 8e-6, "s"), native_row("hosts.write_bw.1048576", 3e9, 2e9)]
    (folders[0] / "hosts.json").write_text(json.dumps(hosts))
    wire = [native_row("wire.write_lat.8", 10e-6, 13e-6, "s"), native_row("wire.tcp_write_bw.65536", 2e9, None)]
    (folders[0] / "wire.json").write_text(json.dumps(wire))
    (folders[0] / "directory.json").write_text(json.dumps([native_row("peers.idle_cpu", 0.1, None, "%")]))
    with open(folders[1] / "performance" / "notes.md", "a") as notes:
        notes.write("\n## hosts.write_lat.8\n\nWhy.\n\n## wire.write_lat.8\n\nA packet each way.\n")
    text = text_of(folders)
    assert text.index("## The device alone") < text.index("## Across hosts") < text.index("## RoCEv2 on an Ethernet segment")
    assert text.index("## RoCEv2 on an Ethernet segment") < text.index("## Many hosts")
    assert "| `wire.write_lat.8` | 10.0 µs |" in text and "| <= 12 us | met |" in text
    assert "**`wire.write_lat.8`.** A packet each way." in text and "| `wire.tcp_write_bw.65536` | 2.0 GB/s |" in text
    assert text.index("## Many hosts") < text.index("## Where the time goes")
    assert "| `hosts.write_lat.8` | 32.0 µs |" in text and "| 4.00 × | <= 1.5 x | **MISSED** |" in text
    assert "1 of 2 targets are met." in text
    assert "**`hosts.write_lat.8`: missed.** Why." in text
    assert "| `peers.idle_cpu` | 0.1 % |" in text


def test_notes_are_optional(folders, no_drawing):
    (folders[1] / "performance" / "notes.md").unlink()
    assert "No explanation yet." in text_of(folders)


# --- page

def test_page_has_machine_rows_targets_and_verdicts(folders, no_drawing):
    text = text_of(folders)
    assert "| CPU | a CPU of tests |" in text
    assert "| `vm.write_bw.65536` | 12.0 GB/s |" in text and "| 480 × | >= 300 x | met | 74.0 MB/s |" in text
    assert "| `vm.write_rate.8` |" in text and "| 20 × | >= 50 x | **MISSED** |" in text
    assert "| 14.0 µs |" in text and "| 1/20.7 | <= 1/10 | met |" in text
    assert "2 of 3 targets are met." in text    # of the VMs'
    assert "1 of 2 targets are met." in text    # of the device's
    assert "memcpy: 40.0 GB/s | 0.97 × | >= 0.95 x | met |" in text


def test_page_has_cpu_time_of_all(folders, no_drawing):
    row = next(line for line in text_of(folders).splitlines() if line.startswith("| `vm.write_bw.65536` |"))
    assert row.endswith("| 74.0 MB/s | GB | 0.1 / 0.05 | 80 / 75 | 14 / 12 |")


def test_notes_survive_where_they_belong(folders, no_drawing):
    first = text_of(folders)
    assert "**`vm.write_rate.8`: missed.** Each message rings: 3 µs of QEMU's, by perf." in first
    assert "**`write_rate.8`: missed.** Each message rings" in first
    assert "**`vm.write_lat.8`.** A note on latency." in first
    assert "## Where the time goes\n\nA section of its own.\n" in first
    assert text_of(folders) == first
    assert (folders[1] / "performance" / "notes.md").read_text() == NOTES


def test_note_on_rows_of_which_one_is_missed_is_there_once(folders, no_drawing):
    (folders[1] / "performance" / "notes.md").write_text("## write_rate.8, write_bw.65536\n\nOne text.\n")
    text = text_of(folders)
    assert "**`write_rate.8`: missed; `write_bw.65536`.** One text." in text
    assert text.count("One text.") == 1


def test_page_shows_each_chart_that_is_drawn(folders, no_drawing):
    text = text_of(folders)
    assert len(no_drawing) == 4
    assert all(f"(performance/{chart.file})" in text for chart in no_drawing)


# --- charts

def test_curves_are_those_of_the_figures():
    native, vm = ({row["name"]: row for row in rows} for rows in (NATIVE, VM))
    found = {chart.file: chart.curves for chart in charts.all_charts(native, vm)}
    assert found["vm-latency.svg"]["TCP"] == [(8, pytest.approx(300)), (64, pytest.approx(300))]
    assert found["vm-bandwidth.svg"]["pvrdma"] == [(8, pytest.approx(2e5 * 8e-9)), (512, pytest.approx(0.1)),
                                                   (65536, pytest.approx(12))]
    assert found["vm-bandwidth.svg"]["memcpy"] == [(4096, pytest.approx(20)), (65536, pytest.approx(40))]
    assert found["vm-rate.svg"]["Soft-RoCE"] == [(1, pytest.approx(0.01)), (4, pytest.approx(0.01))]


def test_no_figures_no_chart():
    assert charts.all_charts({}, {}) == []


def test_sizes_are_said_as_people_do():
    assert [charts.size_text(number) for number in (8, 512, 4096, 65536, 1048576)] == [
        "8 B", "512 B", "4 KiB", "64 KiB", "1 MiB"]


def test_same_figures_make_the_same_files(folders, tmp_path):
    pytest.importorskip("matplotlib", reason="python3-matplotlib is not installed; only `make bench-report` needs it")
    chart = charts.all_charts({row["name"]: row for row in NATIVE}, {row["name"]: row for row in VM})[0]
    texts = []
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
        charts.draw(chart, tmp_path / name)
        texts.append((tmp_path / name / chart.file).read_text())
    assert texts[0] == texts[1]
    assert "Soft-RoCE" in texts[0] and "64 B" in texts[0] and "<dc:date>" not in texts[0]


def test_verdict_of_a_row_without_target_is_empty():
    assert page.verdict_text(NATIVE[1]) == ("", "")


def test_charts_have_no_trailing_space(tmp_path):
    file = tmp_path / "a.svg"
    file.write_text('<path d="M 0 1 \nL 2 3 \n"/>\n')
    charts.without_trailing_space(file)
    assert file.read_text() == '<path d="M 0 1\nL 2 3\n"/>\n'


# --- measured.json and README.md

@pytest.fixture
def project(folders):
    """The folders, with a README.md beside docs/, and figures of all rows that it shows."""
    figures, docs = folders
    vm = VM + [vm_row("vm.pingpong.4096", 60e-6, 1.8e-3, "s", tcp=700e-6)]
    (figures / "vm.json").write_text(json.dumps(vm))
    (figures / "machine.json").write_text(json.dumps({**MACHINE, "VMs under": "TCG: QEMU emulates the VMs' CPUs"}))
    (docs.parent / "README.md").write_text(f"Before.\n\n{readme.BEGIN}\nold\n{readme.END}\n\nAfter.\n")
    return figures, docs


def test_files_of_a_later_run_replace_their_part_only(project, no_drawing):
    figures, docs = project
    assert run(project) == 0
    (figures / "native.json").write_text(json.dumps([native_row("write_rate.8", 9e6, None, "1/s")]))
    (figures / "vm.json").unlink()
    (docs / "performance" / "notes.md").write_text("# Notes\n")
    assert run(project) == 0
    found = measured.load(docs / "performance")
    assert [row["value"] for row in found.rows("native")] == [9e6]
    assert len(found.rows("vm")) == len(VM) + 1
    assert re.fullmatch(r"\d{4}-\d\d-\d\d", found.parts["vm"].date)


def test_again_uses_measured_json_alone(project, no_drawing):
    figures, docs = project
    assert run(project) == 0
    before = [(docs / name).read_text() for name in ("performance.md", "performance/measured.json", "../README.md")]
    (figures / "vm.json").write_text("no JSON")
    assert main.main(["--again", "--figures", str(figures), "--docs", str(docs)]) == 0
    assert before == [(docs / name).read_text() for name in ("performance.md", "performance/measured.json", "../README.md")]


@pytest.fixture
def readme_text(project, no_drawing):
    assert run(project) == 0
    return (project[1].parent / "README.md").read_text()


def test_readme_keeps_all_but_its_figures(readme_text):
    assert readme_text.startswith("Before.\n\n") and readme_text.endswith("\n\nAfter.\n") and "\nold\n" not in readme_text
    assert "| `ib_write_bw`, 64 KiB | 12.0 GB/s | 25.0 MB/s | 480 × |" in readme_text


def test_readme_names_the_emulation_beside_the_figures(readme_text):
    assert "without KVM" in readme_text[:readme_text.index("| `ib_write_bw`")] and "Soft-RoCE suffers most" in readme_text


def test_readme_without_markers_is_refused(project, no_drawing, capsys):
    (project[1].parent / "README.md").write_text("No markers.\n")
    assert run(project) == 1
    assert readme.BEGIN in capsys.readouterr().err


def test_chart_of_the_readme_has_its_figures(project, no_drawing):
    assert run(project) == 0
    text = (project[1] / "performance" / readme.CHART).read_text()
    texts = [element.text for element in ElementTree.fromstring(text).iter() if element.text and element.text.strip()]
    assert {"pvrdma", "Soft-RoCE", "TCP", "12.0 GB/s", "25.0 MB/s", "74.0 MB/s", "60.0 µs"} <= set(texts)


def test_longer_bars_are_of_larger_values():
    widths = readme.bar_widths([("pvrdma", 61e9), ("Soft-RoCE", 30e6), ("TCP", 80e6)])
    assert widths[0] > widths[2] > widths[1] > 0


# --- the committed files

@pytest.fixture(scope="module")
def committed():
    return measured.load(DOCS / "performance")


def test_measured_json_is_as_it_is_written(committed):
    assert (DOCS / "performance" / measured.NAME).read_text() == measured.text_of(committed)


def test_performance_md_is_that_of_measured_json(committed):
    """If this fails after a change of notes.md or of the report: scripts/bench/report --again."""
    notes = inputs.notes(DOCS / "performance" / "notes.md", committed.names())
    assert (DOCS / "performance.md").read_text() == main.page_of(committed, notes)[0]


def test_readme_md_is_that_of_measured_json(committed):
    text = (DOCS.parent / "README.md").read_text()
    assert text == readme.insert(text, readme.block(committed))
    assert (DOCS / "performance" / readme.CHART).read_text() == readme.chart(committed)


def test_readme_md_has_no_figure_that_performance_md_lacks():
    text, page_text = (DOCS.parent / "README.md").read_text(), (DOCS / "performance.md").read_text()
    rows = re.findall(r"^\| `.*\| (.+) \| (.+) \| (.+) \|$", text[text.index(readme.BEGIN):], re.MULTILINE)
    assert len(rows) == len(readme.ROWS)
    for ours, peer, ratio in rows:
        assert re.search(rf"\| {re.escape(ours)} \|.*\| {re.escape(peer)} \| {re.escape(ratio)} \|", page_text)
    outside = text[:text.index(readme.BEGIN)] + text[text.index(readme.END):]
    assert not re.search(r"\d (×|x\b|GB/s|MB/s|µs)", outside)


def test_charts_are_those_of_measured_json(committed):
    drawn = main.page_of(committed, inputs.Notes({}, []))[1]
    assert len(drawn) == 5
    for chart in drawn:
        assert (DOCS / "performance" / chart.file).read_text().endswith(f"{chart.stamp()}\n"), chart.file
