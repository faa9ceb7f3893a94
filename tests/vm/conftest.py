# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
"""Fixtures for tests that boot VMs with scripts/vmlab."""

import pathlib
import sys

import pytest

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent

sys.dont_write_bytecode = True
sys.path[:0] = [str(ROOT / folder) for folder in ("tests/pylib", "scripts/bench", "scripts/lab")]

import boots  # noqa: E402
from vmlab_run import Vmlab  # noqa: E402


@pytest.fixture
def vmlab(tmp_path):
    return Vmlab(tmp_path)


@pytest.fixture(scope="module")
def run(request):
    """The fixture that the parameter names, see boots.each_run()."""
    return request.getfixturevalue(request.param)


def pytest_configure(config):
    config.addinivalue_line("markers", "slow: boots VMs and works in them for a minute or more; "
                                       "-m 'not slow' leaves it out")
    config.addinivalue_line("markers", "long: takes above two minutes: make check-long runs it, make check does not")


def pytest_collection_modifyitems(items):
    """Tests without a boot run first: boots.py starts the others' boots before them."""
    for item in items:
        if item.get_closest_marker("long"):
            item.add_marker("slow")
    items.sort(key=lambda item: item.module.__name__ in boots.modules())


@pytest.fixture(scope="session", autouse=True)
def boots_of_check(request, tmp_path_factory):
    boots.start_all(request.session, tmp_path_factory)
