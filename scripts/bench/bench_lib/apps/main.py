# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
"""Measure applications over our device, Soft-RoCE and TCP, in turns in one boot of two VMs, or of four.

Each figure is a median.

Prints a table and writes build/bench/apps.json; --document puts the table into docs/applications.md. See docs/testing.md.
"""

import argparse
import collections
import fnmatch
import json
import pathlib
import shutil
import sys
import tempfile
import time

from bench_lib.scripts import SCRIPTS, ScriptError
from bench_lib.table import plain, verdict
from bench_lib.vm.rows import PEER_NAMES
from vmlab_lib import steps as vmlab_steps

from . import apps, plan, summary

ROOT = pathlib.Path(__file__).resolve().parents[4]
BENCH = ROOT / "build" / "bench"
DOCUMENT = ROOT / "docs" / "applications.md"
BEGIN, END = "<!-- figures: written by scripts/bench/apps -->\n", "<!-- end of figures -->\n"
ROUNDS = 3
# Debian's kernel clears each page that it takes, by an instruction that TCG executes byte by byte: of the time of an NVMe
# target that was more than half.
KERNEL_PARAMETERS = "init_on_alloc=0"


def _keep_outputs(share, logs):
    """The output of each step, beside vmlab's logs."""
    shutil.rmtree(logs / "results", ignore_errors=True)
    if (share / "results").exists():
        shutil.copytree(share / "results", logs / "results")


class BenchError(Exception):
    """An error that ends the benchmark."""


def arguments(argv):
    parser = argparse.ArgumentParser(prog="bench/apps", description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    add = parser.add_argument
    add("--rounds", type=int, default=ROUNDS, metavar="N", help=f"runs of each application (default {ROUNDS})")
    add("--apps", default="*", metavar="PATTERN", help=f"only these of {' '.join(app.name for app in apps.EVERY)}")
    add("--memory", default="1G", metavar="SIZE", help="vmlab's: of each VM")
    add("--json", type=pathlib.Path, help="default build/bench/apps.json, without --apps")
    add("--from", dest="source", type=pathlib.Path, metavar="FILE", help="measure nothing: show the figures of this apps.json")
    add("--document", action="store_true", help="put the table into docs/applications.md")
    add("--keep-logs", type=pathlib.Path, default=BENCH / "apps-logs", metavar="DIR", help="default build/bench/apps-logs")
    options = parser.parse_args(argv)
    options.json = options.json or (BENCH / "apps.json" if options.apps == "*" else None)
    options.wanted = [app for app in apps.EVERY if fnmatch.fnmatch(app.name, options.apps)]
    if not options.wanted or options.rounds < 1:
        parser.error("--rounds wants something positive" if options.wanted else f"no application is called {options.apps}")
    return options


class Bench:
    """A run of vmlab for each number of VMs, and the results."""

    def __init__(self, options, share):
        self.options, self.share = options, share
        self.by_step = {plan.name(number, app): app
                        for number in range(1, options.rounds + 1) for app in options.wanted}
        self.total = sum(min(options.rounds, app.rounds) for app in options.wanted)
        self.found = {row.name: collections.defaultdict(list) for app in options.wanted for row in app.rows}
        self.failures = []
        self.over = 0
        self.begin = time.monotonic()

    def say(self, text):
        print(f"[{time.monotonic() - self.begin:4.0f}s] bench/apps: {text}", flush=True)

    def run(self):
        for nodes in sorted({app.nodes for app in self.options.wanted}):
            self._boot(nodes, [app for app in self.options.wanted if app.nodes == nodes])

    def _boot(self, nodes, wanted):
        steps = plan.steps(wanted, self.options.rounds)
        share = self.share / f"{nodes}-vms"
        share.mkdir()
        vmlab_steps.put(share, steps)
        needed = [file for app in wanted for file in app.files()]
        for file in (*(SCRIPTS / "guest").glob("bench-app*.sh"), *needed):
            shutil.copy(file, share)
        command = [SCRIPTS / "vmlab", "--nodes", str(nodes), "--packages", ",".join(apps.PACKAGES), "--share", share,
                   "--timeout", str(vmlab_steps.seconds(steps)), "--memory", self.options.memory, "--append", KERNEL_PARAMETERS,
                   "--keep-logs", self.options.keep_logs / share.name, "--run", vmlab_steps.RUN_STEPS]
        self.say(f"{nodes} VMs: {len(wanted)} applications, {self.options.rounds} rounds")
        take = vmlab_steps.when_over(self.by_step, lambda name: self._take(share, name), nodes)
        try:
            status, _, stderr, _ = vmlab_steps.run(command, share, None, take)
        finally:
            _keep_outputs(share, self.options.keep_logs / share.name)
        if status:
            raise BenchError(f"the {nodes} VMs did not get through:\n{stderr.strip()}")

    def _take(self, share, name):
        app = self.by_step[name]
        self.over += 1
        texts = [vmlab_steps.outcome(share, node, name).text for node in range(1, app.nodes + 1)]
        found, failures = plan.read(app, texts)
        self.failures += [f"round {name.partition('.')[0]}, {why}" for why in failures]
        self.say(f"{name} is over, {self.over} of {self.total}")
        for row in app.rows:
            for device, values in found.items():
                self.found[row.name][device].append(values[row.name])
            shown = ", ".join(f"{PEER_NAMES[device]} {plain(values[row.name], row.unit)}"
                              for device, values in found.items())
            self.say(f"{name}, {row.name}: {shown}")
        for why in failures:
            self.say(why)

    def entries(self):
        """Of all rows that our device and its peer have values for."""
        rows = [row for app in self.options.wanted for row in app.rows]
        return [summary.entry(row, self.found[row.name]) for row in rows
                if self.found[row.name]["pvrdma"] and self.found[row.name]["rxe"]]


def write_document(entries):
    text = DOCUMENT.read_text()
    begin, found, rest = text.partition(BEGIN)
    _, end, rest = rest.partition(END)
    if not found or not end:
        raise BenchError(f"{DOCUMENT} has no place for the figures, between '{BEGIN.strip()}' and '{END.strip()}'")
    DOCUMENT.write_text(begin + BEGIN + "\n" + summary.markdown(entries, apps.ROWS) + "\n" + END + rest)


def _show(entries):
    print(summary.HEAD)
    for item in entries:
        print(summary.line(item))
    verdicts = [text for _, text in map(verdict, entries) if text]
    print(f"{verdicts.count('met')} of {len(verdicts)} targets met")


def _measure(options):
    with tempfile.TemporaryDirectory(prefix="bench-apps-") as folder:
        bench = Bench(options, pathlib.Path(folder))
        bench.run()
        entries = bench.entries()
    _show(entries)
    if options.json:
        options.json.parent.mkdir(parents=True, exist_ok=True)
        lines = ",\n".join(json.dumps(item) for item in entries)
        options.json.write_text(f"[\n{lines}\n]\n")
        print(options.json)
    if options.document:
        write_document(entries)
    if bench.failures:
        raise BenchError("some runs failed:\n" + "\n".join(bench.failures))


def _show_again(options):
    try:
        entries = json.loads(options.source.read_text())
    except (OSError, ValueError) as why:
        raise BenchError(f"{options.source} has no figures: {why}") from why
    _show(entries)
    if options.document:
        write_document(entries)


def main(argv):
    options = arguments(argv)
    try:
        if options.source:
            _show_again(options)
        else:
            _measure(options)
    except (BenchError, ScriptError) as error:
        print(f"bench/apps: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("bench/apps: interrupted", file=sys.stderr)
        return 1
    return 0
