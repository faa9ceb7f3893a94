# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
"""An ordinary user provokes the device, while another user's stream runs through the same adapter, and never stops."""

import re

import pytest
from boots import VERIFY, step_tests
from steps import Step, guest_programs
from traffic import COMPLAINTS

pytestmark = pytest.mark.slow

# Root's stream from node 2 to node 1, while the user's programs run on both. $user: the status of these.
BESIDE_A_STREAM = """
    beside_a_stream()
    {
        local stream
        if [ $NODE = 1 ]; then
            $SHARE/pvr_stream & stream=$!
            until_true 100 listening 18800 && raise up
        else
            await up
            $SHARE/pvr_stream node1 & stream=$!
        fi
        (as_user "RDMA_DEV=$RDMA_DEV GID_INDEX=$GID_INDEX $1"); user=$?
        raise "done$NODE"
        await done1 && await done2
        [ $NODE = 1 ] || kill $stream
        wait $stream
    }
"""
REBIND = Step("rebind", BESIDE_A_STREAM + """
    beside_a_stream "$SHARE/pvr_rebind 10"; stream=$?
    echo "user: $user, stream: $stream"
    [ $user = 0 ] && [ $stream = 0 ]""", 120)
UNHARMED = Step("unharmed", "! dmesg | grep -E 'pvrdma [0-9a-f:.]+.*(refused|failed|restart)'")
STEPS = [REBIND, UNHARMED, COMPLAINTS]

harm = VERIFY.part(STEPS, files=guest_programs)
test_step, test_run_ended_well = step_tests(harm=STEPS)


def test_stream_is_whole(harm):
    """That of another user: no message wrong, lost or duplicated."""
    receiver, sender = harm.check(REBIND)
    assert re.search(r"^stream: [1-9]\d* messages, 0 wrong, 0 lost, 0 duplicated", receiver.text, re.M), receiver.tail()
    assert re.search(r"^stream: [1-9]\d* messages sent", sender.text, re.M), sender.tail()


def test_user_has_bound_windows(harm):
    harm.check_each(REBIND, r"^rebind: [1-9]\d* regions, \d+ times busy, [1-9]\d* windows, [1-9]\d* bound")
