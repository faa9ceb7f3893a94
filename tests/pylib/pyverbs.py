# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
"""rdma-core's own test-suite, as Debian's python3-pyverbs has it, in a VM; its report, and the known skips."""

import dataclasses
import fnmatch
import pathlib
import re

from steps import Step

PACKAGES = "python3-pyverbs"
LISTS = pathlib.Path(__file__).parent.parent / "vm"
RUNNER = LISTS / "guest_src" / "pyverbs_udmabuf.py"

STEP = Step("pyverbs", f"""
    echo 32 >/proc/sys/vm/nr_hugepages
    cp -r /usr/share/doc/rdma-core/tests /root/tests && gunzip -r /root/tests || exit
    cd /root && python3 $SHARE/{RUNNER.name} -v --dev "$RDMA_DEV" 2>&1
    true""", 600)


def files():
    """For the share of VMs that run STEP."""
    return [RUNNER]


@dataclasses.dataclass
class Report:
    """Test ids by outcome; skipped ones with the suite's reason."""

    ran: int
    passed: list
    failed: list
    skipped: dict
    text: str

    @property
    def tests(self):
        """All that have an outcome."""
        return [*self.passed, *self.failed, *self.skipped]


def parse(text):
    """The report of `run_tests.py -v`. A test's name and its outcome may be lines apart."""
    ran = re.search(r"^Ran (\d+) tests? in ", text, re.MULTILINE)
    report = Report(int(ran[1]) if ran else 0, [], [], {}, text)
    name = None
    for line in text.splitlines():
        begin = re.match(r"test_\w+ \((tests\.[\w.]+)\)", line)
        name = begin[1] if begin else name
        end = re.search(r"(?:^|\.\.\. )(ok|FAIL|ERROR|expected failure|unexpected success|skipped (['\"])(.*)\2)$", line)
        if name is None or not end:
            continue
        if end[1] == "ok":
            report.passed.append(name)
        elif end[3] is not None:
            report.skipped[name] = end[3]
        else:
            report.failed.append(name)
        name = None
    return report


def listed(*names):
    """Committed lists of tests: [(pattern of ids, why)]."""
    lines = [line for name in names for line in (LISTS / name).read_text().splitlines() if line and not line.startswith("#")]
    rows = [tuple(line.split(" | ")) for line in lines]
    assert all(len(row) == 2 and all(row) for row in rows), f"{names}: each line is a pattern of ids, ' | ' and why"
    assert len({pattern for pattern, _ in rows}) == len(rows), f"{names} have a pattern twice"
    return rows


def reasons(rows, tests):
    """{test: why} of those tests that a row matches, the first such row's."""
    matches = {test: [why for pattern, why in rows if fnmatch.fnmatchcase(test, pattern)] for test in tests}
    return {test: whys[0] for test, whys in matches.items() if whys}
