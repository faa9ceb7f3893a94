# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
"""docs/architecture.md: the files that it names exist, and its tables have each source file of their folder."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
DEVICE = ROOT / "qemu-device"
DOC = (ROOT / "docs" / "architecture.md").read_text()
NAMES = sorted(set(re.findall(r"`([\w./*-]+\.[ch])`", DOC)))
TABLES = re.findall(r"^\| in `qemu-device/([\w/]+)/` \|.*\n\|---\|---\|\n((?:\|.*\n)+)", DOC, re.MULTILINE)


@pytest.mark.parametrize("name", NAMES)
def test_file_exists(name):
    """As seen from the root, from the device's folder or from a folder of the device."""
    assert any(list(base.glob(name)) for base in (ROOT, DEVICE, *DEVICE.rglob("*")) if base.is_dir())


def test_what_is_between_hosts_has_tables():
    assert {folder for folder, _ in TABLES} == {"net", "path/pipe", "directory"}


@pytest.mark.parametrize("folder, table", TABLES, ids=[folder for folder, _ in TABLES])
def test_table_has_each_source_file(folder, table):
    named = re.findall(r"`([\w-]+\.c)`", "".join(line.split("|")[1] for line in table.splitlines()))
    assert sorted(named) == sorted(path.name for path in (DEVICE / folder).glob("*.c"))
