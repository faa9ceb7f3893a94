# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
"""rdma-core's own test-suite over our device: with our driver and provider, and with the stock ones."""

import fnmatch

import features
import pyverbs
import pytest
from boots import ALONE, Boot, each_run, step_tests
from steps import Step

pytestmark = pytest.mark.slow

TESTS = 273      # of the python3-pyverbs in Debian 12
NEWER = "pvrdma-7.2"      # our driver on the newest kernel
PASSES = {"pvrdma": 146, NEWER: 150, "vmw_pvrdma": 43}      # so many at least
SKIPS = {
    "pvrdma": ["pyverbs-skips-6.1.txt", "pyverbs-skips.txt"],
    NEWER: ["pyverbs-skips.txt"],
    "vmw_pvrdma": ["pyverbs-skips-vmw_pvrdma.txt", "pyverbs-skips-6.1.txt", "pyverbs-skips.txt"]}
# Errors of the stock driver or provider, without access to the device.
FAILURES = {"pvrdma": [], NEWER: [], "vmw_pvrdma": ["pyverbs-failures-vmw_pvrdma.txt"]}
FEATURES_BY_CHANCE = {"all", "test_qp.QPTest"}
# The stock driver warns of each invalid request, and this suite makes many.
COMPLAINTS = Step("complaints", '[ "$DRIVER" = vmw_pvrdma ] || ! complaints')
STEPS = [features.DEVINFO, pyverbs.STEP, COMPLAINTS]

ours = ALONE.part(STEPS, files=pyverbs.files)
newer_long = Boot("pyverbs-7.2-", nodes=1, memory="2G", kernel="7.2", packages=pyverbs.PACKAGES).part(
    STEPS, files=pyverbs.files, long=True)
stock_long = Boot("pyverbs-vmw_pvrdma", nodes=1, driver="vmw_pvrdma", packages=pyverbs.PACKAGES).part(
    STEPS, files=pyverbs.files, long=True)
test_step, test_run_ended_well = step_tests(ours=STEPS, newer_long=STEPS, stock_long=STEPS)


@pytest.fixture(scope="module", params=each_run("ours", "newer_long", "stock_long"))
def run(request):
    return request.getfixturevalue(request.param)


@pytest.fixture(scope="module")
def driver(run):
    """A key of the tables above: the driver, with its kernel if that is not 6.1."""
    return "-".join([run.options.get("driver", "pvrdma"), *([run.options["kernel"]] if "kernel" in run.options else [])])


@pytest.fixture(scope="module")
def report(run):
    return pyverbs.parse(run.check(pyverbs.STEP)[0].text)


@pytest.fixture(scope="module")
def expected(driver, report):
    """{test: why it skips}"""
    return pyverbs.reasons(pyverbs.listed(*SKIPS[driver]), report.tests)


def by_chance(why):
    """Some tests create QPs with random flags, and skip flags that are not supported."""
    return why.startswith("by chance: ")


def test_all_tests_ran(report):
    assert (report.ran, len(report.tests)) == (TESTS, TESTS), report.text[-3000:]


def test_no_failure_and_no_error(report, driver):
    known = pyverbs.listed(*FAILURES[driver])
    assert set(report.failed) == {test for test, _ in known}, report.text[report.text.find("\n====="):][:6000]


def test_each_skipped_test_is_listed(report, expected):
    new = [f"{name} | {why}" for name, why in report.skipped.items() if name not in expected]
    assert not new, "skipped, but not listed:\n" + "\n".join(new)


def test_each_listed_test_skips(report, driver, expected):
    over = sorted(name for name, why in expected.items() if name not in report.skipped and not by_chance(why))
    assert not over, "listed, but did not skip:\n" + "\n".join(over)
    unused = [pattern for pattern, _ in pyverbs.listed(*SKIPS[driver]) if not fnmatch.filter(report.tests, pattern)]
    assert not unused, "no test has these names:\n" + "\n".join(unused)


def test_enough_tests_pass(report, driver, capsys):
    with capsys.disabled():
        print(f"\npyverbs with {driver}: {len(report.passed)} of {report.ran} passed ", end="")
    assert len(report.passed) >= PASSES[driver]


def test_feature_table_agrees(run, report, driver):
    if not driver.startswith("pvrdma"):
        return
    seen = {**features.devinfo_facts(run.check(features.DEVINFO)[0].text), **features.suite_facts(report)}
    devinfo, suite = features.committed(driver)
    shown = {**devinfo, **suite}
    names = {name for name in {**seen, **shown} if name not in FEATURES_BY_CHANCE and features.is_worth_a_row(seen.get(name, ""))}
    wrong = {name: (shown.get(name), seen.get(name)) for name in names | set(shown) - FEATURES_BY_CHANCE
             if shown.get(name) != seen.get(name)}
    assert devinfo and suite and not wrong, f"docs/features.md is of another time, see tests/vm/features.py: {wrong}"
