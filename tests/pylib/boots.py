# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
"""Boots of VMs that several test files share: each boots once per tier, for the steps of all files of this pytest run.

A file adds its steps as a part. Only parts with selected tests run, so `pytest tests/vm/test_cm.py` boots for the steps of
that file. Parts of "make check" and of "make check-long" never share a boot.
"""

import dataclasses
import inspect

import apps
import pytest
import pyverbs
from steps import run_steps


@dataclasses.dataclass
class Part:
    """Steps of one test file. files: a function that returns those for the share."""

    module: str
    long: bool
    steps: list
    watch: dict
    files: object

    @property
    def name(self):
        """In front of the names of its steps, with a dot."""
        return self.module.removeprefix("test_") + ("-long" if self.long else "")

    def is_selected(self, session):
        return any(item.module.__name__ == self.module and bool(item.get_closest_marker("long")) == self.long
                   for item in session.items)


class Boot:
    """order: the names of the files that may add a part, without "test_". options: those of vmlab."""

    def __init__(self, name, order, **options):
        self.name, self.order, self.options = name, order, options
        self.parts, self.runs = [], {}

    def part(self, steps, watch=None, files=tuple, long=False):
        """A fixture: the run of these steps. long: only tests that are marked so use it."""
        module = inspect.currentframe().f_back.f_globals["__name__"]
        part = Part(module, long, list(steps), watch or {}, files)
        assert module.removeprefix("test_") in self.order, f"{module} is not in the order of the boot '{self.name}'"
        self.parts.append(part)

        @pytest.fixture(scope="module")
        def run(request, tmp_path_factory):
            if part.long not in self.runs:
                self.runs[part.long] = self._boot(part.long, request.session, tmp_path_factory)
            return self.runs[part.long].part(part.name)

        return run

    def _boot(self, long, session, tmp_path_factory):
        parts = [part for part in self.parts if part.long == long and part.is_selected(session)]
        parts.sort(key=lambda part: self.order.index(part.module.removeprefix("test_")))
        steps = [dataclasses.replace(step, name=f"{part.name}.{step.name}") for part in parts for step in part.steps]
        watch = {f"{part.name}.{flag}": function for part in parts for flag, function in part.watch.items()}
        files = {path.name: path for part in parts for path in part.files()}
        folder = tmp_path_factory.mktemp(self.name + ("-long" if long else ""))
        return run_steps(folder, steps, watch, files.values(), **self.options)


def each_run(*names):
    """Parameters of the fixture "run" (indirect): names of fixtures. The tests of those that end with "_long" are long."""
    return [pytest.param(name, marks=[pytest.mark.long] if name.endswith("_long") else []) for name in names]


def each_step(**parts):
    """Parameters "run, step" of the fixtures with their steps or names of steps."""
    return [pytest.param(run.values[0], getattr(step, "name", step), marks=run.marks, id=f"{run.values[0]}-{getattr(step, 'name', step)}")
            for run in each_run(*parts) for step in parts[run.values[0]]]


# Parts that kill a VM or remove a device come last, after those that change addresses or names of devices.
PAIR = Boot("pair", ["pair", "perftest", "cm", "doorbells", "reload", "cm_deaf", "counters", "compare", "user"])
STOCK = Boot("stock", ["stock", "verify"], driver="vmw_pvrdma", smp=2)
# Two CPUs per VM, as QEMU does not make the atomics of a single emulated CPU atomic for other CPUs.
VERIFY = Boot("verify", ["verify"], smp=2)
# A region of 16 GiB in small pages needs more kernel memory than a VM of 1 GiB has.
ALONE = Boot("alone", ["kernel_verbs", "pyverbs"], nodes=1, memory="2G", packages=pyverbs.PACKAGES)
# test_nvme is last: its refusals leave complaints in the kernels' logs.
APPS = Boot("apps", ["nfs", "mpi", "nvme_matrix", "nvme"], packages=apps.PACKAGES)
DISTURB = Boot("disturb", ["reload", "cm_death", "peer_death", "vanish"])
