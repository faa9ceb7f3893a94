# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
"""Each command of docs/native-endpoints.md works."""

import pathlib
import re
import tempfile

import pytest
from documents import Document, last_line_of_make
from vmlab_run import ROOT

pytestmark = pytest.mark.slow

DOCUMENT = Document("docs/native-endpoints.md")
# What the program counts differs from run to run.
LAST_LINE = DOCUMENT.starting_with("demo-roce: ")


@pytest.fixture(scope="module")
def demo():
    return last_line_of_make("demo-roce")


@pytest.mark.long
def test_demo_ends_as_documented(demo):
    assert re.sub(r"\d+ messages", "N messages", demo) == re.sub(r"\d+ messages", "N messages", LAST_LINE)


@pytest.mark.long
def test_demo_counts_all_messages(demo):
    """Per direction: 100 round trips of two sizes, and the five requests of each round of rping."""
    assert int(re.search(r"(\d+) messages", demo)[1]) >= 2 * (2 * 2 * 100 + 5 * 100)


@pytest.mark.long
@pytest.mark.usefixtures("demo")
def test_options_of_qemu_are_those_of_the_demo():
    DOCUMENT.check_qemu((ROOT / "build" / "demo-roce" / "node1.cmdline").read_text())


def test_pvrdmad_and_pvrdmactl_run_as_documented():
    with tempfile.TemporaryDirectory(prefix="pvr-") as name, DOCUMENT.daemon(pathlib.Path(name)):
        folder = pathlib.Path(name)
        assert (folder / "vm1.eth").is_socket()
        assert "no adapter has talked" in DOCUMENT.pvrdmactl(folder, "pvrdmactl paths")
        assert re.search(r"wire_tx_frames +0$", DOCUMENT.pvrdmactl(folder, "pvrdmactl stats"), re.MULTILINE)


def test_no_other_command_is_in_the_document():
    tested = {"make demo-roce", LAST_LINE, *map(DOCUMENT.starting_with, ("pvrdmad ", "pvrdmactl paths", "pvrdmactl stats"))}
    tested.add(DOCUMENT.starting_with("pvrdmactl add-adapter name=vm2"))  # tests/hosts/test_segment.py
    # tests/hosts/test_bridge.py, tests/daemon/test_libvirt_hook.py, tests/packages
    tested |= {DOCUMENT.starting_with(begin) for begin in (
        "systemctl edit", "pvrdmactl add-adapter name=vm3", "pvrdmactl add-adapter name=vm4", "pvrdmactl domain-xml",
        "ip tuntap add", "ip link set pvr1", "bridge link set", "tc qdisc",
        *(f"tc filter add dev vnet1 egress pref {pref}" for pref in range(1, 5)))}
    assert DOCUMENT.commands() - DOCUMENT.qemu_options() == tested
