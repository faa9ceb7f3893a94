# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
"""Confinement of a running pvrdmad. tests/unit/test_confine.c has the system calls."""

import os
import re
import resource
from pathlib import Path

import pytest

from daemon_process import PVRDMAD


def statuses(daemon):
    """/proc/PID/task/*/status of each thread."""
    return [(task / "status").read_text() for task in Path(f"/proc/{daemon.child.pid}/task").iterdir()]


def values(daemon, field):
    return {int(re.search(rf"^{field}:\s*(\d+)", status, re.M)[1]) for status in statuses(daemon)}


def test_all_threads_are_confined(start_daemon):
    daemon = start_daemon(args=("--workers", "2"))
    assert len(statuses(daemon)) >= 3
    assert values(daemon, "NoNewPrivs") == {1}
    assert values(daemon, "Seccomp") == {2}
    assert resource.prlimit(daemon.child.pid, resource.RLIMIT_CORE) == (0, 0)


def test_threads_of_the_directory_are_confined(start, etcd):
    daemon = start(1, args=("--etcd", etcd.url, "--insecure"))
    assert values(daemon, "Seccomp") == {2}


@pytest.mark.parametrize("mode, seccomp", [("off", 0), ("log", 2)])
def test_operator_selects_the_mode(start_daemon, mode, seccomp):
    daemon = start_daemon(args=("--seccomp", mode))
    assert values(daemon, "Seccomp") == {seccomp}
    assert values(daemon, "NoNewPrivs") == {1}


def test_unknown_mode(refuse):
    refuse(2, "seccomp 'maybe' is none of on, log, off", "--seccomp", "maybe")


