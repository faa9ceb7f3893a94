# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
"""A VM with -device pvrdma moves between two daemons, and into a file and back, while its queue pairs work."""

import contextlib
import pathlib
import tempfile

import pytest
from daemon_process import Daemon, wait_until
from migratable import starter, write_archive
from steps import path_from

pytestmark = [pytest.mark.slow, pytest.mark.long]

# Each round checks each byte of operations of all kinds between queue pairs of this adapter.
ROUNDS = """
for round in $(seq 1000); do
    pvr_verify --both-ends-here --seed $round >/tmp/out 2>&1 || { cat /tmp/out; echo "round $round: failed"; exit 1; }
    echo "round $round: right"
done
"""


@pytest.fixture(scope="module")
def program():
    return path_from("build/qemu")


@pytest.fixture
def lab(program):
    """vm(name, host) and a daemon for each of two hosts, in a folder with a short path."""
    with tempfile.TemporaryDirectory(prefix="pvr-") as name, contextlib.ExitStack() as stack:
        folder = pathlib.Path(name)
        archive = write_archive(folder / "initramfs", ROUNDS)
        daemons = []
        for number in (1, 2):
            (folder / f"host{number}").mkdir()
            daemons.append(Daemon(folder / f"host{number}", adapters=1))
            stack.callback(daemons[-1].stop)
        yield starter(stack, folder, daemons, program, archive)


def working(vm, since=0):
    """Wait for a round that ended after the number `since`. Return: its number."""
    numbers = vm.wait_for(rf"round ({since + 1}): right", 240)
    return int(numbers[1])


def last_round(vm):
    lines = [line for line in vm.text().splitlines() if line.startswith("round ")]
    assert not any("failed" in line for line in lines), vm.text()[-3000:]
    return int(lines[-1].split()[1].rstrip(":")) if lines else 0


def test_running_vm_moves_there_and_back(lab):
    vm, host = lab("vm0", 1), 1
    working(vm)
    for number in range(1, 5):
        host = 3 - host
        uri = f"unix:{lab.folder}/incoming{number}"
        target = lab(f"vm{number}", host, incoming=uri)
        before = last_round(vm)
        state = vm.migrate(uri)
        assert state["status"] == "completed", (state, vm.errors.read_text(), target.errors.read_text(), lab.daemons[host - 1].log())
        target.wait_until_it_runs()
        print(f"move {number}: downtime {state['downtime']} ms, total {state['total-time']} ms")
        vm.end()
        # The round in progress ends there, and so do the next ones.
        target.wait_for(rf"round {before + 3}: ", 240)
        last_round(target)
        vm = target


def test_vm_is_restored_from_a_file(lab):
    vm = lab("vm", 1)
    working(vm)
    vm.qmp.execute("stop")
    state = vm.migrate(f"file:{lab.folder}/state")
    assert state["status"] == "completed", (state, vm.errors.read_text())
    before = last_round(vm)
    vm.end()
    restored = lab("restored", 2, incoming=f"file:{lab.folder}/state")
    wait_until(lambda: restored.qmp.execute("query-status")["status"] == "paused", "a VM as paused as the saved one")
    restored.qmp.execute("cont")
    restored.wait_for(rf"round {before + 3}: ", 240)
    last_round(restored)
