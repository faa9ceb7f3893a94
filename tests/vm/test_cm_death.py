# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
"""Connections through rdma_cm whose peer VM is killed: a receiver that waits gets an error without sending."""

import re

import pytest
from boots import DISTURB
from steps import Step, guest_programs, ids
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
REPLACE = Step("new-vm", """
    [ $NODE = 2 ] || exit 0
    echo ${STEP%%.*}.again >$SHARE/resume
    labctl start-node 1""")
AGAIN = Step("again", """
    server_command=(rping -s -V -C 20)
    client_command=(rping -c -a node1 -V -C 20)
    meet 7174 1 2""")
QP_GONE = Step("nothing-left", """
    until_true 100 sh -c 'rdma resource | grep -q "pd 1 cq 1 qp 1 cm_id 0 mr 0 ctx 0"'
    status=$?
    rdma resource
    exit $status""")
BOTH = [AGAIN, QP_GONE, COMPLAINTS]

death = DISTURB.part([DEATH, REPLACE, *BOTH], files=guest_programs)


@pytest.mark.parametrize("step", ids([DEATH, REPLACE]))
def test_survivor(death, step):
    assert death[step][1].status == 0, death.explain(step)


@pytest.mark.parametrize("step", ids(BOTH))
def test_both(death, step):
    death.check(step)


@pytest.mark.parametrize("kind", ["idle", "busy"])
def test_survivor_is_told_at_once(death, kind):
    text = death[DEATH.name][1].text
    told = re.search(rf"^{kind}: (\d+) ms$", text, re.MULTILINE)
    assert told and int(told[1]) < SOON_MS, text


def test_receive_fails(death):
    """A receive request completes with an error, and the queue pair reports the disconnect."""
    text = death[DEATH.name][1].text
    assert "watch: completion, general error" in text, text
    assert "watch: async event, local work queue catastrophic error" in text, text


def test_run_ended_well(death):
    death.check_end()
