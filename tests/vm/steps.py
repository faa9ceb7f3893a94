# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
"""Many steps in one run of vmlab, as VMs are slow to boot, and one test for each of them."""

import dataclasses
import pathlib
import shutil
import subprocess
import threading
import time

import pytest
from conftest import ROOT, Vmlab

GUEST_SOURCES = pathlib.Path(__file__).parent / "guest_src"
TAIL = 40


@dataclasses.dataclass(frozen=True)
class Step:
    """Bash that runs on all nodes at the same time, with guest_src/steps.sh at hand."""

    name: str
    script: str
    seconds: int = 60
    marks: tuple = ()


@dataclasses.dataclass
class Outcome:
    """What a step did on one node. status None: it did not get there."""

    node: int
    status: int | None
    milliseconds: int
    text: str

    def tail(self):
        status = "did not run" if self.status is None else f"status {self.status}"
        lines = self.text.splitlines()
        left_out = [f"... {len(lines) - TAIL} lines before"] if len(lines) > TAIL else []
        return "\n".join([f"node{self.node}: {status}, {self.milliseconds / 1000:.1f} s",
                          *(f"  {line}" for line in left_out + lines[-TAIL:])])


class Run:
    """A finished run. run["name"] is the step's outcomes, node 1's first."""

    def __init__(self, result, nodes, seen):
        self.result = result
        self.nodes = nodes
        self.seen = seen      # flag -> what the watcher returned

    def __getitem__(self, name):
        return [self._outcome(node, name) for node in range(1, self.nodes + 1)]

    def _outcome(self, node, name):
        folder = self.result.share / "results" / f"node{node}"
        rc, out = folder / f"{name}.rc", folder / f"{name}.out"
        if not rc.exists():
            return Outcome(node, None, 0, "")
        status, milliseconds = map(int, rc.read_text().split())
        return Outcome(node, status, milliseconds, out.read_text(errors="replace"))

    def check(self, name):
        """Fail, showing what was said, unless the step ended well on all nodes. Returns the outcomes."""
        outcomes = self[name]
        if any(outcome.status != 0 for outcome in outcomes):
            pytest.fail(self.explain(name), pytrace=False)
        return outcomes

    def explain(self, name, why=""):
        texts = [f"{name}: {why or 'failed'}", *(outcome.tail() for outcome in self[name])]
        if self.result.status != 0:
            texts.append(f"vmlab: {self.result.error}")
            texts += self.result.stderr.splitlines()[-TAIL:]
        return "\n".join(texts)

    def check_end(self):
        """The run itself: every node came to its end, no kernel complained, pvrdmad lives."""
        if self.result.status != 0:
            log = self.result.log("pvrdmad.log").splitlines()[-10:]
            pytest.fail("\n".join([f"vmlab: {self.result.error}",
                                   *self.result.stderr.splitlines()[-TAIL:],
                                   "pvrdmad.log:", *log]), pytrace=False)


def ids(steps):
    """For pytest.mark.parametrize("step", ids(STEPS))."""
    return [pytest.param(step.name, marks=step.marks) for step in steps]


def run_steps(folder, steps, watch=None, files=(), runner="run-steps", **options):
    """Boot VMs and run the steps. folder: a new one. runner: a script of guest_src/. options: vmlab's.

    watch: {flag: function(vmlab's pid)}; when a step on some node raises the flag (named STEP.FLAG), the
    function runs here, and then the flag STEP.FLAG.seen is raised.
    """
    vmlab = Vmlab(folder)
    vmlab.put(GUEST_SOURCES / "steps.sh", *files)
    flags = vmlab.share / "flags"
    flags.mkdir()
    (vmlab.share / "steps").mkdir()
    for number, step in enumerate(steps):
        path = vmlab.share / "steps" / f"{number:03d}-{step.name}"
        path.write_text(f"# {step.seconds}\n{step.script}\n")
    options.setdefault("timeout", 60 + sum(step.seconds for step in steps))
    command = vmlab.command(GUEST_SOURCES / runner, **options)
    seen = {}
    with subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, text=True, errors="replace") as child:
        watcher = threading.Thread(target=_watch, args=(child, flags, dict(watch or {}), seen))
        watcher.start()
        try:
            stdout, stderr = child.communicate()
        except BaseException:
            child.terminate()
            raise
        finally:
            watcher.join()
    from conftest import Result
    result = Result(child.returncode, stdout, stderr, vmlab.logs, vmlab.share)
    _keep(folder, vmlab)
    return Run(result, int(options.get("nodes", 2)), seen)


def _watch(child, flags, watch, seen):
    while child.poll() is None:
        for flag in [name for name in watch if (flags / name).exists()]:
            seen[flag] = watch.pop(flag)(child.pid)
            (flags / f"{flag}.seen").touch()
        time.sleep(0.1)


def _keep(folder, vmlab):
    """Leave what was said where people look for it after `make check`."""
    kept = ROOT / "build" / "check" / f"vm-{folder.name.rstrip('0123456789')}"
    shutil.rmtree(kept, ignore_errors=True)
    kept.mkdir(parents=True)
    for source in (vmlab.share / "results", vmlab.logs):
        if source.exists():
            shutil.copytree(source, kept / source.name)


def guest_programs(tmp_path_factory):
    """What tests/guest and guest_src give: files for the share."""
    built = subprocess.run([ROOT / "scripts" / "build-guest-tests"], stdout=subprocess.PIPE,
                           text=True, check=True, stdin=subprocess.DEVNULL)
    folder = pathlib.Path(built.stdout.strip())
    poke = tmp_path_factory.mktemp("guest-programs") / "bar_poke"
    subprocess.run(["gcc", "-O2", "-Wall", "-Wextra", "-Werror", "-static", "-I",
                    ROOT / "include", "-o", poke,
                    GUEST_SOURCES / "bar_poke.c"], check=True)
    names = ("pvr_verify", "pvr_peerdeath", "pvr_errno", "pvr_many", "pvr_faults", "pvr_regions")
    return [*(folder / name for name in names), poke]


def pids_of(parent, name):
    """Child processes of `parent` with that name."""
    found = []
    for path in pathlib.Path("/proc").glob("[0-9]*/stat"):
        try:
            before, _, after = path.read_text().rpartition(") ")
        except OSError:
            continue
        if before.partition("(")[2] == name and int(after.split()[1]) == parent:
            found.append(int(path.parent.name))
    return found
