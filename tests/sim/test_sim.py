# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
"""The simulator: its runs can be repeated, and violate no rule. PVR_SIM_SECONDS: how long seeds run after the first ones,
which are the same on each machine."""

import os
import re
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PVR_SIM = os.environ.get("PVR_SIM", ROOT / "build/host/tests/sim/pvr_sim")
SEEDS = [line.split(maxsplit=1) for line in (Path(__file__).parent / "seeds.txt").read_text().splitlines()
         if not line.startswith("#")]
RUNS, LIMIT = 600, 900  # seconds
MOST = 20000  # runs of make check, which are the same on each machine
SECONDS = int(os.environ.get("PVR_SIM_SECONDS", "100"))
CLANG = ROOT / "build/clang/tests/sim/pvr_sim"


def run(*args, seconds=120, program=PVR_SIM):
    return subprocess.run([program, *map(str, args)], stdin=subprocess.DEVNULL, capture_output=True, text=True,
                          timeout=seconds, check=False)


def must(*args, **kwargs):
    done = run(*args, **kwargs)
    assert done.returncode == 0, done.stdout[-8000:] + done.stderr
    return done.stdout


@pytest.mark.parametrize("seed", [seed for seed, _ in SEEDS])
def test_seed_that_failed_once(seed):
    must("--seed", seed)


def test_same_seed_is_the_same_run():
    """The last line has a hash of the trace."""
    for seed in range(1, 51):
        assert must("--seed", seed) == must("--seed", seed)


def test_run_does_not_depend_on_those_before_it():
    alone = 0
    for seed in range(36200, 36209):
        alone ^= int(must("--seed", seed).split()[-1], 16)
    assert f"traces {alone:016x}\n" in must("--seconds", 60, "--first", 36200, "--runs", 9, "--jobs", 1)


def test_clang_builds_the_same_simulator():
    if not CLANG.exists():
        pytest.skip("no build by clang: scripts/check build-clang")
    for seed in range(1, 51):
        assert must("--seed", seed) == must("--seed", seed, program=CLANG)


def test_trace_is_printed():
    lines = must("--seed", 1, "--trace").splitlines()
    assert re.fullmatch(r" +0 \d hosts of \d workers, \d VMs, .*", lines[0])
    assert lines[-1] == must("--seed", 1).strip()


def test_only_some_events_happen():
    assert len(must("--seed", 1, "--trace", "--only", "3,5").splitlines()) < len(must("--seed", 1, "--trace").splitlines())


def test_seed_that_does_not_fail_is_not_shrunk():
    done = run("--shrink", 1)
    assert (done.returncode, done.stdout) == (2, "seed 1 does not fail\n")


@pytest.mark.parametrize("args", [(), ("--seed", 1, "--shrink", 1), ("--seed", 1, "--only", "x"), ("--seconds", 1, "--jobs", 65),
                                  ("--seconds", 1, "--only", "3"), ("--seed", 1, "more"), ("--unknown",)])
def test_bad_command_line(args):
    done = run(*args)
    assert done.returncode == 2 and "Usage: pvr_sim" in done.stderr, done


@pytest.mark.parametrize("args", [("--seed", "5x"), ("--seed", 0), ("--seconds", "-1"), ("--seconds", "--only"), ("--jobs", "all")])
def test_number_that_is_none(args):
    done = run(*args)
    assert done.returncode == 2 and done.stderr == f"pvr_sim: '{args[1]}' is no number above 0\n", done


def test_help():
    text = must("--help")
    assert text.startswith("Usage: pvr_sim") and "--shrink N" in text


def test_first_seeds():
    assert f"{RUNS} runs" in must("--seconds", LIMIT, "--runs", RUNS, seconds=LIMIT + 60)


def test_more_seeds():
    runs = () if "PVR_SIM_SECONDS" in os.environ else ("--runs", MOST)
    print(must("--seconds", SECONDS, "--first", RUNS + 1, *runs, seconds=SECONDS + 120))
