# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
"""rdma_cm finds the adapter through the network interface with the address: a vmxnet3, and a VLAN on it."""

import applications
import pytest
from boots import Boot, step_tests
from steps import Step, guest_programs
from traffic import COMPLAINTS, user_meeting

pytestmark = pytest.mark.long

VLAN = Step("vlan", """
    install -m 755 $SHARE/late_connect.so /usr/local/lib || exit
    modprobe 8021q && ip link add link $NETDEV name vlan5 type vlan id 5 && ip link set vlan5 up &&
        ip address add 10.78.0.$NODE/24 dev vlan5 || exit
    until_true 50 sh -c "grep -qi 0a4e:000$NODE /sys/class/infiniband/$RDMA_DEV/ports/1/gids/*"
    status=$?
    rdma link show; ip -d link show vlan5
    exit $status""")


STEPS = [
    Step("netdev", "ls -l /sys/class/net/$NETDEV/device/driver | grep vmxnet3"),
    applications.meet("rping", 7174),
    applications.meet("rping by IPv6", 7174),
    applications.meet("udaddy", 7174),
    VLAN,
    user_meeting("rping-over-vlan", 7174, "rping -s -V -C 50", "rping -c -a 10.78.0.1 -V -C 50"),
    user_meeting("udaddy-over-vlan", 7174, "udaddy -c 4", "udaddy -s 10.78.0.1 -c 4"),
    user_meeting("ib_write_bw-over-vlan", 18515, "ib_write_bw -R -n 100",
              "LD_PRELOAD=/usr/local/lib/late_connect.so ib_write_bw -R -n 100 10.78.0.1"),
    COMPLAINTS,
]
netdev = Boot("cm-netdev", nic="vmxnet3").part(STEPS, files=guest_programs, long=True)
test_step, test_run_ended_well = step_tests(netdev=STEPS)
