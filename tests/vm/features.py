#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
"""Usage: features.py [DRIVER=FOLDER...]

Writes docs/features.md: rdma_rxe, pvrdma and vmw_pvrdma side by side, from the output of `ibv_devinfo -v` and of
rdma-core's own suite for each in a VM of its own. With FOLDER, the results of an earlier run (build/check/vm-NAME) are
used for that driver, and no VM boots.
"""

import collections
import pathlib
import re
import sys
import tempfile

import conftest  # noqa: F401 (finds the modules below where this runs as a program)
import pyverbs
from steps import Step, run_steps
from vmlab_run import ROOT

DOCUMENT = ROOT / "docs" / "features.md"
DRIVERS = {"rxe": "rdma_rxe", "pvrdma": "pvrdma", "vmw_pvrdma": "vmw_pvrdma"}
DEVINFO = Step("devinfo", "ibv_devinfo -v -d $RDMA_DEV")
STEPS = [DEVINFO, pyverbs.STEP]
# Names and addresses of a VM's device, and the state of its link.
NOT_FEATURES = {"hca_id", "fw_ver", "node_guid", "sys_image_guid", "board_id", "port", "state", "sm_lid", "port_lid",
                "phys_state", "bad_pkey_cntr", "qkey_viol_cntr"}
NOTHING = {"", "0", "0x0", "0x00", "0x0000", "0kbps", "NO SUPPORT", "not supported"}
INTRODUCTION = """\
<!-- SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB -->
# Features

What programs find with Soft-RoCE (`rdma_rxe`), with our driver and provider (`pvrdma`), and with
the kernel's `vmw_pvrdma` and Debian's provider on our device. All three run in the same Debian 12
VM. `tests/vm/features.py` boots the three and generates this file. `tests/vm/test_pyverbs.py`
compares the column `pvrdma` with its own run.

With a kernel that has `/dev/udmabuf`, such as 7.3 of Debian's backports, the ten tests of dma-buf
pass with `pvrdma`, too: the long part of `test_pyverbs.py`.
"""


def devinfo_facts(text):
    """{name: value} of `ibv_devinfo -v`; flags are joined, several lines become one."""
    facts, name = {}, None
    for line in text.splitlines():
        pair = re.match(r"\t*([\w ]+?):\s*(.*)$", line)
        absent = re.match(r"\t([\w ]+) not supported$", line)
        if pair and not pair[1].startswith("GID"):
            name = pair[1]
            facts[name] = pair[2].strip()
        elif absent:
            facts[absent[1]] = "not supported"
        elif name and re.match(r"\t{4,}", line):
            facts[name] = f"{facts[name]} {line.strip()}".strip()
    return {name: value for name, value in facts.items() if value and name not in NOT_FEATURES}


def suite_facts(report):
    """{test class: "PASSED of ALL", ...} and the totals."""
    passed, ran = collections.Counter(), collections.Counter()
    outcomes = [(name, True) for name in report.passed]
    outcomes += [(name, False) for name in [*report.failed, *report.skipped]]
    for name, good in outcomes:
        group = ".".join(name.split(".")[1:3])
        ran[group] += 1
        passed[group] += good
    facts = {group: f"{passed[group]} of {ran[group]}" for group in sorted(ran)}
    facts["all"] = f"{len(report.passed)} of {report.ran}"
    return facts


def facts_of(folder):
    """(devinfo, suite) of a run that left its results in folder/results/node1."""
    read = lambda name: next((folder / "results" / "node1").glob(f"*{name}.out")).read_text(errors="replace")  # noqa: E731
    return devinfo_facts(read("devinfo")), suite_facts(pyverbs.parse(read("pyverbs")))


def table(title, columns, keep=lambda values: True):
    names = list(dict.fromkeys(name for column in columns.values() for name in column))
    lines = [f"| {title} | {' | '.join(columns)} |", "|---" * (len(columns) + 1) + "|"]
    for name in names:
        values = [column.get(name, "") for column in columns.values()]
        if keep(values):
            lines.append(f"| {name} | {' | '.join(values)} |")
    return "\n".join(lines) + "\n"


def document(facts):
    """facts: {column: (devinfo, suite)}"""
    return "\n".join([
        INTRODUCTION,
        "## `ibv_devinfo -v`\n",
        table("", {name: devinfo for name, (devinfo, _) in facts.items()},
              keep=lambda values: set(values) - NOTHING),
        "## rdma-core's suite\n\nTests that pass, by class. Classes without a test that passes with any driver are left out.\n",
        table("", {name: suite for name, (_, suite) in facts.items()},
              keep=lambda values: any(value and not value.startswith("0 ") for value in values))])


def committed(column):
    """{name: value} of both tables in the committed document."""
    found, index = {}, None
    for line in DOCUMENT.read_text().splitlines():
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        if column in cells:
            index = cells.index(column)
        elif line.startswith("| ") and index is not None and cells[index]:
            found[cells[0]] = cells[index]
    return found


def main():
    folders = dict(argument.split("=", 1) for argument in sys.argv[1:])
    if set(folders) - set(DRIVERS):
        sys.exit(__doc__)
    facts = {}
    for driver, name in DRIVERS.items():
        folder = pathlib.Path(folders[driver]) if driver in folders else None
        if not folder:
            parent = pathlib.Path(tempfile.mkdtemp()) / f"features-{driver}"
            parent.mkdir()
            run = run_steps(parent, STEPS, files=pyverbs.files(), nodes=1, driver=driver, packages=pyverbs.PACKAGES)
            run.check_end()
            folder = ROOT / "build" / "check" / f"vm-{parent.name}"
        facts[name] = facts_of(folder)
    DOCUMENT.write_text(document(facts))


if __name__ == "__main__":
    main()
