# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
"""Many steps in one run of vmlab, as VMs are slow to boot, and one test for each of them."""

import functools
import pathlib
import shutil
import subprocess

import pytest
from vmlab_run import ROOT, Result, Vmlab
from vmlab_lib import steps as vmlab_steps
from vmlab_lib.steps import RUN_STEPS, TAIL, Step  # noqa: F401 (the tests' Step is vmlab's)

# For perftest's -R, see tests/guest/late_connect.c.
LATE_CONNECT = "client_env=(env LD_PRELOAD=$SHARE/late_connect.so)\n"
GUEST_SOURCES = ROOT / "tests" / "vm" / "guest_src"


class Run:
    """A finished run. run["name"] is the step's outcomes, node 1's first."""

    def __init__(self, result, nodes, seen, prefix=""):
        self.result = result
        self.nodes = nodes
        self.seen = seen      # flag -> what the watcher returned
        self.prefix = prefix  # of the names of steps

    def part(self, name):
        """The run, seen from the file whose steps and flags begin with "NAME."."""
        prefix = f"{name}."
        seen = {flag.removeprefix(prefix): value for flag, value in self.seen.items() if flag.startswith(prefix)}
        return Run(self.result, self.nodes, seen, prefix)

    def __getitem__(self, name):
        return [vmlab_steps.outcome(self.result.share, node, self.prefix + name) for node in range(1, self.nodes + 1)]

    def check(self, name):
        """Fail, showing the output, unless the step ended well on all nodes. Returns the outcomes."""
        outcomes = self[name]
        if any(outcome.status != 0 for outcome in outcomes):
            pytest.fail(self.explain(name), pytrace=False)
        return outcomes

    def explain(self, name, why=""):
        outcomes = self[name]
        # A summary shows only the first line.
        why = why or "; ".join(outcome.blame() for outcome in outcomes if outcome.status != 0)
        texts = [f"{name}: {why or 'failed'}", *(outcome.tail() for outcome in outcomes)]
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


def run_steps(folder, steps, watch=None, files=(), runner=RUN_STEPS, **options):
    """Boot VMs and run the steps. folder: a new one. runner: a vmlab script. watch: vmlab_steps.run()'s. options: vmlab's."""
    vmlab = Vmlab(folder)
    vmlab.put(*files)
    vmlab_steps.put(vmlab.share, steps)
    options.setdefault("timeout", vmlab_steps.seconds(steps))
    status, stdout, stderr, seen = vmlab_steps.run(vmlab.command(runner, **options), vmlab.share, watch)
    result = Result(status, stdout, stderr, vmlab.logs, vmlab.share)
    _keep(folder, vmlab)
    return Run(result, int(options.get("nodes", 2)), seen)


def _keep(folder, vmlab):
    """Keep the output where `make check` keeps its results."""
    kept = ROOT / "build" / "check" / f"vm-{folder.name.rstrip('0123456789')}"
    shutil.rmtree(kept, ignore_errors=True)
    kept.mkdir(parents=True)
    for source in (vmlab.share / "results", vmlab.logs):
        if source.exists():
            shutil.copytree(source, kept / source.name)


def _built(script):
    """The path of the built file: the script prints it."""
    done = subprocess.run([ROOT / "scripts" / script], stdout=subprocess.PIPE, text=True, check=True,
                          stdin=subprocess.DEVNULL)
    return pathlib.Path(done.stdout.strip())


@functools.cache
def guest_programs():
    """Files of tests/guest and guest_src for the share."""
    folder = _built("build/guest-tests")
    subprocess.run(["gcc", "-O2", "-Wall", "-Wextra", "-Werror", "-static", "-I", ROOT / "include", "-o", folder / "bar_poke",
                    GUEST_SOURCES / "bar_poke.c"], check=True)
    names = ("pvr_verify", "pvr_peerdeath", "pvr_errno", "pvr_many", "pvr_faults", "pvr_regions", "pvr_cm",
             "pvr_mpi", "late_connect.so", "bar_poke")
    return [folder / name for name in names]


@functools.cache
def guest_module():
    """tests/guest/kmod, for the share."""
    return _built("build/guest-modules")


def our_provider():
    """The library of our provider, for the share of VMs that have Debian's."""
    return ROOT / "build" / "provider" / "libpvrdma-rdmav34.so"


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
