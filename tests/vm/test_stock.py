# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
"""The same programs with the kernel's own driver, vmw_pvrdma, and Debian's provider: our device is theirs."""

import pathlib

import pytest
from conftest import ROOT
from steps import Step, ids, run_steps
from test_pair import COMPLAINTS, DEVINFO, PERFTESTS, PINGPONGS

pytestmark = pytest.mark.slow

OUR_PROVIDER = Step("our-provider", """
    install -m 644 $SHARE/libpvrdma-rdmav34.so $ibverbs/
    provider pvrdma
    pingpong 18515 1 2 -c -s 4096 -n 200 && pingpong 18516 2 1 -c -e -s 65536 -n 100
    status=$?; provider vmw_pvrdma; exit $status""")

PROBE = Step("probe", "lsmod; ls $ibverbs /etc/libibverbs.d")
STEPS = [PROBE, DEVINFO, *PINGPONGS, *PERFTESTS, OUR_PROVIDER, COMPLAINTS]


@pytest.fixture(scope="module")
def stock(tmp_path_factory):
    library = pathlib.Path(ROOT / "build" / "provider" / "libpvrdma-rdmav34.so")
    return run_steps(tmp_path_factory.mktemp("stock"), STEPS, driver="vmw_pvrdma", files=[library])


@pytest.mark.parametrize("step", ids(STEPS[1:]))
def test_stock(stock, step):
    stock.check(step)


def test_driver_and_provider_are_not_ours(stock):
    for outcome in stock.check("probe"):
        assert "vmw_pvrdma" in outcome.text, outcome.tail()
        assert "libpvrdma" not in outcome.text, outcome.tail()


def test_run_ended_well(stock):
    stock.check_end()
