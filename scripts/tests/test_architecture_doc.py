# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
"""docs/architecture.md: its files exist, its tables have each source file of their folder, its layers are enforced."""

import re

import pytest
from conftest import ROOT

DEVICE = ROOT / "qemu-device"
DOC = (ROOT / "docs" / "architecture.md").read_text()
NAMES = sorted(set(re.findall(r"`([\w./*-]+\.[ch])`", DOC)))
TABLES = re.findall(r"^\| in `qemu-device/([\w/]+)/` \|.*\n\|---\|---\|\n((?:\|.*\n)+)", DOC, re.MULTILINE)


@pytest.mark.parametrize("name", NAMES)
def test_file_exists(name):
    """As seen from the root, from the device's folder or from a folder of the device."""
    assert any(list(base.glob(name)) for base in (ROOT, DEVICE, *DEVICE.rglob("*")) if base.is_dir())


def test_each_folder_has_a_table():
    folders = {str(path.parent.relative_to(DEVICE)) for path in DEVICE.rglob("*.c")}
    assert {folder for folder, _ in TABLES} == folders - {"."}


def test_layers_are_those_of_the_checked_table():
    lines = [line for line in (DEVICE / "LAYERS").read_text().splitlines() if not line.startswith("#")]
    layers = {name.strip(): set(uses.split()) for name, _, uses in (line.partition("|") for line in lines)}
    rows = re.search(r"^\| folder \| content \| may use \|\n.*\n((?:\|.*\n)+)", DOC, re.MULTILINE)[1].splitlines()
    cells = [[re.findall(r"`([^`]+)`", cell) for cell in row.split("|")[1:4]] for row in rows]
    assert {name: set(uses) for (name,), _, uses in cells} == layers


@pytest.mark.parametrize("folder, table", TABLES, ids=[folder for folder, _ in TABLES])
def test_table_has_each_source_file(folder, table):
    named = re.findall(r"`([\w-]+\.c)`", "".join(line.split("|")[1] for line in table.splitlines()))
    assert sorted(named) == sorted(path.name for path in (DEVICE / folder).glob("*.c"))
