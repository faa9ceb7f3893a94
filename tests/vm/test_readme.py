# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
"""Each command of README.md works: it is run here, or starts these tests."""

import contextlib
import os
import pathlib
import re
import shlex
import subprocess
import tempfile

import pytest
from vmlab_lib.process import wait_for
from vmlab_run import ROOT

README = (ROOT / "README.md").read_text()
BIN = ROOT / "build" / "host"
MAC = "52:54:00:12:34:56"


def commands():
    """The indented lines of the README, outside fences: {"make demo", ...}."""
    text = re.sub(r"^```.*?^```$", "", README, flags=re.M | re.S)
    return {line.strip() for line in re.findall(r"^ {4,}(\S.*)$", text, flags=re.M)}


def starting_with(word):
    found = [command for command in commands() if command.startswith(word)]
    assert len(found) == 1, f"expected one command {word}... in README.md, found {found}"
    return found[0]


def qemu_options():
    return {command for command in commands() if command.startswith("-")}


def alike(option):
    """An option without what differs from VM to VM: names, sizes, paths, the order and quotes of JSON."""
    option = re.sub(r"[{}\"' ]", "", option).replace("driver:", "").replace(":", "=")
    parts = {part.split("=")[0] if re.match(r"netdev|mac|size|path|socket", part) else part
             for part in option.split(",")}
    return frozenset(parts)


def test_every_command_of_the_readme_is_tested():
    rest = commands() - qemu_options()
    rest -= {"make demo", starting_with("pvrdmad "), starting_with("pvrdmactl ")}
    rest -= {"make check"}  # this run
    rest -= {command for command in rest if command.startswith("apt install ./pvrdma")}  # tests/packages/install.sh
    assert not rest, f"nothing runs {rest}"


@contextlib.contextmanager
def daemon_of_the_readme(folder):
    """Run as the README says, but for where its sockets are."""
    words = shlex.split(starting_with("pvrdmad ").replace("/run/pvrdma", str(folder)))
    with open(folder / "log", "w") as log:
        child = subprocess.Popen([BIN / words[0], "--control", folder / "control", *words[1:]],
                                 stdin=subprocess.DEVNULL, stdout=log, stderr=log)
    try:
        wait_for((folder / "vm1.sock").exists, 10)
        wait_for((folder / "control").exists, 10)
        yield
    finally:
        child.terminate()
        child.wait(timeout=20)


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
            daemon_of_the_readme(pathlib.Path(name)):
        folder = pathlib.Path(name)
        vmlab.put(ROOT / "build" / "module-6.1" / "pvrdma.ko")
        result = vmlab(SCRIPT, "--adapter-socket", f"{folder / 'vm1.sock'},{MAC}",
                       "--pvrdmad-control", folder / "control", nodes=1, timeout=120).check()
        paths = subprocess.run([BIN / "pvrdmactl", "--control", folder / "control",
                                *starting_with("pvrdmactl ").split()[1:]],
                               check=True, capture_output=True, text=True).stdout
    assert "PORT_ACTIVE" in result.text(1)
    assert "vm1" in paths and "local" in paths

    line = result.log("node1.cmdline").splitlines()
    used = {alike(f"{option}, {value}") for option, value in zip(line, line[1:])}
    for option in qemu_options():
        word, value = option.split(" ", 1)
        want = alike(f"{word}, {value}")
        assert any(want <= have for have in used), f"{option} is not how the VM was started"


@pytest.mark.slow
def test_make_demo_ends_with_the_path_that_was_used():
    # As in a user's shell: under another make, this make would print folders.
    env = {name: value for name, value in os.environ.items() if not name.startswith("MAKE")}
    run = subprocess.run(["make", "demo"], cwd=ROOT, env=env, capture_output=True, text=True, timeout=600,
                         stdin=subprocess.DEVNULL, check=False)
    assert run.returncode == 0, run.stdout[-3000:] + run.stderr[-3000:]
    assert re.search(r"^demo: node\d <-> node\d .*path local", run.stdout.splitlines()[-1]), run.stdout[-500:]
