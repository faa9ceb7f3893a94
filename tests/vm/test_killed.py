# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
"""Processes killed in the middle of verbs, 1,000 times: guest and daemon keep no object, and no memory.

The kernel is a newer one, whose /dev/udmabuf makes dma-bufs.
"""

import re

import pytest
from boots import Boot, step_tests
from pvrdmactl import OBJECTS, noted, objects, stats_at_now
from steps import Step, guest_programs
from traffic import COMPLAINTS

pytestmark = [pytest.mark.slow, pytest.mark.long]

ROUNDS = 1000
# Memory of the kernel's caches that a leak of an object per round would exceed: the smallest object has 64 bytes, and
# each round makes some dozens of them.
GROWTH_KIB = 1024

# Each process creates and destroys objects of each kind until it is killed, after 20 to 119 ms.
KILL = """
    resources() { rdma resource show $RDMA_DEV | sed "s/^[0-9]*: //"; }
    before=$(resources)
    same() { [ "$(resources)" = "$before" ]; }
    rounds()
    {
        local round pid
        for round in $(seq $1); do
            $SHARE/pvr_faults forever & pid=$!
            sleep 0.$(printf %03d $((20 + RANDOM % 100)))
            kill -0 $pid || return
            kill -KILL $pid; wait $pid
        done 2>/dev/null
        until_true 100 same || { echo "before: $before; after: $(resources)"; return 1; }
        echo 3 >/proc/sys/vm/drop_caches
        sleep 1
        awk '/^SUnreclaim|^Percpu|^VmallocUsed/ { print }' /proc/meminfo
    }
"""
# The first rounds fill caches.
FIRST = Step("first-rounds", KILL + "rounds 100", 120)
BEFORE, AFTER = noted("noted-before"), noted("noted-after")
ALL = Step("all-rounds", KILL + f"rounds {ROUNDS}", 600)
WORKS = Step("rc_pingpong", "pingpong 18515 1 1 -c -s 4096 -n 100")
STEPS = [FIRST, BEFORE, ALL, AFTER, WORKS, COMPLAINTS]

killed_long = Boot("killed", nodes=1, kernel="7.2").part(STEPS, stats_at_now(BEFORE, AFTER), files=guest_programs, long=True)
test_step, test_run_ended_well = step_tests(killed_long=STEPS)


def memory(run, step):
    text = run.check(step)[0].text
    return {name: int(kib) for name, kib in re.findall(r"(\w+): +(\d+) kB", text)}


@pytest.mark.parametrize("what", ["SUnreclaim", "Percpu", "VmallocUsed"])
def test_kernel_memory_is_flat(killed_long, what):
    before, after = (memory(killed_long, step)[what] for step in (FIRST, ALL))
    assert after - before < GROWTH_KIB, f"{before} KiB after 100 rounds, {after} KiB after {ROUNDS} more"


@pytest.mark.parametrize("what", OBJECTS)
def test_daemon_has_the_same_objects(killed_long, what):
    assert objects(killed_long, AFTER, what) == objects(killed_long, BEFORE, what)
