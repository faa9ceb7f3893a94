# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
"""Storage of the other VM's kernel, over NVMe-oF and iSER, in use while the driver shuts its device down, while it restarts the
device, and while both VMs power off. The kernel drains the queues of its consumers without a hang, and without a warning. Both
kinds of sessions continue by themselves after the restart."""

import pytest
import storage
from boots import APPS_PACKAGES, Boot, step_tests
from steps import Step, guest_module

pytestmark = pytest.mark.long

FUNCTIONS = storage.FUNCTIONS + f"    iser_target() {{ {storage.script('iSER target')}; }}" + """
    name=iqn.2026-01.test:ram
    iscsi() { iscsiadm -m node -T $name -p 10.77.0.1:3260 "$@"; }
    # Failed I/O returns, instead of a wait for a session that does not return.
    iser_host() {
        modprobe -a sd_mod ib_iser || return
        mkdir -p /run/lock/iscsi /etc/iscsi && echo InitiatorName=iqn.2026-01.test:node$NODE >/etc/iscsi/initiatorname.iscsi
        pidof iscsid >/dev/null || iscsid || return
        iscsi -I iser -o new >/dev/null && iscsi -o update -n node.session.timeo.replacement_timeout -v 5 && iscsi --login &&
            until_true 100 test -b /dev/sda
    }
    works() { dd if=/dev/urandom of=$1 bs=64k count=64 oflag=direct && dd if=$1 of=/dev/null bs=64k count=64 iflag=direct; }
    # Until the first error.
    use() { while dd if=/dev/zero of=$1 bs=16k count=256 oflag=direct; do :; done >/dev/null 2>&1 & }
    both() { host && iser_host && works /dev/nvme0n1 && works /dev/sda; }
    """
TARGETS = Step("targets", FUNCTIONS + "[ $NODE != 1 ] || { target && iser_target; }")
CONNECT = Step("connect", FUNCTIONS + "[ $NODE != 2 ] || both", 60)
# The shutdown method, while the sessions are in use. The kernel goes on here, so that the consumers notice and drain.
SHUTDOWN = Step("shutdown-under-io", FUNCTIONS + """
    [ $NODE = 2 ] || exit 0
    use /dev/nvme0n1; nvme=$!
    use /dev/sda; iser=$!
    sleep 1; kill -0 $nvme $iser || exit
    insmod $SHARE/pvr_ktest.ko device=$RDMA_DEV gid=$GID_INDEX shutdown=1 && rmmod pvr_ktest || exit
    nvme disconnect -n ram
    wait $nvme $iser
    iscsi --logout
    iscsi -o delete
    until_true 100 no_qp && unload && load""", 120)
# Both kernels report errors of their sessions, but no faults of their own.
COMPLAINTS = Step("complaints", "! dmesg | grep -E 'WARNING|BUG|Oops|Call Trace|failed to drain|blocked for more than'")
COMPLAINTS_AGAIN = Step("complaints-again", COMPLAINTS.script)
AGAIN = Step("connect-again", CONNECT.script, 60)
# A reset that the driver finds within 5 s. The NVMe host tries again after 10 s, as is its default.
RESTART = Step("restart-under-io", FUNCTIONS + """
    [ $NODE = 2 ] || exit 0
    restarted() { dmesg | grep 'restart 1 of at most 5' && has_gid; } >/dev/null 2>&1
    use /dev/nvme0n1
    use /dev/sda
    insmod $SHARE/pvr_ktest.ko device=$RDMA_DEV reset=1 && rmmod pvr_ktest && until_true 200 restarted || exit
    until_true 400 state live && until_true 100 works /dev/nvme0n1 && until_true 400 works /dev/sda; status=$?
    iscsiadm -m session -P 1 | grep State
    exit $status""", 120)
# The VMs power off next, both at once.
LEAVE = Step("leave-in-use", FUNCTIONS + """
    [ $NODE = 2 ] || exit 0
    use /dev/nvme0n1
    use /dev/sda
    sleep 1""")
STEPS = [TARGETS, CONNECT, SHUTDOWN, COMPLAINTS, AGAIN, RESTART, COMPLAINTS_AGAIN, LEAVE]

power_off = Boot("power-off", packages=APPS_PACKAGES + ",open-iscsi").part(STEPS, files=guest_module, long=True)
test_step, test_run_ended_well = step_tests(power_off=STEPS)
