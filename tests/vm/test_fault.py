# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
"""Programs in VMs while the operator makes messages fail, with pvrdmactl fault: they see what docs/faults.md has."""

import re

import pytest
from daemon_process import Daemon
from steps import Step, run_steps

pytestmark = [pytest.mark.slow, pytest.mark.long]

NODES = (1, 2)
# The watcher of the flag "now" changes the faults.
NOW = "[ $NODE != 1 ] || raise now\nawait now.seen || exit\n"
# The client, on node 2, must fail. Its output has the status, as a number of enum ibv_wc_status.
FAILS = NOW + """
    perftest 18515 1 2 {program} -s 4096 -n 2000
    status=$?
    [ $NODE = 1 ] || [ $status != 0 ]"""


def works(name):
    return Step(name, NOW + "pingpong 18515 1 2 -c -s 4096 -n 200 && perftest 18516 1 2 ib_write_bw -s 4096 -n 1000")


def fails(name, program="ib_write_bw"):
    return Step(name, FAILS.format(program=program))


# Step, arguments of pvrdmactl fault add, and the status with which the client fails.
CASES = [
    (works("drop-and-delay"), ["drop=0.5%", "delay=200us+-100us"], None),
    (works("rnr-and-rate"), ["rnr=every:20", "rate=1Gbit"], None),
    (fails("drop-all"), ["--from", "node2", "drop=100%"], 12),
    (fails("rem-access-err"), ["--from", "node2", "error=REM_ACCESS_ERR,after=100"], 10),
    (fails("rem-inv-req-err"), ["--from", "node2", "error=REM_INV_REQ_ERR,after=100"], 9),
    (fails("loc-prot-err"), ["--from", "node2", "--to", "node1", "error=LOC_PROT_ERR,after=100"], 4),
    (works("cleared"), None, None),
]
STEPS = [step for step, _, _ in CASES]


class FaultyDaemon(Daemon):
    """With the MACs of vmlab's NICs."""

    def __init__(self, folder):
        self.folder, self.control, self.log_path = folder, folder / "control", folder / "pvrdmad.log"
        adapters = [f"--adapter=name=node{node},socket={self.socket(node)},mac=52:54:00:77:00:{node:02x}" for node in NODES]
        self.start([*adapters, "--faults", "allowed"])

    def change(self, words):
        """A watcher for run_steps: instead of the faults before."""
        def run(_):
            self.must("fault", "clear")
            return self.must("fault", "add", *words) if words else ""
        return run


@pytest.fixture(scope="module")
def faulty(tmp_path_factory):
    folder = tmp_path_factory.mktemp("fault")
    (folder / "run").mkdir()
    daemon = FaultyDaemon(folder)
    watch = {f"{step.name}.now": daemon.change(words) for step, words, _ in CASES}
    try:
        yield run_steps(folder / "run", STEPS, watch, pvrdmad_control=daemon.control,
                        adapter_socket=[daemon.socket(node) for node in NODES])
    finally:
        daemon.stop()


@pytest.mark.parametrize("step", [step.name for step in STEPS])
def test_step(faulty, step):
    faulty.check(step)


@pytest.mark.parametrize("step, status", [(step.name, status) for step, _, status in CASES if status])
def test_program_reports_the_status(faulty, step, status):
    assert re.search(rf"Failed status {status}\b", faulty[step][1].text), faulty.explain(step)


def test_run_ended_well(faulty):
    faulty.check_end()
