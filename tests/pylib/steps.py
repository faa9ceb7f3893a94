# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
"""Many steps in one run of vmlab, as VMs are slow to boot, and one test for each of them."""

import functools
import pathlib
import re
import shutil
import subprocess

import pytest
from bench_lib.scripts import path_from
from vmlab_run import ROOT, Result, Vmlab
from vmlab_lib import steps as vmlab_steps
from vmlab_lib.steps import RUN_STEPS, TAIL, Step  # noqa: F401 (the tests' Step is vmlab's)

# For perftest's -R, see tests/guest/late_connect.c.
LATE_CONNECT = "client_env=(env LD_PRELOAD=$SHARE/late_connect.so)\n"
GUEST_SOURCES = ROOT / "tests" / "vm" / "guest_src"


def name_of(step):
    """Of a Step or of a step's name."""
    return getattr(step, "name", step)


class Run:
    """A finished run. run[STEP] or run["name"] is the step's outcomes, node 1's first."""

    def __init__(self, result, options, seen, prefix=""):
        self.result = result
        self.options = options  # of vmlab
        self.seen = seen        # flag -> what the watcher returned
        self.prefix = prefix    # of the names of steps

    @property
    def nodes(self):
        return int(self.options.get("nodes", 2))

    def part(self, name):
        """The run, seen from the file whose steps and flags begin with "NAME."."""
        prefix = f"{name}."
        seen = {flag.removeprefix(prefix): value for flag, value in self.seen.items() if flag.startswith(prefix)}
        return Run(self.result, self.options, seen, prefix)

    def __getitem__(self, step):
        name = self.prefix + name_of(step)
        return [vmlab_steps.outcome(self.result.share, node, name) for node in range(1, self.nodes + 1)]

    def check(self, step, nodes=None):
        """Fail, showing the output, unless the step ended with status 0 on those nodes, or on all. Returns all outcomes."""
        outcomes = self[step]
        if any(outcome.status != 0 for outcome in outcomes if nodes is None or outcome.node in nodes):
            pytest.fail(self.explain(step), pytrace=False)
        return outcomes

    def check_each(self, step, pattern):
        """check(), and the output of each node has the pattern."""
        for outcome in self.check(step):
            assert re.search(pattern, outcome.text, re.MULTILINE), outcome.tail()

    def explain(self, step, why=""):
        outcomes = self[step]
        # A summary shows only the first line.
        why = why or "; ".join(outcome.blame() for outcome in outcomes if outcome.status != 0)
        texts = [f"{name_of(step)}: {why or 'failed'}", *(outcome.tail() for outcome in outcomes)]
        if self.result.status != 0:
            texts.append(f"vmlab: {self.result.error}")
            texts += self.result.stderr.splitlines()[-TAIL:]
        return "\n".join(texts)

    def check_tls(self):
        """The first host is connected to the second one with TLS if the option `pipe` says so, else without."""
        log = self.result.log("pvrdmad1.log")
        version = "TLSv1.3" if self.options["pipe"] == "tls" else "off"
        assert re.search(rf"connected to host host2 .*TLS: {version}", log), log

    def check_end(self):
        """The run itself: every node came to its end, no kernel complained, pvrdmad lives."""
        if self.result.status != 0:
            log = self.result.log("pvrdmad.log").splitlines()[-10:]
            pytest.fail("\n".join([f"vmlab: {self.result.error}",
                                   *self.result.stderr.splitlines()[-TAIL:],
                                   "pvrdmad.log:", *log]), pytrace=False)


def run_steps(folder, steps, watch=None, files=(), runner=RUN_STEPS, env=None, **options):
    """Boot VMs and run the steps. folder: a new one. runner: a vmlab script. watch: vmlab_steps.run()'s. env: added to the
    environment of vmlab. options: vmlab's.
    """
    vmlab = Vmlab(folder)
    vmlab.put(*files)
    vmlab_steps.put(vmlab.share, steps)
    options.setdefault("timeout", vmlab_steps.seconds(steps))
    command = ["env", *(f"{name}={value}" for name, value in (env or {}).items()), *vmlab.command(runner, **options)]
    status, stdout, stderr, seen = vmlab_steps.run(command, vmlab.share, watch)
    result = Result(status, stdout, stderr, vmlab.logs, vmlab.share)
    _keep(folder, vmlab)
    return Run(result, options, seen)


def _keep(folder, vmlab):
    """Keep the output where `make check` keeps its results."""
    kept = ROOT / "build" / "check" / f"vm-{folder.name.rstrip('0123456789')}"
    shutil.rmtree(kept, ignore_errors=True)
    kept.mkdir(parents=True)
    for source in (vmlab.share / "results", vmlab.logs):
        if source.exists():
            shutil.copytree(source, kept / source.name)


@functools.cache
def guest_programs():
    """Files of tests/guest and guest_src for the share."""
    folder = path_from("build/guest-tests")
    for source in GUEST_SOURCES.glob("*.c"):
        subprocess.run(["gcc", "-O2", "-Wall", "-Wextra", "-Werror", "-static", "-I", ROOT / "include",
                        "-o", folder / source.stem, source], check=True)
    names = ("pvr_verify", "pvr_peerdeath", "pvr_random", "pvr_rebind", "pvr_errno", "pvr_fence", "pvr_many", "pvr_stream", "pvr_faults", "pvr_regions", "pvr_cm",
             "pvr_dmabuf", "pvr_odp", "pvr_odp_rights", "pvr_odp_blocked", "pvr_mpi", "pvr_placement", "pvr_qpcost", "pvr_threads", "pvr_moderation", "pvr_rds", "pvr_timestamps", "pvr_vectors", "pvr_xrc",
             "libibverbs.so.1", "late_connect.so", "smc_socket.so", "bar_poke", "fail_nth")
    return [folder / name for name in names]


@functools.cache
def guest_module(kernel="6.1"):
    """tests/guest/kmod, for the share."""
    return [path_from("build/guest-modules", kernel)]


@functools.cache
def file_system():
    """An empty ext4 of 8 MiB, for the share. The guests have no mkfs."""
    image = path_from("build/guest-tests") / "ext4.img"
    image.write_bytes(bytes(8 << 20))
    subprocess.run(["/usr/sbin/mkfs.ext4", "-q", "-F", image], check=True)
    return [image]


def our_module():
    """Our driver, for the share of VMs that have the kernel's."""
    return [ROOT / "build" / "module-6.1" / "pvrdma.ko"]


def our_provider():
    """The library of our provider, for the share of VMs that have Debian's."""
    return [ROOT / "build" / "provider" / "libpvrdma-rdmav34.so"]


def pids_of(parent, name=None):
    """Child processes of `parent`, all or those with that name."""
    found = []
    for path in pathlib.Path("/proc").glob("[0-9]*/stat"):
        try:
            before, _, after = path.read_text().rpartition(") ")
        except OSError:
            continue
        if name in (None, before.partition("(")[2]) and int(after.split()[1]) == parent:
            found.append(int(path.parent.name))
    return found
