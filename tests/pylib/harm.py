# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
"""Steps in which an ordinary user provokes the device beside the checked stream of another user."""

import re

from steps import Step

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
# The kernel's log has no refusal, failure or restart of the device.
UNHARMED = Step("unharmed", "! dmesg | grep -E 'pvrdma [0-9a-f:.]+.*(refused|failed|restart)'")
# The stream stands still while a busy host runs other processes, but not as long as a restart with its pauses.
GAP_MAX = 20000  # ms


def beside_a_stream(name, command, seconds):
    return Step(name, BESIDE_A_STREAM + f"""
        beside_a_stream "{command}"; stream=$?
        echo "user: $user, stream: $stream"
        [ $user = 0 ] && [ $stream = 0 ]""", seconds)


def random_verbs(seconds, seed):
    """Of another seed on each node. The program ends up to 15 minutes later if a process does not end."""
    return beside_a_stream("random-verbs", f"$SHARE/pvr_random -t {seconds} -s $(({seed} + $NODE))", 1.2 * seconds + 1200)


def check_stream(run, step):
    """No message wrong, lost or duplicated, and no long gap."""
    receiver, sender = run.check(step)
    found = re.search(r"^stream: [1-9]\d* messages, 0 wrong, 0 lost, 0 duplicated, longest gap ([\d.]+) ms", receiver.text, re.M)
    assert found, receiver.tail()
    assert float(found[1]) < GAP_MAX, receiver.tail()
    assert re.search(r"^stream: [1-9]\d* messages sent", sender.text, re.M), sender.tail()


def check_random_verbs(run, step):
    """The program has done something of each kind, on both nodes."""
    run.check_each(step, r"^random: seed \d+")
    for verb in ("create_cq", "create_qp", "modify_qp", "post_send", "post_recv", "reg_mr", "dereg_mr", "create_srq"):
        run.check_each(step, rf"\b{verb} [1-9]\d*/")
    run.check_each(step, r"\braw_(write|ioctl) \d+/[1-9]")
