# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
"""pvrdmad is upgraded under traffic of two VMs of stock QEMU, which check their data."""

import time

import pytest
from own_daemon import own_daemon
from steps import Step
from traffic import COMPLAINTS

UPGRADES = 5
pytestmark = [pytest.mark.slow, pytest.mark.long]

# -c checks the data. The rounds take longer than the upgrades.
TRAFFIC = Step("traffic", """
    [ $NODE = 1 ] || { sleep 0.5; raise now; } & flag=$!
    pingpong 18515 1 2 -c -s 4096 -n 40000 & polls=$!
    pingpong 18516 2 1 -c -e -s 4096 -n 40000 & waits=$!
    all $flag $polls $waits && await now.seen""", 400)
# Commands, interrupts and new queue pairs.
AFTER = Step("after", "ibv_devinfo -d $RDMA_DEV && pingpong 18517 1 2 -c -e -s 65536 -n 50")
STEPS = [TRAFFIC, AFTER, COMPLAINTS]


def upgrade(daemon):
    """Return: the messages between two upgrades, and the pauses in milliseconds."""
    messages, pauses = [], []
    for _ in range(UPGRADES):
        pauses.append(daemon.upgrade()["pause_us"] / 1000)
        time.sleep(0.3)
        messages.append(sum(row["messages"] for row in daemon.query("workers")["workers"]))
    return messages, pauses


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    def watchers(_, daemon):
        return {f"{TRAFFIC.name}.now": lambda _: upgrade(daemon)}

    with own_daemon(tmp_path_factory, "upgrade", STEPS, "uar=trapped", watchers) as run:
        yield run


@pytest.mark.parametrize("step", [step.name for step in STEPS])
def test_step(run, step):
    run.check(step)


def test_traffic_went_on_in_each_process(run):
    messages, pauses = run.seen[f"{TRAFFIC.name}.now"]
    print("pauses in ms:", pauses)
    assert len(messages) == UPGRADES and min(messages) > 10


def test_run_ended_well(run):
    """No QEMU has lost its device."""
    run.check_end()
