# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
"""bench/vm, bench/apps and bench/guest in short: every row is there, with all fields of their files. Speed is not checked."""

import json
import math
import subprocess

import pytest
from bench_lib.apps import apps
from bench_lib.guest import rows as guest_rows
from bench_lib.vm import rows
from vmlab_run import ROOT

pytestmark = pytest.mark.long
NUMBERS = ("value", "peer_value", "ratio", "min", "max", "peer_min", "peer_max")
CPU = ("host_cpu", "guest_cpu", "peer_host_cpu", "peer_guest_cpu")


def run(name, path, *options):
    """Its output, and {row's name: figures}."""
    command = [ROOT / "scripts" / "bench" / name, *options, "--json", path,
               "--keep-logs", ROOT / "build" / "check" / f"vm-bench-{name}"]
    done = subprocess.run(command, capture_output=True, text=True, stdin=subprocess.DEVNULL, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout, {entry["name"]: entry for entry in json.loads(path.read_text())}


def check_row(entry, unit, has_tcp):
    assert all(math.isfinite(entry[name]) and entry[name] > 0 for name in NUMBERS), entry
    assert entry["ratio"] == pytest.approx(entry["value"] / entry["peer_value"])
    assert (entry["peer"], entry["unit"], entry["runs"], entry["peer_runs"]) == ("Soft-RoCE", unit, 1, 1)
    assert bool(entry["tcp"]) == has_tcp


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("bench")


@pytest.fixture(scope="module")
def bench(folder):
    return run("vm", folder / "vm.json", "--quick")


@pytest.fixture(scope="module")
def bench_apps(folder):
    return run("apps", folder / "apps.json", "--rounds", "1")


@pytest.fixture(scope="module")
def bench_guest(folder):
    return run("guest", folder / "guest.json", "--quick")


def test_every_row_is_there_once(bench):
    assert sorted(bench[1]) == sorted(row.name for row in rows.QUICK)


@pytest.mark.parametrize("row", rows.QUICK, ids=lambda row: row.name)
def test_row_is_complete_and_sane(bench, row):
    entry = bench[1][row.name]
    check_row(entry, row.kind.unit, rows.TCP in row.devices)
    assert all(math.isfinite(entry[name]) and entry[name] >= 0 for name in CPU), entry
    assert entry["min"] <= entry["value"] <= entry["max"]
    if entry["tcp"]:
        assert entry["tcp"]["value"] > 0 and entry["tcp"]["host_cpu"] > 0


def test_traffic_costs_cpu_time(bench):
    """Both counts are real: Soft-RoCE's large messages are far more work than a program's start."""
    entry = bench[1]["vm.write_bw.1048576"]
    assert entry["peer_host_cpu"] > 1 and entry["peer_guest_cpu"] > 1


def test_table_shows_each_row_and_the_targets(bench):
    lines = bench[0].splitlines()
    shown = {line.split()[0]: line for line in lines if line.startswith("vm.")}
    assert sorted(shown) == sorted(bench[1])
    assert all(("met" in shown[row.name]) or ("MISSED" in shown[row.name]) for row in rows.MAIN)
    assert any(line.endswith("targets met") for line in lines)


def test_machine_is_described(bench, folder):
    machine = json.loads((folder / "machine.json").read_text())
    assert {"CPU", "cores", "caches", "RAM", "kernel", "VMs under", "QEMU", "compiler", "date"} <= machine.keys()


def test_every_row_of_applications_is_there(bench_apps):
    assert list(bench_apps[1]) == [row.name for row in apps.ROWS]


@pytest.mark.parametrize("of, row", [(of, row) for of in apps.EVERY for row in of.rows], ids=lambda it: it.name)
def test_row_of_applications_is_complete_and_sane(bench_apps, of, row):
    check_row(bench_apps[1][row.name], row.unit, rows.TCP in of.devices)


@pytest.mark.parametrize("case", guest_rows.CASES)
def test_guests_execute_less_than_with_soft_roce(bench_guest, case):
    found = {kind: bench_guest[1][f"guest.{kind}.{case}"] for kind in guest_rows.KINDS}
    assert all(math.isfinite(row["value"]) and row["value"] >= 0 for row in found.values())
    assert 0 < found["insn"]["ratio"] < 0.5 and 0 < found["kvm_cpu"]["ratio"] < 1
