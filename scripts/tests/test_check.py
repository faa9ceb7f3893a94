# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
"""scripts/check: counting of tests, budgets, steps in the background."""

import re
import subprocess
import sys

import pytest
from conftest import SCRIPTS, load

check = load("check")


@pytest.fixture(autouse=True)
def logs(tmp_path, monkeypatch):
    monkeypatch.setattr(check, "LOGS", tmp_path)
    return tmp_path


def step(name, code, **more):
    """A step that runs Python code."""
    return check.Step(name, f"tests of {name}", [sys.executable, "-c", code], **more)


def run(*steps, **options):
    checks = check.Checks(steps, **options)
    checks.run()
    return checks


# --- counting

def tap(text, code):
    result = check.tap_result("unit", text, code, "LOG")
    return len(result.passed), result.failed, result.skipped


@pytest.mark.parametrize("text, code, expected", [
    pytest.param("1..2\nok 1 - test_a\nok 2 - test_b\n", 0, (2, [], []), id="each test counts"),
    pytest.param("1..2\nok 1 - test_a\nnot ok 2 - test_b\n# 0x1 != 0x2\n# t.c:8: error\n", 1,
                 (1, [("unit: test_b", "0x1 != 0x2 / t.c:8: error (see LOG)")], []), id="a failure has a reason"),
    pytest.param("1..1\n# no such device\nnot ok 1 # SKIP test_a\n", 0, (0, [], [("unit: test_a", "no such device")]),
                 id="skipped, as cmocka writes it"),
    pytest.param("1..1\nok 1 - test_a # SKIP no clang\n", 0, (0, [], [("unit: test_a", "no clang")]),
                 id="skipped, as the standard writes it"),
    pytest.param("1..1\nnot ok 1 # SKIP test_a\n", 0,
                 (0, [("unit: test_a", "it is skipped, and does not say why (see LOG)")], []),
                 id="skipped without a reason"),
])
def test_tap_is_counted(text, code, expected):
    assert tap(text, code) == expected


@pytest.mark.parametrize("text, code, passed, failed", [
    pytest.param("1..3\nok 1 - test_a\n", -6, 1, 2, id="each test not reached"),
    pytest.param("1..1\nok 1 - test_a\n", 1, 1, 1, id="after its tests"),
    pytest.param("Segmentation fault\n", -11, 0, 1, id="no results"),
    pytest.param("", 0, 0, 1, id="no output"),
])
def test_tap_of_a_program_that_died_has_failures(text, code, passed, failed):
    found = tap(text, code)
    assert (found[0], len(found[1])) == (passed, failed)


def test_counts_are_the_last_line():
    result = check.Result()
    result.passed.append("a")
    result.skipped.append(("b", "why"))
    assert str(result) == "1 passed, 0 failed, 1 skipped"


def test_junit_of_pytest(tmp_path):
    (tmp_path / "vm.xml").write_text(
        '<testsuites><testsuite><testcase classname="tests.vm.test_a" name="test_1"/>'
        '<testcase classname="tests.vm.test_a" name="test_2"><failure message="boom"/></testcase>'
        '<testcase classname="tests.vm.test_a" name="test_3"><skipped message="no kvm"/></testcase>'
        '</testsuite></testsuites>')
    step = check.Step("vm", "", [], results=str(tmp_path / "vm.xml"))
    result = check.count_junit(step, 1, "LOG")
    assert result.passed == ["test_a::test_1"]
    assert result.failed == [("test_a::test_2", "boom (see LOG)")]
    assert result.skipped == [("test_a::test_3", "no kvm")]


# --- running

def test_step_passes_and_fails_by_exit_status(logs):
    total = run(step("good", "pass"), step("bad", "import sys; print('why'); sys.exit(3)")).total
    assert total.passed == ["good"]
    assert total.failed == [("bad", f"exit status 3, see {logs}/bad.log")]
    assert (logs / "bad.log").read_text() == "why\n"


def test_step_after_a_failed_one_is_not_run_and_fails():
    total = run(step("bad", "raise SystemExit(1)"), step("next", "pass", after="bad"), step("last", "pass", after="next")).total
    assert total.passed == []
    assert [name for name, _ in total.failed] == ["bad", "next", "last"]


def test_step_beside_another_runs_at_the_same_time(tmp_path):
    """Each of the two waits for a file that the other one makes."""
    code = ("import pathlib, time\npathlib.Path({!r}).touch()\nend = time.monotonic() + 20\n"
            "while not pathlib.Path({!r}).exists():\n    assert time.monotonic() < end\n    time.sleep(0.01)")
    a, b = str(tmp_path / "a"), str(tmp_path / "b")
    total = run(step("behind", code.format(a, b), beside="front"), step("front", code.format(b, a))).total
    assert sorted(total.passed) == ["behind", "front"] and not total.failed


def test_step_beside_a_step_that_is_not_in_the_run_runs_alone():
    assert run(step("behind", "pass", beside="front")).total.passed == ["behind"]


def test_step_beside_a_step_that_cannot_run_runs_alone():
    total = run(step("bad", "raise SystemExit(1)"), step("behind", "pass", beside="front"),
                step("front", "pass", after="bad")).total
    assert total.passed == ["behind"]
    assert [name for name, _ in total.failed] == ["bad", "front"]


def test_failure_in_the_background_counts_and_shows_its_log(capsys):
    total = run(step("behind", "print('the reason'); raise SystemExit(1)", beside="front"), step("front", "pass")).total
    assert total.passed == ["front"] and [name for name, _ in total.failed] == ["behind"]
    assert "    | the reason" in capsys.readouterr().out


def test_interrupt_stops_the_background_too(monkeypatch):
    behind = step("behind", "import time; time.sleep(60)", beside="front")
    checks = check.Checks([behind, step("front", "pass")])

    def interrupted(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(checks, "_count", interrupted)
    with pytest.raises(KeyboardInterrupt):
        checks.run()
    assert checks.running[0].seconds < 30


# --- budgets

SLOW = "import time; time.sleep(0.3)"


def without_seconds(text):
    """A busy machine needs a second or more for any step."""
    return re.sub(r"\d+ s, budget", "N s, budget", text)


def test_step_prints_its_seconds_beside_its_budget(capsys):
    run(step("quick", "pass", budget=40))
    assert "quick: 1 passed, 0 failed, 0 skipped in N s, budget 40 s" in without_seconds(capsys.readouterr().out)


def test_step_that_takes_more_than_twice_its_budget_fails_by_a_test_of_its_own():
    total = run(step("slow", SLOW, budget=0.1)).total
    assert total.passed == ["slow"]
    assert [(without_seconds(name), why) for name, why in total.failed] == [("slow: N s, budget 0 s", "took more than twice its budget")]


@pytest.mark.parametrize("budget, options", [
    pytest.param(10, {}, id="less than twice its budget"),
    pytest.param(0.1, {"enforced": False}, id="a run that may download"),
    pytest.param(0.1, {"factor": 100}, id="a factor"),
])
def test_step_within_its_limit_passes(budget, options):
    assert not run(step("slow", SLOW, budget=budget), **options).total.failed


def test_stolen_time_does_not_count(monkeypatch):
    """99 % of the CPU time are stolen: 0.3 s or much more are below twice the budget."""
    times = iter([(0, 0), (100, 99)])
    monkeypatch.setattr(check, "cpu_times", lambda: next(times))
    assert not run(step("slow", SLOW, budget=0.12)).total.failed


@pytest.mark.parametrize("before, after, part", [
    ((100, 10), (200, 60), 0.5), ((100, 10), (200, 10), 0), ((100, 10), (100, 10), 0), ((100, 10), (200, 5), 0), ((0, 0), (100, 100), 0.99)])
def test_stolen_part_is_that_between_two_readings(before, after, part):
    assert check.stolen(before, after) == part


def test_cpu_times_are_those_of_the_kernel(tmp_path):
    stat = tmp_path / "stat"
    stat.write_text("cpu  100 20 30 400 5 0 7 38 9 9\ncpu0 1 1 1 1 1 1 1 1 0 0\n")
    assert check.cpu_times(stat) == (600, 38)
    total, steal = check.cpu_times()
    assert total > steal >= 0


def test_step_that_is_too_slow_does_not_keep_others_from_running():
    assert run(step("slow", SLOW, budget=0.1), step("next", "pass", after="slow")).total.passed == ["slow", "next"]


def test_background_step_has_a_budget_of_its_own():
    total = run(step("behind", SLOW, budget=0.1, beside="front"), step("front", "pass", budget=60)).total
    assert [without_seconds(name) for name, _ in total.failed] == ["behind: N s, budget 0 s"]


def test_factor_multiplies_the_sum_of_budgets():
    assert check.Checks([step("a", "", budget=20)], factor=2.5).budgets() == 50


def test_sum_of_budgets_leaves_out_the_background():
    steps = [step("behind", "", budget=7, beside="front"), step("front", "", budget=5), step("free", "")]
    assert check.Checks(steps).budgets() == 5
    assert check.Checks(steps[:1]).budgets() == 7


@pytest.mark.parametrize("text", ["", "0", "-1", "fast", "nan", "inf"])
def test_bad_factor_is_refused(text, monkeypatch):
    monkeypatch.setenv("PVRDMA_BUDGET_FACTOR", text)
    with pytest.raises(SystemExit, match="PVRDMA_BUDGET_FACTOR"):
        check.budget_factor()


# --- the steps of this project

def test_steps_name_steps_that_come_before_or_with_them():
    names = [each.name for each in check.STEPS]
    assert len(set(names)) == len(names) and names[0] == "fetch"
    for each in check.STEPS:
        assert each.after is None or names.index(each.after) < names.index(each.name)
        assert each.beside is None or names.index(each.name) < names.index(each.beside)


def test_programs_and_folders_of_steps_exist():
    words = [word for each in check.STEPS for word in each.command if word.startswith(("scripts/", "tests/"))]
    words += [word + ".c" for each in check.STEPS for word in each.env.get("TARGETS", "").split()]
    assert len(words) > len(check.STEPS) / 2
    assert not [word for word in words if not (check.ROOT / word).exists()]


def test_each_usual_step_has_a_budget_and_they_are_32_minutes_together():
    usual = [each for each in check.STEPS if each.usual]
    assert all(each.budget for each in usual)
    assert check.Checks([each for each in usual if each.name != "fetch"]).budgets() <= 32 * 60


def test_list_shows_steps_and_budgets():
    done = subprocess.run([SCRIPTS / "check", "--list"], stdout=subprocess.PIPE, text=True, check=True)
    assert "abi              10 s  ABI header alone" in done.stdout


# --- flaky tests

@pytest.fixture
def tests_that_fail(tmp_path, monkeypatch):
    """make(N, ...): a step of tests; the first fails N times, then passes, and so on."""
    monkeypatch.setattr(check, "ROOT", tmp_path)
    (tmp_path / "folder").mkdir()

    def make(*failures, timed=True, why="too early", again="pass"):
        lines = ["from pathlib import Path", "import pytest", f"@pytest.mark.parametrize('n', {list(enumerate(failures))})",
                 "def test_a(n):", "    path = Path(__file__).parent / f'runs{n[0]}'", "    path.touch()",
                 "    path.write_text(path.read_text() + 'x')", f"    assert len(path.read_text()) > n[1], {why!r}",
                 f"    if n[1]: {again}"]
        (tmp_path / "folder/test_timed.py").write_text("\n".join(lines) + "\n")
        return check.pytest_step("timed", "tests", "folder", timed=timed)
    return make


def test_failed_test_that_passes_again_is_flaky(tests_that_fail, logs):
    total = run(tests_that_fail(2, 0)).total
    assert [name for name, _ in total.flaky] == ["test_timed::test_a[n0]"]
    assert total.flaky[0][1].startswith("AssertionError: too early")
    assert (len(total.passed), total.failed) == (2, [])
    assert "too early" in (logs / "flaky/timed.log").read_text()
    assert sorted(path.name for path in (logs / "flaky").iterdir()) == [
        "timed-test_timed-test_a-n0-.1.log", "timed-test_timed-test_a-n0-.2.log", "timed.log"]


def test_test_that_fails_three_times_fails(tests_that_fail):
    total = run(tests_that_fail(3)).total
    assert ([name for name, _ in total.failed], total.flaky) == (["test_timed::test_a[n0]"], [])


def test_finding_of_a_sanitizer_is_not_flaky(tests_that_fail):
    total = run(tests_that_fail(1, why="ERROR: AddressSanitizer: heap-use-after-free")).total
    assert (len(total.failed), total.flaky) == (1, [])


def test_name_of_a_passed_test_is_no_finding(tests_that_fail, tmp_path):
    timed = tests_that_fail(1)
    (tmp_path / "folder/test_console.py").write_text(
        "import pytest\n@pytest.mark.parametrize('text', ['BUG: kernel NULL pointer', 'Oops: 0002'])\ndef test_b(text):\n    pass\n")
    total = run(timed).total
    assert (len(total.passed), len(total.flaky), total.failed) == (3, 1, [])


def test_test_that_is_skipped_the_second_time_fails(tests_that_fail):
    total = run(tests_that_fail(1, again="pytest.skip('no memory')")).total
    assert (len(total.failed), total.flaky) == (1, [])


def test_file_that_cannot_be_imported_fails(tests_that_fail, tmp_path):
    timed = tests_that_fail(0)
    (tmp_path / "folder/test_broken.py").write_text("import nothing_like_this\n")
    total = run(timed).total
    assert total.failed and not total.flaky


def test_more_than_three_failed_tests_do_not_run_again(tests_that_fail, logs):
    total = run(tests_that_fail(1, 1, 1, 1)).total
    assert (len(total.failed), total.flaky) == (4, [])
    assert not (logs / "flaky").exists()


def test_three_tests_of_a_run_run_again(tests_that_fail):
    checks = check.Checks([tests_that_fail(1, 1, 1)])
    checks.run()
    assert (len(checks.total.flaky), checks.total.failed) == (3, [])
    assert checks.reruns.left == 0


def test_failed_test_of_another_step_does_not_run_again(tests_that_fail):
    total = run(tests_that_fail(1, timed=False)).total
    assert (len(total.failed), total.flaky) == (1, [])


def test_steps_that_depend_on_time():
    assert [step.name for step in check.STEPS if step.timed] == ["daemon", "hosts", "vm"]
