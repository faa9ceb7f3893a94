# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
"""Fixtures of the tests between hosts; they need no virtual machine."""

import sys
from pathlib import Path

import pytest

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent / "pylib")]

from lab import Lab  # noqa: E402


def pytest_configure(config):
    config.addinivalue_line("markers", "long: takes many seconds: make check-long runs it, make check does not")


@pytest.fixture
def start_lab(tmp_path):
    """A function that starts a Lab; each of its daemons must end with status 0."""
    labs = []

    def make(start=True, **kwargs):
        folder = tmp_path / f"lab{len(labs)}"
        folder.mkdir()
        labs.append(Lab(folder, **kwargs))
        if start:
            labs[-1].start()
        return labs[-1]

    yield make
    for lab in labs:
        lab.close()
