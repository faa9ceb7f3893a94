# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
"""docs/semantics.md: each rule has a clause and a test, and the test runs."""

import re

import pytest
from conftest import ROOT, table_rows

DOC = ROOT / "docs" / "semantics.md"
UNIT = ROOT / "tests" / "unit"
TEST = re.compile(r"`(test_\w+\.c): (test_\w+)`")


def rows(text):
    """The cells of each row of each table, without the heads."""
    return [row for row in table_rows(text) if row[0] != "rule" and set(row[0]) != {"-"}]


def is_defined(text, function):
    """Whether a C file has a TEST*() of that name, which registers it."""
    return re.search(rf"^TEST\w*\((?:[^()]*,\s+)?{function}(?:, \w+)?\)$", text, re.M) is not None


def what_is_wrong(row, sources, names):
    """A complaint, or None. SOURCES: file name -> text; NAMES: the tests that meson runs."""
    if len(row) != 3 or not row[1]:
        return "not rule, clause and test"
    tests = TEST.findall(row[2])
    if not tests or TEST.sub("", row[2]).strip(", "):
        return "the last cell is no list of `test_file.c: test_function`"
    for file, function in tests:
        text = sources.get(file)
        if text is None or file.removeprefix("test_").removesuffix(".c") not in names:
            return f"{file} is no unit test"
        if not is_defined(text, function):
            return f"{file} has no {function}"
    return None


@pytest.fixture(scope="module")
def sources():
    return {path.name: path.read_text() for path in UNIT.glob("test_*.c")}


@pytest.fixture(scope="module")
def names():
    return set(re.findall(r"^  '(\w+)',$", (UNIT / "meson.build").read_text(), re.M))


def test_each_rule_has_a_clause_and_tests_that_run(sources, names):
    table = rows(DOC.read_text())
    assert len(table) > 80
    wrong = {row[0]: why for row in table if (why := what_is_wrong(row, sources, names))}
    assert not wrong


def test_no_rule_is_there_twice():
    rules = [row[0] for row in rows(DOC.read_text())]
    starts = [rule for rule in rules if not rule.startswith(("The same", "SQE: the same", "UC: the same",
                                                             "UD: the same", "Atomics too"))]
    assert len(starts) == len(set(starts))


@pytest.mark.parametrize("row, complaint", [
    (["a rule", "9.9", "`test_a.c: test_x`"], None),
    (["a rule", "", "`test_a.c: test_x`"], "not rule"),
    (["a rule", "9.9", ""], "no list"),
    (["a rule", "9.9", "`test_a.c: test_x`, by hand"], "no list"),
    (["a rule", "9.9", "`test_b.c: test_x`"], "no unit test"),
    (["a rule", "9.9", "`test_c.c: test_x`"], "no unit test"),
    (["a rule", "9.9", "`test_a.c: test_y`"], "has no test_y"),
    (["a rule", "9.9", "`test_a.c: test_z`"], "has no test_z"),
])
def test_the_check_sees(row, complaint):
    text = "TEST(guest, test_x)\n{\n\ttest_z(env);\n}\n"
    why = what_is_wrong(row, {"test_a.c": text, "test_c.c": text}, {"a"})
    assert why is None if complaint is None else complaint in why
