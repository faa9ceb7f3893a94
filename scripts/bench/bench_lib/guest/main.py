# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
"""Count what two guests execute per message of 8 bytes, with our device and with Soft-RoCE, in one boot.

Instructions, accesses to devices, interrupts and halts of the guests, and system calls of the host do not depend on the
speed of the CPU or on the hypervisor. Prints a table and writes build/bench/guest.json. See docs/testing.md.
"""

import argparse
import contextlib
import fnmatch
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import time

from bench_lib import table
from bench_lib.scripts import SCRIPTS, ScriptError, path_from
from bench_lib.vm.output import Unreadable
from vmlab_lib import steps as vmlab_steps

from . import plan, rows, syscalls

ROOT = pathlib.Path(__file__).resolve().parents[4]
BENCH = ROOT / "build" / "bench"
PACKAGES = "qperf"
PLUGIN = "tests/bench/qemu_counts.so"
QUICK = 20
FIRST = -20     # the highest priority
# The plugin needs to know the node: its number is in the kernel's command line.
WRAPPER = """\
#!/bin/bash
node=$(printf '%s\\n' "$@" | sed -n 's/.*vmlab\\.node=\\([0-9]*\\).*/\\1/p')
[ -z "$node" ] || set -- "$@" -plugin {plugin},counts={counts}/node$node
exec {qemu} "$@"
"""


class BenchError(Exception):
    """An error that ends the benchmark."""


def arguments(argv):
    parser = argparse.ArgumentParser(prog="bench/guest", description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    add = parser.add_argument
    add("--quick", action="store_true", help="few messages: does it all work?")
    add("--cases", default="*", metavar="PATTERN", help=f"only these of {' '.join(rows.CASES)}")
    add("--json", type=pathlib.Path, help="default build/bench/guest.json, without --quick and --cases")
    add("--keep-logs", type=pathlib.Path, default=BENCH / "guest-logs", metavar="DIR", help="default build/bench/guest-logs")
    options = parser.parse_args(argv)
    options.wanted = [case for case in rows.CASES if fnmatch.fnmatch(case, options.cases)]
    if not options.wanted:
        parser.error(f"no case is called {options.cases}")
    whole = not options.quick and options.cases == "*"
    options.json = options.json or (BENCH / "guest.json" if whole else None)
    return options


def _children(process):
    """All processes below vmlab's: the QEMUs and pvrdmad among them."""
    found = []
    for task in pathlib.Path(f"/proc/{process}/task").iterdir():
        for child in map(int, (task / "children").read_text().split()):
            found += [child, *_children(child)]
    return found


def _group(process):
    """The group whose system calls these are, or None."""
    if os.path.basename(os.readlink(f"/proc/{process}/exe")) == "pvrdmad":
        return rows.PVRDMAD
    return rows.QEMU if b"qemu-system-x86_64\0" in pathlib.Path(f"/proc/{process}/cmdline").read_bytes() else None


def _set_nice(processes, nice):
    """For the sessions of these processes, as the kernel schedules them (autogroup). Without the right nothing changes."""
    for process in processes:
        with contextlib.suppress(OSError):
            pathlib.Path(f"/proc/{process}/autogroup").write_text(str(nice))


class Bench:
    """One run of vmlab and what came of it."""

    def __init__(self, options, share, build):
        self.options, self.share, self.build = options, share, build
        self.plan = plan.steps(options.wanted, QUICK if options.quick else 1)
        self.pairs = {plan.name(case, device): (case, device) for case in options.wanted for device in plan.DEVICES}
        self.found = {case: {} for case in options.wanted}
        self.calls, self.counter, self.why_no_calls = {}, None, None
        self.counted = {}
        self.begin = time.monotonic()

    def say(self, text):
        print(f"[{time.monotonic() - self.begin:4.0f}s] bench/guest: {text}", flush=True)

    def run(self, qemu):
        vmlab_steps.put(self.share, self.plan)
        shutil.copy(SCRIPTS / "guest" / "bench.sh", self.share)
        shutil.copy(path_from("build/guest-tests") / "pvr_cost", self.share)
        (self.share / "counts").mkdir()
        wrapper = self.share / "qemu-system-x86_64"
        wrapper.write_text(WRAPPER.format(plugin=self.build / PLUGIN, counts=self.share / "counts", qemu=qemu))
        wrapper.chmod(0o755)
        command = [SCRIPTS / "vmlab", "--packages", PACKAGES, "--share", self.share, "--accel", "tcg", "--qemu", wrapper,
                   "--timeout", str(vmlab_steps.seconds(self.plan)), "--keep-logs", self.options.keep_logs,
                   "--run", vmlab_steps.RUN_STEPS]
        watch = {}
        for name in self.pairs:
            watch[f"{name}.begin"] = self._begin
            watch[f"{name}.end"] = lambda _pid, name=name: self._end(name)
        status, _, stderr, _ = vmlab_steps.run(command, self.share, watch, vmlab_steps.when_over(self.pairs, self._take))
        if status:
            raise BenchError(f"the VMs did not get through:\n{stderr.strip()}")

    def _begin(self, vmlab):
        groups = {process: _group(process) for process in _children(vmlab)}
        self.counted = {process: group for process, group in groups.items() if group}
        _set_nice(self.counted, FIRST)
        try:
            self.counter = syscalls.Counter(self.counted)
        except syscalls.CannotCount as why:
            self.why_no_calls = str(why)

    def _end(self, name):
        if self.counter:
            self.calls[name] = self.counter.read()
            self.counter.close()
            self.counter = None
        _set_nice(self.counted, 0)

    def _take(self, name):
        case, device = self.pairs[name]
        texts = [vmlab_steps.outcome(self.share, node, name).text for node in (1, 2)]
        try:
            self.found[case][device] = plan.read(texts, self.calls.get(name))
        except Unreadable as why:
            self.say(f"{name}: {why}; its output is in {self.options.keep_logs}")
            return
        counts = self.found[case][device]
        shown = ", ".join(f"{value:.4g} {count}" for count, value in counts.guests.items())
        self.say(f"{name}: {shown} per message")

    def entries(self):
        return [row for case, found in self.found.items() if len(found) == len(plan.DEVICES)
                for row in rows.entries(case, found)]


def main(argv):
    options = arguments(argv)
    try:
        build = path_from("build/host")
        qemu = path_from("fetch/qemu")
        with tempfile.TemporaryDirectory(prefix="bench-guest-") as folder:
            bench = Bench(options, pathlib.Path(folder), build)
            bench.run(qemu)
        entries = bench.entries()
        if bench.why_no_calls:
            print(f"no rows of system calls: {bench.why_no_calls}")
        print(table.HEAD)
        for entry in entries:
            print(table.line(entry))
        if options.json:
            options.json.parent.mkdir(parents=True, exist_ok=True)
            lines = ",\n".join(json.dumps(entry) for entry in entries)
            options.json.write_text(f"[\n{lines}\n]\n")
            print(options.json)
        if any(len(found) < len(plan.DEVICES) for found in bench.found.values()):
            raise BenchError("some runs failed (see above)")
    except (BenchError, ScriptError) as error:
        print(f"bench/guest: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("bench/guest: interrupted", file=sys.stderr)
        return 1
    return 0
