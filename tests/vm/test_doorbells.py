# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
"""Doorbells that are not rung (PVR_EXT_DB_SUPPRESS, PVR_EXT_CQ_ARM_DBREC), counted by the device; no event is lost for that."""

import re

import pytest
from boots import PAIR, each_step, step_tests
from steps import Step
from traffic import COMPLAINTS

pytestmark = pytest.mark.slow

SAVERS = 3 << 12  # the two extensions; `extensions` of the driver decides about its user programs, too

# count COMMAND...: doorbells and messages of this node during COMMAND
COUNT = """
    stat() { cat /sys/class/infiniband/$RDMA_DEV/ports/1/hw_counters/$1; }
    count() {
        sleep 0.1; local bells=$(stat doorbells) messages=$(stat tx_messages) # what is shown may be 10 ms old
        "$@" || return
        sleep 0.1; echo "doorbells $(($(stat doorbells) - bells)) messages $(($(stat tx_messages) - messages))"
    }
"""
# The counter; doorbells per message: at least without the extensions, at most with them. A queue that is never empty
# needs few doorbells, as large messages show. An empty queue needs a doorbell for each request, and it depends on the
# speed of guest and device how often it is empty. So the bound of the others is the certain saving: the doorbells of
# the receive queue.
TRAFFIC = {
    "write_bw-8": ("perftest 18515 1 2 ib_write_bw -s 8 -n 5000", 1, 1),
    "write_bw-65536": ("perftest 18515 1 2 ib_write_bw -s 65536 -n 2000", 1, 1),
    "write_bw-8388608": ("perftest 18515 1 2 ib_write_bw -s 8388608 -n 100", 1, 0.3),
    "read_bw-65536": ("perftest 18515 1 2 ib_read_bw -s 65536 -n 2000", 1, 1),
    "send_bw-8": ("perftest 18515 1 2 ib_send_bw -s 8 -n 5000", 1.9, 1.4),
    "send_bw-65536": ("perftest 18515 1 2 ib_send_bw -s 65536 -n 2000", 1.9, 1.4),
    "send_bw-events": ("perftest 18515 1 2 ib_send_bw -e -s 4096 -n 1000", 1.9, 1.4),
    "write_lat-8": ("perftest 18515 1 2 ib_write_lat -s 8 -n 1000", 1, 1),
    "send_lat-8": ("perftest 18515 1 2 ib_send_lat -s 8 -n 1000", 1.9, 1.1),
    "pingpong": ("pingpong 18515 1 2 -s 4096 -n 1000", 1.9, 1.1),
    "pingpong-events": ("pingpong 18515 1 2 -e -s 4096 -n 1000", 3, 3),
}


# A program posts hundreds of receive requests in turn, and rings for each until the device has seen the first. That takes long
# if the device has no CPU. So the lowest count of some rounds is that of the traffic.
SAVING = ("saving", "saving-2", "saving-3")

CHECKED = ("write_bw-8388608", "pingpong")
LONG = [name for name in TRAFFIC if name not in CHECKED]


def counted(names):
    """Steps: each first with the extensions, then each without them."""
    def steps(kind):
        return [Step(f"{name}-{kind}", f"{COUNT} count {TRAFFIC[name][0]}", 60) for name in names]
    return [*(step for kind in SAVING for step in steps(kind)), WITHOUT, *steps("ringing"), AGAIN]


WITHOUT = Step("without", f"unload && insmod $driver extensions=$((0xffffffff & ~{SAVERS:#x})) && until_true 100 has_gid")
AGAIN = Step("again", "unload && load")

# A lost event makes a step wait until its time is over.
EVENTS = [
    Step("events-rc_pingpong", "pingpong 18515 2 1 -e -s 1 -n 5000", 120),
    Step("events-ud_pingpong", "talk 18515 1 2 ibv_ud_pingpong -d $RDMA_DEV -g $GID_INDEX -s 64 -e -n 2000", 120),
    Step("events-two-at-once", """
        pingpong 18515 1 2 -e -s 1 -n 2000 & one=$!
        pingpong 18516 2 1 -e -s 4096 -n 2000 & two=$!
        all $one $two""", 120),
    Step("events-one-vm", "pingpong 18515 $NODE $NODE -e -s 64 -n 2000", 120),
    Step("events-while-polled", """
        pingpong 18515 1 2 -s 64 -n 2000 & one=$!
        pingpong 18516 2 1 -e -s 64 -n 2000 & two=$!
        all $one $two""", 120),
]
STEPS = [*counted(CHECKED), COMPLAINTS]
LONG_STEPS = [*EVENTS, *counted(LONG), COMPLAINTS]

bells = PAIR.part(STEPS)
bells_long = PAIR.part(LONG_STEPS, long=True)
test_step, test_run_ended_well = step_tests(bells=STEPS, bells_long=LONG_STEPS)


def a_message(run, name):
    """Doorbells of both nodes for each message that one of them sent."""
    found = [re.search(r"doorbells (\d+) messages (\d+)", outcome.text) for outcome in run.check(name)]
    bells, messages = (sum(int(match[n]) for match in found) for n in (1, 2))
    return bells / messages


@pytest.mark.parametrize("run, name", each_step(bells=CHECKED, bells_long=LONG), indirect=["run"])
def test_doorbells_a_message(run, name):
    _, least, most = TRAFFIC[name]
    assert a_message(run, f"{name}-ringing") >= least
    # The doorbells of the connection and the last few do not belong to the traffic.
    assert min(a_message(run, f"{name}-{kind}") for kind in SAVING) <= most + 0.05
