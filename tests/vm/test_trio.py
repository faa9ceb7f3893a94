# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
"""Three VMs of two hosts, and of one: all pairs at the same time, and attacks of a hostile VM on the other two."""

import re

import pytest
from boots import TRIO, Boot, each_run, step_tests
from steps import Step, guest_programs
from traffic import COMPLAINTS, PAIRWISE

pytestmark = pytest.mark.slow

PAIRWISE_EVENTS = Step("pairwise-events", PAIRWISE.script.replace(" -c ", " -c -e "))
VERIFY, VERIFY_LONG = (Step("verify-pairwise", f"""
    talk 18600 1 2 $SHARE/pvr_verify --iterations {iterations} & one=$!
    talk 18601 2 3 $SHARE/pvr_verify --iterations {iterations} -e & two=$!
    talk 18602 3 1 $SHARE/pvr_verify --iterations {iterations} & three=$!
    all $one $two $three""", 120) for iterations in (100, 300))

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
AFTER, AFTER_LONG = (Step("after-the-hostile-guest", step.script) for step in (PAIRWISE_EVENTS, PAIRWISE))

# Programs that poll take long where three of them have two CPUs.
STEPS = [VERIFY, COMPLAINTS, HOSTILE, AFTER]
LONG = [PAIRWISE, PAIRWISE_EVENTS, VERIFY_LONG, COMPLAINTS, HOSTILE, AFTER_LONG]
trio = TRIO.part(STEPS, files=guest_programs)
one_host_long = Boot("trio-one-host", nodes=3).part(LONG, files=guest_programs, long=True)
test_step, test_run_ended_well = step_tests(trio=STEPS, one_host_long=LONG)
EACH_RUN = pytest.mark.parametrize("run", each_run("trio", "one_host_long"), indirect=True)


@EACH_RUN
def test_others_pass_while_one_is_hostile(run):
    one, two, three = run.check(HOSTILE)
    assert one.text.count("passed") >= 2, one.tail()
    assert two.text.count("passed") >= 2, two.tail()
    assert re.search(r"bar_poke: [1-9]\d{3,} writes, version register reads 20", three.text), three.tail()


@EACH_RUN
def test_hostile_guest_does_not_fill_the_log(run):
    run.check(HOSTILE)
    name = "pvrdmad1.log" if "hosts" in run.options else "pvrdmad.log"
    lines = run.result.log(name).splitlines()
    assert any("suppressed" in line for line in lines) and len(lines) < 300, f"{len(lines)} lines in {name}"
