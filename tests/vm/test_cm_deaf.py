# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
"""rdma_cm with a VM whose address answers, but whose adapter has no driver: the CM gives up after all of its retries."""

import pytest
from boots import PAIR, step_tests
from steps import Step

pytestmark = pytest.mark.long

# 16 tries of ib_cm, of 6 s each, the time of rdma_cm for RoCE.
CM_SECONDS = 120

DEAF = Step("peer-without-driver", f"""
    if [ $NODE = 1 ]; then
        unload && raise unloaded
        await over
        load
        exit
    fi
    await unloaded
    timeout {CM_SECONDS} rping -c -a node1 -C 1
    status=$?
    raise over
    echo "status $status"
    rdma resource show cm_id
    [ $status != 0 ] && [ $status != 124 ]""", CM_SECONDS + 60)
AGAIN = Step("again", "talk 7174 1 2 rping_end")
STEPS = [DEAF, AGAIN]

deaf = PAIR.part(STEPS, long=True)
test_step, test_run_ended_well = step_tests(deaf=STEPS)


def test_connection_to_it_is_unreachable(deaf):
    assert "RDMA_CM_EVENT_UNREACHABLE, error -110" in deaf.check(DEAF)[1].text
