# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
"""tests/soak/soak.py: a short run, and its invariants find what they are for."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

SOAK = Path(__file__).resolve().parents[1] / "soak"
sys.path.append(str(SOAK))

from invariants import GROWTH_KIB, WARM_UP_ROUNDS, Invariants, Violation, check_run  # noqa: E402

RIGHT = {"wrong": 0, "failed": [], "steps": 1}


class FakeRun:
    """Of hosts_verify."""

    guests = (1, 2)

    def error(self):
        return ""


def test_one_round(tmp_path):
    done = subprocess.run([SOAK / "soak.py", "--no-vms", "--time", "1", "--seed", "3"], capture_output=True, text=True,
                          timeout=300, env=None, cwd=tmp_path, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    report = json.loads(done.stdout.splitlines()[-1])
    assert report["rounds"] == 1 and report["steps"] > 0 and report["faults"], report


@pytest.mark.parametrize("result, hit", [
    pytest.param({**RIGHT, "wrong": 1}, True, id="wrong-data"),
    pytest.param({**RIGHT, "failed": [{}]}, False, id="failure-without-fault"),
    pytest.param({**RIGHT, "steps": 0}, False, id="no-progress"),
])
def test_results_that_violate(result, hit):
    with pytest.raises(Violation):
        check_run(FakeRun(), result, hit)


def test_results_that_do_not():
    check_run(FakeRun(), RIGHT, False)
    check_run(FakeRun(), {**RIGHT, "failed": [{}], "steps": 0}, True)


class FakeDaemon:
    """Resident memory grows by `growth` KiB a round."""

    name = "host1"

    def __init__(self, growth):
        self.now, self.growth = 100000, growth

    def resident(self):
        self.now += self.growth
        return self.now


def rounds(growth):
    invariants, daemon = Invariants(None), FakeDaemon(growth)
    invariants.resident[daemon.name] = []
    for _ in range(WARM_UP_ROUNDS + 30):
        invariants.check_memory(daemon)


def test_memory_that_grows():
    rounds(100)
    with pytest.raises(Violation, match="grows"):
        rounds(GROWTH_KIB)
