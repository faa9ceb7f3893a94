# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
"""Doorbells that are not rung (PVR_EXT_DB_SUPPRESS, PVR_EXT_CQ_ARM_DBREC), counted by the device; no event is lost for that."""

import re

import pytest
from boots import PAIR, each_step
from steps import Step
from traffic import COMPLAINTS

pytestmark = pytest.mark.slow

SAVERS = 3 << 12  # the two extensions; `extensions` of the driver decides about its user programs, too

# count COMMAND...: doorbells and messages of this node meanwhile
COUNT = """
    stat() { cat /sys/class/infiniband/$RDMA_DEV/ports/1/hw_counters/$1; }
    count() {
        sleep 0.1; local bells=$(stat doorbells) messages=$(stat tx_messages) # what is shown may be 10 ms old
        "$@" || return
        sleep 0.1; echo "doorbells $(($(stat doorbells) - bells)) messages $(($(stat tx_messages) - messages))"
    }
"""
# What is counted; how many doorbells a message costs without the extensions at least, and with them at most. A queue
# that has always something to do is rung for once in a while, as large messages show. One that runs dry is rung for
# each request, and when it does is up to the guest's speed and the device's: so for the others the bound is what is
# saved in any case, the receive queue's doorbells.
TRAFFIC = {
    "write_bw-8": ("perftest 18515 1 2 ib_write_bw -s 8 -n 5000", 1, 1),
    "write_bw-65536": ("perftest 18515 1 2 ib_write_bw -s 65536 -n 2000", 1, 1),
    "write_bw-1048576": ("perftest 18515 1 2 ib_write_bw -s 1048576 -n 500", 1, 0.3),
    "read_bw-65536": ("perftest 18515 1 2 ib_read_bw -s 65536 -n 2000", 1, 1),
    "send_bw-8": ("perftest 18515 1 2 ib_send_bw -s 8 -n 5000", 1.9, 1.4),
    "send_bw-65536": ("perftest 18515 1 2 ib_send_bw -s 65536 -n 2000", 1.9, 1.4),
    "send_bw-events": ("perftest 18515 1 2 ib_send_bw -e -s 4096 -n 1000", 1.9, 1.4),
    "write_lat-8": ("perftest 18515 1 2 ib_write_lat -s 8 -n 1000", 1, 1),
    "send_lat-8": ("perftest 18515 1 2 ib_send_lat -s 8 -n 1000", 1.9, 1.1),
    "pingpong": ("pingpong 18515 1 2 -s 4096 -n 1000", 1.9, 1.1),
    "pingpong-events": ("pingpong 18515 1 2 -e -s 4096 -n 1000", 3, 3),
}


CHECKED = ("write_bw-1048576", "send_bw-65536", "pingpong")
LONG = [name for name in TRAFFIC if name not in CHECKED]


def counted(names):
    """Steps: each first with the extensions, then each without them."""
    def steps(kind):
        return [Step(f"{name}-{kind}", f"{COUNT} count {TRAFFIC[name][0]}", 60) for name in names]
    return [*steps("saving"), WITHOUT, *steps("ringing"), AGAIN]


WITHOUT = Step("without", f"unload && insmod $driver extensions=$((0xffffffff & ~{SAVERS:#x})) && until_true 100 has_gid")
AGAIN = Step("again", "unload && load")

# An event that is lost is one that is waited for, until the step's time is over.
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


def a_message(run, name):
    """Doorbells of both nodes for each message that one of them sent."""
    found = [re.search(r"doorbells (\d+) messages (\d+)", outcome.text) for outcome in run.check(name)]
    bells, messages = (sum(int(match[n]) for match in found) for n in (1, 2))
    return bells / messages


@pytest.mark.parametrize("run, step", each_step(bells=STEPS, bells_long=LONG_STEPS), indirect=["run"])
def test_step(run, step):
    run.check(step)


@pytest.mark.parametrize("run, name", each_step(bells=CHECKED, bells_long=LONG), indirect=["run"])
def test_doorbells_a_message(run, name):
    _, least, most = TRAFFIC[name]
    assert a_message(run, f"{name}-ringing") >= least
    # The connection's and the last few are no traffic's.
    assert a_message(run, f"{name}-saving") <= most + 0.05
