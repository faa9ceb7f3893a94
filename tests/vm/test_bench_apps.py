# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
"""bench/apps in short: every row is there, with all fields of apps.json. Speed is not checked."""

import json
import math
import subprocess

import pytest
from bench_lib.apps import apps
from bench_lib.apps.app import TCP
from vmlab_run import ROOT

pytestmark = pytest.mark.long
NUMBERS = ("value", "peer_value", "ratio", "min", "max", "peer_min", "peer_max")


@pytest.fixture(scope="module")
def bench(tmp_path_factory):
    """{row's name: entry}"""
    path = tmp_path_factory.mktemp("bench-apps") / "apps.json"
    command = [ROOT / "scripts" / "bench/apps", "--rounds", "1", "--json", path,
               "--keep-logs", ROOT / "build" / "check" / "vm-bench-apps"]
    done = subprocess.run(command, capture_output=True, text=True, stdin=subprocess.DEVNULL, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return {entry["name"]: entry for entry in json.loads(path.read_text())}


def test_every_row_is_there(bench):
    assert list(bench) == [row.name for row in apps.ROWS]


@pytest.mark.parametrize("app, row", [(app, row) for app in apps.EVERY for row in app.rows], ids=lambda it: it.name)
def test_row_is_complete_and_sane(bench, app, row):
    entry = bench[row.name]
    assert all(math.isfinite(entry[name]) and entry[name] > 0 for name in NUMBERS), entry
    assert entry["ratio"] == pytest.approx(entry["value"] / entry["peer_value"])
    assert (entry["peer"], entry["unit"], entry["runs"], entry["peer_runs"]) == ("Soft-RoCE", row.unit, 1, 1)
    assert bool(entry["tcp"]) == (TCP in app.devices)
