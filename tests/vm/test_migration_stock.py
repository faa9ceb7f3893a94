# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
"""A VM whose QEMU would migrate it without its device finds no destination."""

import contextlib
import pathlib
import random
import tempfile

import pytest
from daemon_process import Daemon, wait_until
from migratable import starter, write_archive
from steps import path_from

pytestmark = [pytest.mark.slow, pytest.mark.long]

# The driver is loaded, and its GIDs are bound.
WAIT = """
echo "the driver works"
sleep 600
"""


@pytest.fixture
def lab():
    """vm(name, host) and two connected daemons with the adapter of the VM."""
    with tempfile.TemporaryDirectory(prefix="pvr-") as name, contextlib.ExitStack() as stack:
        network = f"127.{random.randrange(1, 255)}.{random.randrange(256)}"
        folder, program = pathlib.Path(name), path_from("build/qemu")
        archive = write_archive(folder / "initramfs", WAIT)
        daemons = []
        for number in (1, 2):
            (folder / f"host{number}").mkdir()
            daemons.append(Daemon(folder / f"host{number}", adapters=0,
                                  args=["--name", f"h{number}", "--listen", f"{network}.{number}",
                                        "--peer", f"h{3 - number}={network}.{3 - number}"]))
            stack.callback(daemons[-1].stop)
            daemons[-1].add_adapter("node1", 1, socket=daemons[-1].socket(1))
        for daemon in daemons:
            wait_until(lambda one=daemon: one.query("peers")["peers"][0]["state"] == "up", "the hosts are connected")
        yield starter(stack, folder, daemons, program, archive)


def test_stock_qemu_finds_no_destination(lab):
    vm = lab("vm", 1, stock=True)
    vm.wait_for("the driver works", 240)
    for stock in (True, False):
        with pytest.raises(ChildProcessError, match="Device or resource busy"):
            lab("destination", 2, stock=stock, incoming=f"unix:{lab.folder}/incoming")
    lab.daemons[1].wait_for_log("is refused: a VM of host h1 uses this adapter, and its QEMU cannot migrate it")
    vm.end()
    lab("destination", 2, stock=True, incoming=f"unix:{lab.folder}/incoming")


def test_qemu_that_migrates_the_device_has_a_destination(lab):
    vm = lab("vm", 1)
    vm.wait_for("the driver works", 240)
    uri = f"unix:{lab.folder}/incoming"
    target = lab("destination", 2, incoming=uri)
    assert vm.migrate(uri)["status"] == "completed", (vm.errors.read_text(), target.errors.read_text())
    target.wait_until_it_runs()
    lab.daemons[0].wait_for_log("moved to host h2")
