#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
"""Usage: features.py [DRIVER=FOLDER | DRIVER=keep]...

Writes docs/features.md: rdma_rxe, pvrdma on two kernels and vmw_pvrdma side by side, from the output of `ibv_devinfo -v`
and of rdma-core's own suite for each in a VM of its own. With FOLDER, the results of an earlier run (build/check/vm-NAME)
are used for that driver, with "keep" the column of the present document, and no VM boots.
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
# Columns of the document, with vmlab's options.
DRIVERS = {"rdma_rxe": {"driver": "rxe"}, "pvrdma": {"driver": "pvrdma"},
           "pvrdma-7.2": {"driver": "pvrdma", "kernel": "7.2"}, "vmw_pvrdma": {"driver": "vmw_pvrdma"}}
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
the kernel's `vmw_pvrdma` and Debian's provider on our device. All run in the same Debian 12 VM with
its kernel 6.1, `pvrdma-7.2` with the kernel 7.2 of Debian's backports or its successor there, 7.3.
`tests/vm/features.py` boots the four and generates this file. `tests/vm/test_pyverbs.py` compares
the columns of `pvrdma` with its own runs.

The ten tests of dma-buf need `/dev/udmabuf`, which kernel 6.1 of Debian lacks.
"""
TABLES = ["## `ibv_devinfo -v`", "## rdma-core's suite"]


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


def is_worth_a_row(value):
    return value not in NOTHING and not value.startswith("0 of ")


def table(title, columns):
    names = list(dict.fromkeys(name for column in columns.values() for name in column))
    lines = [f"| {title} | {' | '.join(columns)} |", "|---" * (len(columns) + 1) + "|"]
    for name in names:
        values = [column.get(name, "") for column in columns.values()]
        if any(map(is_worth_a_row, values)):
            lines.append(f"| {name} | {' | '.join(values)} |")
    return "\n".join(lines) + "\n"


def document(facts):
    """facts: {column: (devinfo, suite)}"""
    return "\n".join([
        INTRODUCTION,
        f"{TABLES[0]}\n",
        table("", {name: devinfo for name, (devinfo, _) in facts.items()}),
        f"{TABLES[1]}\n\nTests that pass, by class. Classes without a test that passes with any driver are left out.\n",
        table("", {name: suite for name, (_, suite) in facts.items()})])


def committed(column):
    """(devinfo, suite) of the committed document: {name: value} each; empty for a column that it has not."""
    text = DOCUMENT.read_text()
    begins = [text.index(title) for title in TABLES]
    return tuple(column_of(part, column) for part in (text[begins[0]:begins[1]], text[begins[1]:]))


def column_of(text, column):
    rows = [[cell.strip() for cell in line[1:-1].split("|")] for line in text.splitlines() if line.startswith("| ")]
    head = next((row for row in rows if not row[0]), [])
    index = head.index(column) if column in head else None
    return {row[0]: row[index] for row in rows if index is not None and row[0] and row[index]}


def results(name, options, given):
    """(devinfo, suite) of a driver. given: a folder, "keep", or None."""
    if given == "keep":
        return committed(name)
    if given:
        return facts_of(pathlib.Path(given))
    parent = pathlib.Path(tempfile.mkdtemp()) / f"features-{name}"
    parent.mkdir()
    run_steps(parent, STEPS, files=pyverbs.files(), nodes=1, packages=pyverbs.PACKAGES, **options).check_end()
    return facts_of(ROOT / "build" / "check" / f"vm-{parent.name}")


def main():
    given = dict(argument.split("=", 1) for argument in sys.argv[1:])
    if set(given) - set(DRIVERS):
        sys.exit(__doc__)
    facts = {name: results(name, options, given.get(name)) for name, options in DRIVERS.items()}
    DOCUMENT.write_text(document(facts))


if __name__ == "__main__":
    main()
