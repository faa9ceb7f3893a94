# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
"""Connections through rdma_cm whose peer VM is killed: a receiver that waits gets an error without sending."""

import re

import pytest
from boots import PAIR, step_tests
from disturbances import new_vm
from pvrdmactl import nothing_left
from steps import Step, guest_programs, name_of
from traffic import COMPLAINTS

pytestmark = pytest.mark.slow

# Far less than the CM's retries take: 8 of 2 s each.
SOON_MS = 5000

DEATH = Step("vm-dies", """
    if [ $NODE = 1 ]; then
        $SHARE/pvr_cm -s &
        rping -s -V -p 7174 &
        until_true 100 listening 18700 && until_true 100 listening 7174 && raise up
        sleep 1000
    fi
    await up
    $SHARE/pvr_cm -w node1 >/tmp/idle 2>&1 & idle=$!
    rping -c -a node1 -v >/tmp/busy 2>&1 & busy=$!
    until_true 100 grep -q connected /tmp/idle && until_true 100 grep -q ping /tmp/busy || exit
    labctl kill-node 1
    begin=$(date +%s%N)
    wait $idle && echo "idle: $((($(date +%s%N) - begin) / 1000000)) ms"
    status=$?
    wait $busy
    echo "busy: $((($(date +%s%N) - begin) / 1000000)) ms"
    cat /tmp/idle
    tail -n 5 /tmp/busy
    exit $status""", 170)
REPLACE = new_vm("new-vm", 1, then="again")
BOTH = [Step("again", "talk 7174 1 2 rping_end"),
        nothing_left("nothing-left", idle="pd 1 cq 1 qp 1 cm_id 0 mr 0 ctx 0", query=""), COMPLAINTS]

death = PAIR.part([DEATH, REPLACE, *BOTH], files=guest_programs)
test_step, test_run_ended_well = step_tests(death=BOTH)


@pytest.mark.parametrize("step", [DEATH, REPLACE], ids=name_of)
def test_survivor(death, step):
    death.check(step, nodes=[2])


@pytest.mark.parametrize("kind", ["idle", "busy"])
def test_survivor_gets_errors_at_once(death, kind):
    text = death[DEATH][1].text
    took = re.search(rf"^{kind}: (\d+) ms$", text, re.MULTILINE)
    assert took and int(took[1]) < SOON_MS, text


def test_receive_fails(death):
    """A receive request completes with an error, and the queue pair reports the disconnect."""
    text = death[DEATH][1].text
    assert "watch: completion, general error" in text, text
    assert "watch: async event, local work queue catastrophic error" in text, text
