# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
"""RDMA network namespaces in exclusive mode: the adapter and its NIC in a namespace, and back."""

import dataclasses

import pytest
from boots import Boot, step_tests
from steps import Step
from traffic import COMPLAINTS

pytestmark = pytest.mark.slow

INSIDE = """
    inside() { ip netns exec tenant "$@"; }
    listening()
    {
        inside ss -ltnH "sport = :$1" | grep -q . && return
        inside rdma resource show cm_id | grep -q "state LISTEN.*:$1\\b"
    }
"""
MOVE = Step("move", INSIDE + """
    rdma system set netns exclusive && ip netns add tenant || exit
    ip link set $NETDEV netns tenant && rdma dev set $RDMA_DEV netns tenant || exit
    inside ip addr add $MY_IP/24 dev $NETDEV
    inside ip link set $NETDEV up
    inside ip link set lo up
    ready()
    {
        inside rdma link | grep -q "state ACTIVE" &&
            inside grep -q v2 /sys/class/infiniband/$RDMA_DEV/ports/1/gid_attrs/types/$GID_INDEX
    }
    until_true 100 ready""")
ONLY_THERE = Step("only-there", INSIDE + """
    ibv_devinfo -l; rdma dev; echo "in the namespace:"; inside rdma link""")
PINGPONGS = [Step(name, INSIDE + f"talk 18515 1 2 ip netns exec tenant {program} -d $RDMA_DEV -g $GID_INDEX {options}")
             for name, program, options in (("rc_pingpong", "ibv_rc_pingpong", "-c -s 65536 -n 100"),
                                            ("rc_pingpong-events", "ibv_rc_pingpong", "-e -n 100"),
                                            ("ud_pingpong", "ibv_ud_pingpong", "-n 100"))]
RPING = Step("rdma_cm", INSIDE + """
    server_command=(ip netns exec tenant rping -s -a $MY_IP -p 7174 -C 20 -v)
    client_command=(ip netns exec tenant rping -c -a 10.77.0.1 -p 7174 -C 20 -v)
    meet 7174 1 2""")
# The kernel stops and starts the device, as at a restart and a reset: it is another ib_device then.
RESTART = Step("restart", INSIDE + """
    index() { inside rdma dev show tenant0 | cut -d: -f1; }
    inside rdma dev set $RDMA_DEV name tenant0 && before=$(index) || exit
    echo devices >/sys/power/pm_test && echo freeze >/sys/power/state && echo none >/sys/power/pm_test || exit
    ready()
    {
        inside rdma link | grep -q "tenant0/1 state ACTIVE" &&
            inside grep -q v2 /sys/class/infiniband/tenant0/ports/1/gid_attrs/types/$GID_INDEX
    }
    until_true 100 ready || { rdma dev; echo "in the namespace:"; inside rdma link; exit 1; }
    [ "$(index)" != "$before" ] || { echo "it is the same device, number $before"; exit 1; }
    inside rdma dev set tenant0 name $RDMA_DEV""")
# The namespace ends with its last process. The adapter and the NIC return, the NIC without an address.
RETURN = Step("return", """
    back() { rdma dev show $RDMA_DEV && ip link show $NETDEV; }
    ip netns del tenant && until_true 100 back || exit
    ip addr add $MY_IP/24 dev $NETDEV
    ip link set $NETDEV up
    until_true 100 has_gid && rdma system set netns shared""")
AGAIN = Step("rc_pingpong-outside", "pingpong 18515 1 2 -c -s 4096 -n 100")
PINGPONG_AGAIN = dataclasses.replace(PINGPONGS[0], name="rc_pingpong-after-restart")
STEPS = [MOVE, ONLY_THERE, *PINGPONGS, RPING, RESTART, PINGPONG_AGAIN, RETURN, AGAIN, COMPLAINTS]

tenant_long = Boot("netns").part(STEPS, long=True)
newer_long = Boot("netns-6.12", kernel="6.12").part(STEPS, long=True)
test_step, test_run_ended_well = step_tests(tenant_long=STEPS, newer_long=STEPS)


@pytest.mark.long
def test_adapter_is_in_the_namespace_alone(tenant_long):
    for outcome in tenant_long.check(ONLY_THERE):
        outside, inside = outcome.text.split("in the namespace:")
        assert "pvrdma0" not in outside, outcome.tail()
        assert "pvrdma0/1 state ACTIVE" in inside, outcome.tail()
