# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
"""Measure two VMs against each other: our device, Soft-RoCE over their virtio-net NICs, TCP over the same.

All three in one boot, their runs in turns; each figure is a median. Prints a table and writes build/bench/vm.json,
and build/bench/machine.json, which says where. See docs/testing.md.
"""

import argparse
import collections
import fnmatch
import json
import pathlib
import shutil
import subprocess
import sys
import tempfile
import time

from bench_lib import machine
from bench_lib.scripts import SCRIPTS, ScriptError, path_from
from bench_lib.table import plain, verdict
from vmlab_lib import qemu
from vmlab_lib import steps as vmlab_steps

from . import plan, rows, runs, summary, table
from .output import Unreadable
from .rows import PEER_NAMES, PVRDMA, RXE

ROOT = pathlib.Path(__file__).resolve().parents[4]
BENCH = ROOT / "build" / "bench"
PACKAGES = "qperf"
LAB_SECONDS = 3600      # of the whole run; a step has its own limit
QUICK_SECONDS = 0.05
START_RUNS = 3


class BenchError(Exception):
    """An error that ends the benchmark."""


def arguments(argv):
    parser = argparse.ArgumentParser(prog="bench/vm", description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    add = parser.add_argument
    add("--quick", action="store_true", help="one short round of few rows: does it all work?")
    add("--rounds", type=int, default=None, metavar="N", help="runs of each row (default 5)")
    add("--seconds", type=float, default=None, metavar="S", help="about how long a run's traffic is (default 0.5)")
    add("--rows", default="*", metavar="PATTERN", help="only these: 'vm.write_*'; 'main' for those with a target")
    add("--adapter-settings", default="", metavar="K=V,...", help="vmlab's: of our adapters, uar=mapped for one")
    add("--json", type=pathlib.Path, help="default build/bench/vm.json, without --quick and --rows")
    add("--keep-logs", type=pathlib.Path, default=BENCH / "vm-logs", metavar="DIR", help="default build/bench/vm-logs")
    options = parser.parse_args(argv)
    whole = not options.quick and options.rows == "*"
    options.json = options.json or (BENCH / "vm.json" if whole else None)
    rounds, seconds = (1, QUICK_SECONDS) if options.quick else (5, 0.5)
    options.rounds = rounds if options.rounds is None else options.rounds
    options.seconds = seconds if options.seconds is None else options.seconds
    options.wanted = _wanted(options)
    if not options.wanted:
        parser.error(f"no row is called {options.rows}; rows: {' '.join(row.name for row in rows.EVERY)}")
    if options.rounds < 1 or options.seconds <= 0:
        parser.error("--rounds and --seconds want something positive")
    return options


def _wanted(options):
    if options.rows == "main":
        return rows.MAIN
    return [row for row in (rows.QUICK if options.quick else rows.EVERY) if fnmatch.fnmatch(row.name, options.rows)]


class Bench:
    """One run of vmlab and what came of it."""

    def __init__(self, options, share):
        self.options, self.share = options, share
        self.starts = 1 if options.quick else START_RUNS
        self.plan = plan.steps(options.wanted, options.rounds, self.starts)
        self.by_step = {plan.round_name(number, row): (number, row)
                        for number in range(1, options.rounds + 1) for row in options.wanted}
        self.found = {row: collections.defaultdict(list) for row in options.wanted}
        self.begin = time.monotonic()

    def say(self, text):
        print(f"[{time.monotonic() - self.begin:4.0f}s] bench/vm: {text}", flush=True)

    def run(self):
        vmlab_steps.put(self.share, self.plan)
        shutil.copy(SCRIPTS / "guest" / "bench.sh", self.share)
        command = [SCRIPTS / "vmlab", "--packages", PACKAGES, "--share", self.share, "--timeout", str(LAB_SECONDS),
                   "--keep-logs", self.options.keep_logs, "--run", vmlab_steps.RUN_STEPS]
        if self.options.adapter_settings:
            command += ["--adapter-settings", self.options.adapter_settings]
        self.say(f"{len(self.options.wanted)} rows, {self.options.rounds} rounds")
        status, _, stderr, seen = vmlab_steps.run(command, self.share, {"plan.now": self._count},
                                                  vmlab_steps.when_over(self.by_step, self._take))
        if status:
            raise BenchError(f"the VMs did not get through:\n{stderr.strip()}")
        if seen.get("plan.now"):
            raise BenchError(seen["plan.now"])

    def _texts(self, name):
        outcomes = [vmlab_steps.outcome(self.share, node, name) for node in (1, 2)]
        if any(outcome.status != 0 for outcome in outcomes):
            states = ", ".join(f"node{outcome.node}: status {outcome.status}" for outcome in outcomes)
            raise Unreadable(f"step {name} failed ({states}); what it printed is in "
                             f"{self.options.keep_logs}/results/node*/{name}.out")
        return [outcome.text for outcome in outcomes]

    def _count(self, _pid):
        """Choose iterations from the pilots, while the VMs wait. Return: an error, or None."""
        try:
            speeds = {device: self._speed(device) for device in (PVRDMA, RXE)}
        except Unreadable as why:
            speeds, failure = {}, str(why)
        else:
            failure = None
        (self.share / plan.COUNTS).write_text(plan.counts_file(self.options.wanted, speeds, self.options.seconds))
        return failure

    def _speed(self, device):
        return plan.speed({row.kind_name: runs.pilot(row, device, self._texts(plan.pilot_name(row))[1])
                           for row in plan.PILOTS})

    def _take(self, name):
        number, row = self.by_step[name]
        try:
            found = runs.read(row, self._texts(name))
        except Unreadable as why:
            self.say(str(why))
            return
        for device, run in found.items():
            self.found[row][device].append(run)
        shown = ", ".join(f"{PEER_NAMES[device]} {plain(run.value, row.kind.unit)}" for device, run in found.items())
        self.say(f"round {number} of {self.options.rounds}, {row.name}: {shown}")

    def _start_runs(self, row):
        """{device: [Run, ...]} of the row's program with next to no traffic."""
        start, found = plan.start_of(row), collections.defaultdict(list)
        for number in range(1, self.starts + 1):
            texts = self._texts(plan.start_name(number, start))
            for device, run in runs.read(start, texts, (PVRDMA, RXE)).items():
                found[device].append(run)
        return found

    def entries(self):
        return [summary.row_entry(row, found, self._start_runs(row)) for row, found in self.found.items() if found]

    def incomplete(self):
        """Rows with fewer runs than asked for."""
        return [row.name for row, found in self.found.items()
                if any(len(found[device]) < self.options.rounds for device in row.devices)]


def _prepare():
    """Build all that the run needs, with the builders' output. Return: QEMU's path."""
    for command in (["build/host"], ["vmlab", "--build-only", "--packages", PACKAGES]):
        if subprocess.run([SCRIPTS / command[0], *command[1:]], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                          check=False).returncode:
            raise BenchError(f"scripts/{command[0]} failed (see above)")
    return path_from("fetch/qemu")


def _write(path, value):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(value)


def _save(options, entries, program):
    accelerator = "TCG: QEMU emulates the VMs' CPUs" if qemu.why_tcg() else "KVM"
    lines = ",\n".join(json.dumps(entry) for entry in entries)
    _write(options.json, f"[\n{lines}\n]\n")
    _write(options.json.with_name("machine.json"), json.dumps(machine.describe(accelerator, program), indent=1) + "\n")


def _show(entries):
    print(table.HEAD)
    for entry in entries:
        print(table.line(entry))
    print(table.NOTE)
    verdicts = [text for _, text in map(verdict, entries) if text]
    print(f"{verdicts.count('met')} of {len(verdicts)} targets met")


def main(argv):
    options = arguments(argv)
    try:
        program = _prepare()
        with tempfile.TemporaryDirectory(prefix="bench-vm-") as folder:
            bench = Bench(options, pathlib.Path(folder))
            try:
                bench.run()
                entries = bench.entries()
            except Unreadable as why:
                raise BenchError(str(why)) from why
            finally:
                _keep_outputs(bench, options.keep_logs)
        _show(entries)
        if options.json:
            _save(options, entries, program)
            print(options.json)
        if bench.incomplete():
            raise BenchError(f"some runs failed (see above), of {', '.join(bench.incomplete())}")
    except (BenchError, ScriptError) as error:
        print(f"bench/vm: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("bench/vm: interrupted", file=sys.stderr)
        return 1
    return 0


def _keep_outputs(bench, logs):
    """The output of each step, beside vmlab's logs."""
    shutil.rmtree(logs / "results", ignore_errors=True)
    if (bench.share / "results").exists():
        shutil.copytree(bench.share / "results", logs / "results")
