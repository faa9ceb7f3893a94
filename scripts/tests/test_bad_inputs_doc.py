# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
"""docs/bad-inputs.md: each row names tests, of the device, the daemon, the provider or the driver, and they run."""

import re

from conftest import ROOT
from test_semantics_doc import is_defined, rows

DOC = ROOT / "docs" / "bad-inputs.md"
PLACES = ["tests", "scripts/tests", "rdma-core-provider/tests"]
# test_step[STEP] is a step of a VM test, see step_tests() in tests/pylib/boots.py. tests/pylib has steps of several files.
SHARED_STEPS = "".join(path.read_text() for path in (ROOT / "tests/pylib").glob("*.py"))
TEST = re.compile(r"`((?:test_\w+|debug_kernel)\.(?:c|py)): (test_\w+)(?:\[([\w-]+)\])?`")


def files(name):
    """All of that name: the device and the provider both have a test_cq.c."""
    return [path for place in PLACES for path in (ROOT / place).rglob(name)]


def runs(path, function, step):
    text = path.read_text()
    if step:
        return f"{function}, test_run_ended_well = step_tests(" in text and f'"{step}"' in text + SHARED_STEPS
    if path.suffix == ".py":
        return re.search(rf"^def {function}\(", text, re.M) is not None
    if is_defined(text, function):
        return True
    # A macro defines the tests of test_monkey.c by their seeds.
    return re.search(rf"^SEED\(\w+, {function.rpartition('_')[2]}\)", text, re.M) is not None


def what_is_wrong(row):
    """A complaint, or None."""
    if len(row) != 3 or not row[1]:
        return "not input, result and test"
    tests = TEST.findall(row[2])
    if not tests or TEST.sub("", row[2]).strip(", "):
        return "the last cell is no list of `test_file: test_function`"
    missing = [f"{name}: {function}" for name, function, step in tests
               if not any(runs(path, function, step) for path in files(name))]
    return f"no {missing}" if missing else None


def test_each_row_names_tests_that_run():
    table = [row for row in rows(DOC.read_text()) if row[0] != "input"]
    assert len(table) > 80
    wrong = {row[0]: why for row in table if (why := what_is_wrong(row))}
    assert not wrong


def test_the_check_sees():
    good = "`test_monkey.c: test_monkey_with_seed_2`, `test_device.py: test_regions`, `test_pair.py: test_step[errno]`"
    assert what_is_wrong(["x", "y", good]) is None
    assert "not input" in what_is_wrong(["x", "", good])
    assert "no list" in what_is_wrong(["x", "y", ""])
    assert "no list" in what_is_wrong(["x", "y", good + ", by hand"])
    for bad in ("test_cq.c: test_create_cq_rejects_bad_siz", "test_nobody.c: test_x", "test_device.py: test_region",
                "test_monkey.c: test_monkey_with_seed_77", "test_pair.py: test_step[errn]", "test_device.py: test_step[errno]"):
        assert "no [" in what_is_wrong(["x", "y", f"`{bad}`"])
