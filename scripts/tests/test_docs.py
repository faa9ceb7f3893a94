# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
"""Tables in docs/ that name tests: `file: function`, in back quotes. A test that is renamed must be renamed there."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PLACES = ["tests", "scripts/tests", "rdma-core-provider/tests"]
TABLES = [ROOT / "docs" / name for name in ("bad-inputs.md", "semantics.md")]
NAMED = re.compile(r"`([\w./-]+\.(?:c|py)): (test_\w+)`")
DEFINED = {".c": r"\b{0}\(void \*\*state\)|^SEED\({1}\)", ".py": r"^def {0}\("}


def files(name):
    """All tests of that name: tests/unit and the provider both have a test_cq.c."""
    return [path for place in PLACES for path in (ROOT / place).rglob(Path(name).name)
            if path.as_posix().endswith("/" + name)]


def is_defined(path, function):
    # Monkeys are made by a macro from their seed.
    pattern = DEFINED[path.suffix].format(function, function.rpartition("_")[2])
    return re.search(pattern, path.read_text(), re.MULTILINE) is not None


@pytest.mark.parametrize("table", [table for table in TABLES if table.exists()], ids=lambda table: table.name)
def test_tests_in_tables_exist(table):
    named = sorted(set(NAMED.findall(table.read_text())))
    missing = [f"{name}: {function}" for name, function in named
               if not any(is_defined(path, function) for path in files(name))]
    assert named and not missing, f"{table.name} names what does not exist: {missing}"


def test_rows_name_a_test():
    rows = [line for line in TABLES[0].read_text().splitlines() if line.startswith("| ")]
    assert len(rows) > 50
    bad = [row for row in rows if not NAMED.search(row) and not row.startswith("| input |")]
    assert not bad


def test_mistakes_are_noticed():
    path = ROOT / "tests/unit/test_cq.c"
    assert is_defined(path, "test_create_cq_rejects_bad_sizes")
    assert not is_defined(path, "test_create_cq_rejects_bad_siz")
    assert not is_defined(path, "test_that_nobody_wrote")
    assert is_defined(ROOT / "tests/unit/test_monkey.c", "test_monkey_with_seed_2")
    assert not is_defined(ROOT / "tests/unit/test_monkey.c", "test_monkey_with_seed_77")
    assert not files("test_that_nobody_wrote.c")
