# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
"""docs/faults.md: what a program sees of each kind of fault; each row names tests, and they run."""

import re

from conftest import ROOT
from test_bad_inputs_doc import what_is_wrong
from test_semantics_doc import rows

DOC = ROOT / "docs" / "faults.md"
RULE = (ROOT / "qemu-device" / "fault" / "rule.c").read_text()


def table():
    return [row for row in rows(DOC.read_text()) if row[0] != "fault"]


def test_each_row_names_tests_that_run():
    assert len(table()) >= 10
    wrong = {row[0]: why for row in table() if (why := what_is_wrong([row[0], all(row[1:4]) and row[1], row[4]]))}
    assert not wrong


def test_each_kind_and_status_has_a_row():
    kinds = re.findall(r'{ "([\w-]+)", set_\w+, 1u << PVR_FAULT_', RULE)
    statuses = re.findall(r'{ "(\w+)", PVRDMA_WC_', RULE)
    assert {"drop", "delay", "cq-overflow"} <= set(kinds) and len(statuses) == 20
    faults = " ".join(row[0] for row in table())
    assert all(f"`{kind}=" in faults for kind in kinds)
    assert all(re.search(rf"[`=]{status}`", faults) for status in statuses)


def test_the_man_page_has_each_kind_and_status():
    man = (ROOT / "docs/man/pvrdmactl.8").read_text().split(".Sh FAULTS")[1].split(".Sh COUNTERS")[0]
    assert all(f".It Cm {kind}=" in man for kind in re.findall(r'{ "([\w-]+)", set_\w+, 1u << PVR_FAULT_', RULE))
    assert all(status in man for status in re.findall(r'{ "(\w+)", PVRDMA_WC_', RULE))
