# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
"""Each command of README.md works: it is run here, or starts these tests."""

import pathlib
import re
import tempfile

import pytest
from documents import Document, last_line_of_make
from vmlab_run import ROOT

README = Document("README.md")
MAC = "52:54:00:12:34:56"


def test_every_command_of_the_readme_is_tested():
    rest = README.commands() - README.qemu_options()
    rest -= {"make demo", README.starting_with("pvrdmad "), README.starting_with("pvrdmactl ")}
    rest -= {"make check"}  # this run
    rest -= {command for command in rest if command.startswith("apt install ./pvrdma")}  # tests/packages/install.sh
    assert not rest, f"nothing runs {rest}"


SCRIPT = """#!/bin/sh
set -ex
rmmod pvrdma
insmod "$SHARE/pvrdma.ko"
for i in $(seq 100); do grep -q 00ff:ff0a /sys/class/infiniband/*/ports/1/gids/* && break; sleep 0.1; done
ibv_devinfo
ibv_rc_pingpong -g "$GID_INDEX" -n 10 > /dev/null &
sleep 1
ibv_rc_pingpong -g "$GID_INDEX" -n 10 localhost
wait
"""


def test_a_vm_attached_as_the_readme_says_has_rdma(vmlab):
    with tempfile.TemporaryDirectory(prefix="pvr-") as name, \
            README.daemon(pathlib.Path(name)):
        folder = pathlib.Path(name)
        vmlab.put(ROOT / "build" / "module-6.1" / "pvrdma.ko")
        result = vmlab(SCRIPT, "--adapter-socket", f"{folder / 'vm1.sock'},{MAC}",
                       "--pvrdmad-control", folder / "control", nodes=1, timeout=120).check()
        paths = README.pvrdmactl(folder, "pvrdmactl ")
    assert "PORT_ACTIVE" in result.text(1)
    assert "vm1" in paths and "local" in paths
    README.check_qemu(result.log("node1.cmdline"))


@pytest.mark.slow
def test_make_demo_ends_with_the_path_that_was_used():
    last = last_line_of_make("demo")
    assert re.search(r"^demo: node\d <-> node\d .*path local", last), last
