# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
"""Workers: their number, their CPUs and adapters, and that one does not affect another."""

import ctypes
import os
import re
import struct
from pathlib import Path

import pytest

from daemon_process import adapter_option, wait_until
from vfio_user import attach

HAVE = sorted(os.sched_getaffinity(0))
SYS_SCHED_GETATTR = 315  # x86_64
NODES = Path("/sys/devices/system/node")


def workers(daemon, field):
    return [worker[field] for worker in daemon.query("workers")["workers"]]


def threads(daemon):
    """Names of the daemon's threads, and the CPUs they may use."""
    folder = Path(f"/proc/{daemon.child.pid}/task")
    return {(task / "comm").read_text().strip(): os.sched_getaffinity(int(task.name)) for task in folder.iterdir()}


def slice_of(task):
    """Nanoseconds that the scheduler lets it run at least, or None."""
    attr = ctypes.create_string_buffer(48)
    assert ctypes.CDLL(None).syscall(SYS_SCHED_GETATTR, int(task), attr, len(attr), 0) == 0
    policy, = struct.unpack_from("I", attr, 4)
    runtime, = struct.unpack_from("Q", attr, 24)
    return runtime if policy == os.SCHED_OTHER else None


def placed(daemon):
    return {a["name"]: a["worker"] for a in daemon.query("adapters")["adapters"]}


def test_one_by_default(start_daemon):
    daemon = start_daemon(adapters=3)
    assert len(workers(daemon, "worker")) == 1
    assert set(placed(daemon).values()) == {0}
    assert set(threads(daemon)) == {"pvrdmad", "pvrdmad/0", "pvrdmad/log"}


def test_adapters_go_where_there_are_fewest(start_daemon):
    daemon = start_daemon(adapters=5, args=("--workers", "3"))
    assert placed(daemon) == {"node1": 0, "node2": 1, "node3": 2, "node4": 0, "node5": 1}
    assert workers(daemon, "adapters") == [2, 2, 1]
    daemon.must("remove-adapter", "node3")
    daemon.add_adapter("late", 9)
    assert placed(daemon)["late"] == 2


def test_setting_selects_the_worker_of_an_adapter(start_daemon):
    daemon = start_daemon(adapters=2, args=("--workers", "3"), settings=",worker=2")
    assert placed(daemon) == {"node1": 2, "node2": 2}
    daemon.add_adapter("late", 9, worker=1)
    assert placed(daemon)["late"] == 1


def test_tables_show_workers(start_daemon):
    daemon = start_daemon(adapters=2, args=("--workers", "2"))
    assert re.search(r"^node2 .* 1 +/", daemon.ctl("adapters").stdout, re.MULTILINE)
    heads, *rows = daemon.ctl("workers").stdout.splitlines()
    assert heads.split()[:6] == ["WORKER", "CPUS", "ADAPTERS", "CPU/MS", "MESSAGES", "BLOCKED"]
    assert [row.split()[:3] for row in rows] == [["0", "any", "1"], ["1", "any", "1"]]


def test_pinned_one_to_each_cpu(start_daemon):
    cpus = HAVE[:2]
    daemon = start_daemon(args=("--worker-cpus", ",".join(map(str, reversed(cpus)))))
    seen = threads(daemon)
    for worker, cpu in enumerate(reversed(cpus)):
        assert seen[f"pvrdmad/{worker}"] == {cpu}
    assert seen["pvrdmad"] == set(HAVE)
    assert workers(daemon, "cpus") == [str(cpu) for cpu in reversed(cpus)]


def test_fewer_workers_than_cpus(start_daemon):
    first, last = HAVE[0], HAVE[-1]
    listed = f"{first}-{last}" if HAVE == list(range(first, last + 1)) and first < last else str(first)
    daemon = start_daemon(args=("--workers", "1", "--worker-cpus", listed))
    assert threads(daemon)["pvrdmad/0"] == {first}


@pytest.mark.skipif(not (NODES / "node0/cpulist").exists(), reason="this kernel shows no NUMA node 0")
def test_on_a_numa_node(start_daemon):
    daemon = start_daemon(args=("--workers", "2", "--numa-node", "0"))
    seen = threads(daemon)
    assert seen["pvrdmad/0"] == seen["pvrdmad/1"]
    assert seen["pvrdmad/0"] <= set(HAVE)
    assert workers(daemon, "cpus") != ["any", "any"]


@pytest.mark.parametrize("args, pattern", [
    (["--workers", "0"], "workers '0' is not a number from 1 to 64, or auto"),
    (["--workers", "65"], "workers '65' is not a number from 1 to 64"),
    (["--workers", "-1"], "workers '-1' is not a number"),
    (["--workers", "2x"], "workers '2x' is not a number"),
    (["--worker-cpus", ""], "'' is not a CPU list: expected one such as 0-3,8"),
    (["--worker-cpus", "0-"], "'0-' is not a CPU list"),
    (["--worker-cpus", "3-1"], "'3-1' is not a CPU list"),
    (["--worker-cpus", "0,0"], "'0,0' is not a CPU list"),
    (["--worker-cpus", "0,"], "'0,' is not a CPU list"),
    (["--worker-cpus", "99999"], "'99999' is not a CPU list"),
    (["--numa-node", "one"], "numa-node 'one' is not a number from 0 to 1023"),
    (["--adapter", "name=n,worker=64"], "worker '64' is not a number from 0 to 63"),
    (["--adapter", "name=n,worker=first"], "worker 'first' is not a number from 0 to 63"),
])
def test_mistakes(refuse, args, pattern):
    refuse(2, pattern, *args)


@pytest.mark.parametrize("args, pattern", [
    (["--worker-cpus", f"{HAVE[0]},1000"], r"CPU 1000: pvrdmad can use [0-9,-]+ here"),
    (["--workers", "2", "--worker-cpus", HAVE[0]], rf"2 workers need as many CPUs, and worker-cpus {HAVE[0]} is 1"),
    (["--numa-node", "1023"], r"NUMA node 1023: this (machine has [0-9,-]+|kernel has no NUMA nodes)"),
], ids=["absent CPU", "too few CPUs", "absent NUMA node"])
def test_machine_lacks_what_is_set(refuse, args, pattern):
    refuse(1, pattern, *args)


def test_auto_has_a_worker_for_each_cpu(start_daemon):
    daemon = start_daemon(args=("--workers", "auto"))
    assert len(workers(daemon, "worker")) == min(len(HAVE), 64)


def test_auto_has_a_worker_for_each_listed_cpu(start_daemon):
    daemon = start_daemon(args=("--workers", "auto", "--worker-cpus", HAVE[0]))
    assert workers(daemon, "cpus") == [str(HAVE[0])]


def test_adapter_moves_with_its_client(start_daemon):
    daemon = start_daemon(adapters=2, args=("--workers", "2"))
    with attach(daemon.socket(1)) as client:
        for worker in (1, 0, 0, 1):
            daemon.must("move-adapter", "node1", str(worker))
            assert placed(daemon) == {"node1": worker, "node2": 1}
            assert client.read_reg(0)
    daemon.must("move-adapter", "node1", "0")
    with attach(daemon.socket(1)) as client:
        assert client.read_reg(0)


@pytest.mark.parametrize("worker, pattern", [
    ("2", "there is no worker 2: pvrdmad has 2, numbered from 0"),
    ("64", "worker '64' is not a number from 0 to 63"),
    ("first", "worker 'first' is not a number from 0 to 63"),
])
def test_move_to_a_worker_that_is_not_there(start_daemon, worker, pattern):
    daemon = start_daemon(adapters=1, args=("--workers", "2"))
    done = daemon.ctl("move-adapter", "node1", worker)
    assert done.returncode == 1 and pattern in done.stderr
    assert placed(daemon)["node1"] == 0


def test_worker_that_is_not_there(refuse, tmp_path):
    refuse(1, "adapter 'node1': worker 1: pvrdmad has 1, numbered from 0; see --workers", adapter_option(tmp_path, worker=1))


def test_adapters_come_and_go_under_clients_of_both_workers(start_daemon):
    daemon = start_daemon(adapters=2, args=("--workers", "2"))
    clients = [attach(daemon.socket(number)) for number in (1, 2)]
    for number in range(20):
        name = f"late{number}"
        with attach(daemon.add_adapter(name, 100)):
            daemon.must("remove-adapter", name)
        for client in clients:
            assert client.read_reg(0)
    for client in clients:
        client.close()
    wait_until(lambda: not any(a["attached"] for a in daemon.query("adapters")["adapters"]), "no QEMU is attached")


def test_workers_have_short_slices(start_daemon):
    """A worker that wakes up takes the core of a program with a longer slice at once."""
    if not slice_of(0):
        pytest.skip("this kernel has no slices that a thread chooses: it needs Linux 6.12")
    daemon = start_daemon(args=["--workers", "2"])
    slices = {(task / "comm").read_text().strip(): slice_of(task.name)
              for task in Path(f"/proc/{daemon.child.pid}/task").iterdir()}
    assert slices["pvrdmad/0"] == slices["pvrdmad/1"] == 100_000 < slice_of(0)
