# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
"""docs/applications.md: each of its examples is one that a VM test runs."""

import re

import pytest
from conftest import ROOT

SECTIONS = re.split(r"^#+ ", (ROOT / "docs" / "applications.md").read_text(), flags=re.MULTILINE)[1:]
EXAMPLES = [section.partition("\n")[0] for section in SECTIONS if "```console" in section]
TESTS = "".join(path.read_text() for folder in ("vm", "pylib") for path in (ROOT / "tests" / folder).glob("*.py"))


@pytest.mark.parametrize("heading", EXAMPLES)
def test_example_is_run_by_a_test(heading):
    """Tests name examples by their headings."""
    assert re.search(rf"""["']{re.escape(heading)}["']""", TESTS)


def test_headings_are_unique():
    headings = [section.partition("\n")[0] for section in SECTIONS]
    assert len(set(headings)) == len(headings)


def test_no_command_hides_in_another_kind_of_block():
    """Only console blocks are read by the tests."""
    text = "".join(re.sub(r"^```console\n.*?^```$", "", section, flags=re.MULTILINE | re.DOTALL) for section in SECTIONS)
    assert not re.search(r"^ *node\d[$#] ", text, re.MULTILINE)
