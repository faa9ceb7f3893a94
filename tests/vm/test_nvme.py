# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
"""NVMe over fabrics: the kernel's own target on one VM, its initiator on the other, random data there and back."""

import apps
import pytest
from steps import Step, ids, run_steps

pytestmark = pytest.mark.slow

# With and without a shared receive queue at the target.
TARGET = """
    target() {
        modprobe -r nvmet_rdma; modprobe nvmet-rdma use_srq=$1 || return
        modprobe brd rd_nr=1 rd_size=65536 || return
        mountpoint -q /sys/kernel/config || mount -t configfs none /sys/kernel/config || return
        cd /sys/kernel/config/nvmet &&
            mkdir subsystems/t && echo 1 >subsystems/t/attr_allow_any_host &&
            mkdir subsystems/t/namespaces/1 && echo /dev/ram0 >subsystems/t/namespaces/1/device_path &&
            echo 1 >subsystems/t/namespaces/1/enable &&
            mkdir ports/1 && echo ipv4 >ports/1/addr_adrfam && echo rdma >ports/1/addr_trtype &&
            echo $MY_IP >ports/1/addr_traddr && echo 4420 >ports/1/addr_trsvcid &&
            ln -s /sys/kernel/config/nvmet/subsystems/t ports/1/subsystems/t
    }
    no_target() {
        cd /sys/kernel/config/nvmet &&
            rm ports/1/subsystems/t && rmdir ports/1 && echo 0 >subsystems/t/namespaces/1/enable &&
            rmdir subsystems/t/namespaces/1 subsystems/t && cd / && modprobe -r nvmet_rdma && modprobe -r brd
    }
    initiator() {
        modprobe nvme-rdma && nvme connect -t rdma -a $PEER_IP -s 4420 -n t -i 2 || return
        until_true 100 test -b /dev/nvme0n1 || return
        there_and_back; status=$?
        nvme disconnect -n t && modprobe -r nvme_rdma && return $status
    }
    there_and_back() {
        head -c 24M /dev/urandom >/tmp/sent
        dd if=/tmp/sent of=/dev/nvme0n1 bs=1M oflag=direct && dd if=/tmp/sent of=/dev/nvme0n1 bs=12K oflag=direct &&
            dd if=/dev/nvme0n1 of=/tmp/back bs=256K iflag=direct count=96 && cmp /tmp/sent /tmp/back
    }
    if [ $NODE = 1 ]; then
        target %s && raise up || { raise dead; exit 1; }
        await over dead
        no_target
    else
        await up dead; raised up || exit
        initiator; status=$?
        raise over; exit $status
    fi"""

STEPS = [
    Step("nvme", TARGET % "0", 120),
    Step("nvme-srq", TARGET % "1", 120),
    Step("nothing-left", "! rdma resource show qp link $RDMA_DEV/1 | grep -v 'type GSI'"),
    Step("complaints", "! complaints"),
]


@pytest.fixture(scope="module")
def nvme(tmp_path_factory):
    return run_steps(tmp_path_factory.mktemp("nvme"), STEPS, packages=apps.PACKAGES)


@pytest.mark.parametrize("step", ids(STEPS))
def test_nvme(nvme, step):
    nvme.check(step)


def test_run_ended_well(nvme):
    nvme.check_end()
