# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
"""rdma_cm with a VM whose address answers, but whose adapter has no driver: the CM gives up after all of its retries."""

import pytest
from boots import PAIR
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
AGAIN = Step("again", """
    server_command=(rping -s -V -C 20)
    client_command=(rping -c -a node1 -V -C 20)
    meet 7174 1 2""")

deaf = PAIR.part([DEAF, AGAIN], long=True)


def test_connection_to_it_is_unreachable(deaf):
    assert "RDMA_CM_EVENT_UNREACHABLE, error -110" in deaf.check(DEAF.name)[1].text


def test_it_can_be_reached_once_it_has_one(deaf):
    deaf.check(AGAIN.name)


def test_run_ended_well(deaf):
    deaf.check_end()
