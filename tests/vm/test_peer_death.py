# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
"""A VM is killed in the middle of a transfer: its peer gets errors, and a new VM takes its place."""

import pytest
from boots import DISTURB
from steps import Step, guest_programs, ids
from traffic import COMPLAINTS

pytestmark = pytest.mark.slow

KILL = Step("peer-dies-amid-writes", """
    if [ $NODE = 2 ]; then
        $SHARE/pvr_peerdeath & until_true 100 listening 18601 && raise up
        wait
        exit
    fi
    await up
    $SHARE/pvr_peerdeath node2 >/tmp/client 2>&1 & pid=$!
    until_true 300 grep -q streaming /tmp/client && labctl kill-node 2 && wait $pid
    status=$?
    cat /tmp/client
    exit $status""", 120)
REPLACE = Step("a-new-vm-takes-its-place", """
    [ $NODE = 1 ] || exit 0
    echo ${STEP%%.*}.rc_pingpong-with-the-new-vm >$SHARE/resume
    labctl start-node 2""")
PINGPONG = Step("rc_pingpong-with-the-new-vm", """
    echo "node$NODE, started again: $RESTARTED"
    pingpong 18515 1 2 -c -s 4096 -n 200 && pingpong 18516 2 1 -c -e -s 65536 -n 50""")
# The killed VM sends the data of a read; the completion of a send needs its receive requests.
READ_KILL = Step("peer-dies-amid-reads", """
    if [ $NODE = 2 ]; then
        ib_read_bw -F -d $RDMA_DEV -x $GID_INDEX -s 1048576 --run_infinitely -p 18515 & until_true 100 listening 18515 && raise up
        wait
        exit
    fi
    await up
    ib_read_bw -F -d $RDMA_DEV -x $GID_INDEX -s 1048576 --run_infinitely -p 18515 node2 >/tmp/client 2>&1 & pid=$!
    sleep 4
    kill -0 $pid && labctl kill-node 2
    if wait $pid; then status=1; else status=0; fi
    cat /tmp/client
    exit $status""", 90)
REPLACE_AGAIN = Step("another-new-vm", """
    [ $NODE = 1 ] || exit 0
    echo ${STEP%%.*}.rc_pingpong-with-another-new-vm >$SHARE/resume
    labctl start-node 2""")
PINGPONG_AGAIN = Step("rc_pingpong-with-another-new-vm", PINGPONG.script)

SURVIVED = [KILL, REPLACE, READ_KILL, REPLACE_AGAIN]
BOTH = [PINGPONG, PINGPONG_AGAIN, COMPLAINTS]
STEPS = [KILL, REPLACE, PINGPONG, READ_KILL, REPLACE_AGAIN, PINGPONG_AGAIN, COMPLAINTS]

death = DISTURB.part(STEPS, files=guest_programs)


@pytest.mark.parametrize("step", ids(SURVIVED))
def test_survivor(death, step):
    survivor = death[step][0]
    assert survivor.status == 0, death.explain(step)


def test_survivor_gets_retry_exceeded(death):
    survivor = death[KILL.name][0]
    assert "IBV_WC_RETRY_EXC_ERR" in survivor.text, death.explain(KILL.name)
    assert "the requests behind it are flushed" in survivor.text, death.explain(KILL.name)


@pytest.mark.parametrize("step", ids(BOTH))
def test_both(death, step):
    death.check(step)


def test_it_is_a_new_vm(death):
    for step in (PINGPONG, PINGPONG_AGAIN):
        assert "node2, started again: 1" in death.check(step.name)[1].text


def test_run_ended_well(death):
    death.check_end()
