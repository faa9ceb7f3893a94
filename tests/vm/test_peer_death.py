# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
"""A VM is killed in the middle of a transfer: its peer gets errors, and a new VM takes its place."""

import pytest
from boots import PAIR, step_tests
from disturbances import new_vm
from steps import Step, guest_programs, name_of
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
REPLACE = new_vm("a-new-vm-takes-its-place", 2, then="rc_pingpong-with-the-new-vm")
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
REPLACE_AGAIN = new_vm("another-new-vm", 2, then="rc_pingpong-with-another-new-vm")
PINGPONG_AGAIN = Step("rc_pingpong-with-another-new-vm", PINGPONG.script)

death = PAIR.part([KILL, REPLACE, PINGPONG, COMPLAINTS], files=guest_programs)
reads_long = PAIR.part([READ_KILL, REPLACE_AGAIN, PINGPONG_AGAIN, COMPLAINTS], long=True)
test_step, test_run_ended_well = step_tests(death=[PINGPONG, COMPLAINTS], reads_long=[PINGPONG_AGAIN, COMPLAINTS])


@pytest.mark.parametrize("step", [KILL, REPLACE], ids=name_of)
def test_survivor(death, step):
    death.check(step, nodes=[1])


@pytest.mark.long
@pytest.mark.parametrize("step", [READ_KILL, REPLACE_AGAIN], ids=name_of)
def test_survivor_of_reads(reads_long, step):
    reads_long.check(step, nodes=[1])


def test_survivor_gets_retry_exceeded(death):
    survivor = death[KILL][0]
    assert "IBV_WC_RETRY_EXC_ERR" in survivor.text, death.explain(KILL)
    assert "the requests behind it are flushed" in survivor.text, death.explain(KILL)


def test_it_is_a_new_vm(death):
    assert "node2, started again: 1" in death.check(PINGPONG)[1].text


@pytest.mark.long
def test_it_is_another_new_vm(reads_long):
    assert "node2, started again: 1" in reads_long.check(PINGPONG_AGAIN)[1].text
