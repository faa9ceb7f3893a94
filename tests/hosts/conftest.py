# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
"""Fixtures of the tests between hosts; they need no virtual machine."""

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))

from lab import Lab  # noqa: E402


@pytest.fixture
def start_lab(tmp_path):
    """A function that starts a Lab; its daemons must end well when the test is over."""
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


@pytest.fixture(params=["tcp", "tls"])
def pipe(request):
    return request.param


def pytest_configure(config):
    config.addinivalue_line("markers", "long: takes above a minute: make check-long runs it, make check does not")
