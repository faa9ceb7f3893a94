# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
"""Boots of VMs. Test files may share one: it boots once per tier, for the steps of all files of this pytest run.

A file adds its steps as a part. Only parts with selected tests run, so `pytest tests/vm/test_cm.py` boots for the steps of
that file. Parts of "make check" and of "make check-long" never share a boot.
"""

import concurrent.futures
import contextlib
import dataclasses
import inspect
import threading

import pytest
import pyverbs
from bench_lib.apps import apps
from steps import name_of, run_steps
from vmlab_run import ROOT


@dataclasses.dataclass
class Part:
    """Steps of one test file. files: a function that returns those for the share."""

    module: str
    long: bool
    steps: list
    watch: dict
    files: object

    @property
    def file(self):
        return self.module.removeprefix("test_")

    @property
    def name(self):
        """In front of the names of its steps, with a dot."""
        return self.file + ("-long" if self.long else "")

    def is_selected(self, session):
        return any(item.module.__name__ == self.module and bool(item.get_closest_marker("long")) == self.long
                   for item in session.items)


class Room:
    """So many VMs run at the same time; a boot of more has the room alone."""

    def __init__(self, vms):
        self.vms, self.used, self.change = vms, 0, threading.Condition()

    @contextlib.contextmanager
    def entered(self, nodes):
        with self.change:
            self.change.wait_for(lambda: not self.used or self.used + nodes <= self.vms)
            self.used += nodes
        try:
            yield
        finally:
            with self.change:
                self.used -= nodes
                self.change.notify_all()


class Boot:
    """Files share a boot. order: their names without "test_"; none: one file has the boot. vmlab takes the options.

    Boots of "make check" begin before the first test, so that they run beside the tests without a boot: two VMs of one
    emulated CPU each leave a third of two CPUs idle, as their guests wait for each other. Four VMs do not, but a program that
    polls then takes more CPU time. A boot of "make check-long" begins with the first test that needs it. @beside: another
    boot, whose run is at the same time.
    """

    ALL = []
    ROOM = Room(2)

    def __init__(self, name, order=(), beside=None, **options):
        self.name, self.order, self.options = name, order, options
        self.parts, self.runs = [], {}
        self.together = [self]
        if beside:
            self.together = beside.together = [self, beside]
        self.ALL.append(self)

    @property
    def nodes(self):
        return int(self.options.get("nodes", 2))

    def part(self, steps, watch=None, files=tuple, long=False):
        """A fixture: the run of these steps. long: only tests that are marked so use it."""
        module = inspect.currentframe().f_back.f_globals["__name__"]
        part = Part(module, long, list(steps), watch or {}, files)
        assert not self.order or part.file in self.order, f"{module} is not in the order of the boot '{self.name}'"
        self.parts.append(part)

        @pytest.fixture(scope="module")
        def run(request, tmp_path_factory):
            if part.long not in self.runs:
                start(self.together, part.long, request.session, tmp_path_factory)
            return self.runs[part.long].result().part(part.name)

        return run

    def submitted(self, pool, long, parts, tmp_path_factory):
        try:
            call = self._prepared(long, parts, tmp_path_factory)
        except Exception as error:  # of its own tests only
            failed = concurrent.futures.Future()
            failed.set_exception(error)
            return failed
        return pool.submit(self._run_in_room, *call)

    def _run_in_room(self, run, *args):
        with self.ROOM.entered(self.nodes):
            return run(*args)

    def _prepared(self, long, parts, tmp_path_factory):
        """Return: self._run and its arguments."""
        if self.order:
            parts.sort(key=lambda part: self.order.index(part.file))
        steps = [dataclasses.replace(step, name=f"{part.name}.{step.name}") for part in parts for step in part.steps]
        files = {path.name: path for part in parts for path in part.files()}
        folder = tmp_path_factory.mktemp(self.name + ("-long" if long else ""))
        return self._run, folder, parts, steps, files.values()

    def _run(self, folder, parts, steps, files):
        watch = flags({part.name: part.watch for part in parts})
        return run_steps(folder, steps, watch, files, **self.options)


def start(boots, long, session, tmp_path_factory):
    """Each of them keeps a future of its run in its self.runs. Those with most steps begin first."""
    selected = {boot: [part for part in boot.parts if part.long == long and part.is_selected(session)] for boot in boots}
    pool = concurrent.futures.ThreadPoolExecutor(len(boots))
    for boot in sorted(boots, key=lambda boot: -sum(len(part.steps) for part in selected[boot])):
        if selected[boot]:
            boot.runs[long] = boot.submitted(pool, long, selected[boot], tmp_path_factory)
    pool.shutdown(wait=False)


def start_all(session, tmp_path_factory):
    """All boots of "make check" of which tests are selected."""
    if Boot.ALL:
        start(Boot.ALL, False, session, tmp_path_factory)


def modules():
    """Names of the test files that need a boot."""
    return {part.module for boot in Boot.ALL for part in boot.parts}


class RogueBoot(Boot):
    """Adapters of tests/rogue, with the faults that files in the folder `faults` of the share name."""

    def _run(self, folder, parts, steps, files):
        return run_steps(folder, steps, files=files, env={"PVR_FAULTS": folder / "share" / "faults"}, **self.options)


def flags(watches):
    """Return: the watchers of a run. The name of a flag begins with the name of its part."""
    return {f"{name}.{flag}": function for name, watch in watches.items() for flag, function in watch.items()}


def each_run(*names):
    """Parameters of the fixture "run" (indirect): names of fixtures. The tests of those that end with "_long" are long."""
    return [pytest.param(name, marks=[pytest.mark.long] if name.endswith("_long") else []) for name in names]


def each_step(**parts):
    """Parameters "run, step" of the fixtures with their steps or names of steps."""
    return [pytest.param(run.values[0], name, marks=run.marks, id=f"{run.values[0]}-{name}")
            for run in each_run(*parts) for name in map(name_of, parts[run.values[0]])]


def step_tests(**parts):
    """Two tests for a file: of each step of its fixtures, and of the end of each run.

        test_step, test_run_ended_well = step_tests(pair=STEPS, pair_long=LONG)
    """
    @pytest.mark.parametrize("run, step", each_step(**parts), indirect=["run"])
    def test_step(run, step):
        run.check(step)

    @pytest.mark.parametrize("run", each_run(*parts), indirect=True)
    def test_run_ended_well(run):
        """Each node came to its end, no kernel complained, and pvrdmad ended with status 0."""
        run.check_end()

    return test_step, test_run_ended_well


ROGUE = ROOT / "build" / "host" / "tests" / "rogue" / "pvrdmad-rogue"
# One image for the tests of applications and for bench/apps.
APPS_PACKAGES = ",".join(apps.PACKAGES)
# Parts that kill a VM or remove a device come last, after those that change addresses or names of devices.
PAIR = Boot("pair", ["pair", "perftest", "cm", "doorbells", "cm_deaf", "counters", "compare", "user", "reload", "cm_death",
                     "peer_death", "vanish"])
# test_mixed is last: from then on our driver has the device.
STOCK = Boot("stock", ["stock", "verify", "mixed"], driver="vmw_pvrdma", smp=2)
# The oldest virtual hardware that the driver of the kernel knows, with doorbells in memory.
OLD = Boot("old", ["revisions", "uar_mapped"], driver="vmw_pvrdma", adapter_settings="hwversion=13,uar=mapped")
# Two CPUs per VM, as QEMU does not make the atomics of a single emulated CPU atomic for other CPUs.
VERIFY = Boot("verify", ["verify", "user_harm"], smp=2)
# Two adapters, the second of which has faults.
HOSTILE = RogueBoot("hostile-device", ["hostile_device"], nodes=1, adapters=2, pvrdmad=ROGUE)
# A region of 16 GiB in small pages needs more kernel memory than a VM of 1 GiB has. test_kernel_verbs is last: its reset
# leaves complaints in the kernel's log.
ALONE = Boot("alone", ["pyverbs", "odp", "kernel_verbs"], beside=HOSTILE, nodes=1, memory="2G", packages=pyverbs.PACKAGES)
# test_nvme is last: its refusals leave complaints in the kernels' logs.
APPS = Boot("apps", ["nfs", "mpi", "nvme"], packages=APPS_PACKAGES)
# Nodes 1 and 3 are VMs of one host, node 2 is of another one.
TRIO = Boot("trio", ["hosts", "trio"], nodes=3, hosts=2, pipe="tls")
# An adapter on node 1, Soft-RoCE of each kernel on node 2.
RXE = {kernel: Boot(f"rxe-{kernel}-", ["rxe", "rxe_perftest"], driver="pvrdma,rxe", kernel=kernel)
       for kernel in ("6.1", "6.12", "7.2")}
