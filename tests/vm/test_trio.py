# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
"""Three VMs: all pairs at the same time, and attacks of a hostile VM on the other two."""

import re

import pytest
from boots import Boot, step_tests
from steps import Step, guest_programs
from traffic import COMPLAINTS, PAIRWISE

pytestmark = pytest.mark.slow

PAIRWISE_EVENTS = Step("pairwise-events", PAIRWISE.script.replace(" -c ", " -c -e "))
VERIFY = Step("verify-pairwise", """
    talk 18600 1 2 $SHARE/pvr_verify --iterations 300 & one=$!
    talk 18601 2 3 $SHARE/pvr_verify --iterations 300 -e & two=$!
    talk 18602 3 1 $SHARE/pvr_verify --iterations 300 & three=$!
    all $one $two $three""", 120)

# Node 3 has no driver while it does so; its device must be of use to the next driver.
HOSTILE = Step("hostile", """
    if [ $NODE = 3 ]; then
        device=$(readlink -f /sys/class/infiniband/$RDMA_DEV/device)
        unload || exit
        raise storm
        for seed in 1 2 3; do
            $SHARE/bar_poke $device 4 $seed || exit
        done
        raise over
        load
    else
        await storm
        port=18515
        while :; do
            pingpong $((port += 1)) 1 2 -c -s 4096 -n 300 || exit
            echo "passed"
            [ $NODE = 1 ] || { raised over && raise last.$port; raise next.$port; }
            await next.$port
            ! raised last.$port || break
        done
    fi""", 120)
AFTER = Step("after-the-hostile-guest", PAIRWISE.script)

STEPS = [PAIRWISE, PAIRWISE_EVENTS, VERIFY, COMPLAINTS, HOSTILE, AFTER]
trio = Boot("trio", nodes=3).part(STEPS, files=guest_programs)
test_step, test_run_ended_well = step_tests(trio=STEPS)


def test_others_pass_while_one_is_hostile(trio):
    one, two, three = trio.check(HOSTILE)
    assert one.text.count("passed") >= 2, one.tail()
    assert two.text.count("passed") >= 2, two.tail()
    assert re.search(r"bar_poke: [1-9]\d{3,} writes, version register reads 20", three.text), three.tail()


def test_hostile_guest_does_not_fill_the_log(trio):
    trio.check(HOSTILE)
    lines = trio.result.log("pvrdmad.log").splitlines()
    assert any("suppressed" in line for line in lines) and len(lines) < 300, f"{len(lines)} lines in pvrdmad.log"
