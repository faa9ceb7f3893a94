# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
"""NFS over RDMA and NVMe over fabrics between a VM with our driver and one with the kernel's own, in both directions."""

import applications
import pytest
import storage
from boots import APPS_PACKAGES, Boot, step_tests
from pvrdmactl import at_now, noted, reply
from steps import Step
from vmlab_run import ROOT

pytestmark = [pytest.mark.slow, pytest.mark.long]

MIB = 1 << 20
# The VMs boot with vmw_pvrdma. drivers OURS: node OURS has our driver, and the other one vmw_pvrdma.
DRIVERS = storage.FUNCTIONS + """
    device_of() { readlink -f /sys/class/infiniband/*/device/driver; }
    has_port() { grep -q ACTIVE /sys/class/infiniband/*/ports/1/state && ls /sys/class/infiniband/*/ports/1/gid_attrs/types; }
    drivers() {
        local name=vmw_pvrdma file=$driver
        if [ $NODE = $1 ]; then name=pvrdma file=$SHARE/pvrdma.ko; fi
        if [ ! -e /sys/module/$name ]; then
            rmmod vmw_pvrdma 2>/dev/null || rmmod pvrdma || return
            insmod $file || return
        fi
        until_true 100 has_port && basename $(device_of)
    }
    RDMA_DEV=$(ls /sys/class/infiniband | head -n 1)
    """


def on(node, heading):
    return f"[ $NODE != {node} ] || {storage.script(heading)}"


def drivers(ours):
    return Step(f"node{ours}-has-our-driver", DRIVERS + f"drivers {ours}")


def nfs(ours):
    """The server is node 1, the client node 2. sync writes the files to the server, and drop_caches makes it send them."""
    name = f"nfs-with-ours-on-node{ours}"
    return [
        Step(f"{name}-server", on(1, "NFS server")),
        Step(f"{name}-client", on(2, "NFS client")),
        Step(name, """
            [ $NODE = 2 ] || exit 0
            mkdir -p /tmp/files && for i in $(seq 40); do head -c $((i * i * 1000)) /dev/urandom >/tmp/files/$i || exit; done
            cp -r /tmp/files /mnt/tree && sync -f /mnt/tree && echo 3 >/proc/sys/vm/drop_caches || exit
            cp -r /mnt/tree/files /tmp/back && diff -r /tmp/files /tmp/back && echo "$(ls /tmp/back | wc -l) files are the same"
            status=$?; rm -rf /tmp/files /tmp/back; exit $status""", 180),
        Step(f"{name}-unmounted", on(2, "NFS unmounted")),
        Step(f"{name}-end", on(1, "NFS server's end")),
    ]


def nvme(ours):
    """The target is node 1, the host node 2."""
    name = f"nvme-with-ours-on-node{ours}"
    return [
        Step(f"{name}-target", storage.FUNCTIONS + "[ $NODE != 1 ] || target", 60),
        Step(f"{name}-host", storage.FUNCTIONS + "[ $NODE != 2 ] || host", 60),
        Step(name, f"[ $NODE != 2 ] || {storage.script('fio')}", 180),
        Step(f"{name}-disconnect", storage.FUNCTIONS + "[ $NODE != 2 ] || host_end"),
        Step(f"{name}-end", storage.FUNCTIONS + "[ $NODE != 1 ] || target_end"),
    ]


def nothing_left(ours):
    return Step(f"nothing-left-with-ours-on-node{ours}", DRIVERS + "until_true 50 no_qp")


def part(ours):
    return [drivers(ours), noted(f"before-{ours}"), *nfs(ours), *nvme(ours), noted(f"after-{ours}"), nothing_left(ours)]


def our_module():
    return [ROOT / "build" / "module-6.1" / "pvrdma.ko"]


STEPS = [*part(1), *part(2)]
NOTED = [step for step in STEPS if step.name.startswith(("before-", "after-"))]
BOOT = Boot("stock-storage", driver="vmw_pvrdma", packages=APPS_PACKAGES)
stock_storage_long = BOOT.part(STEPS, at_now(NOTED, "--json", "paths"), files=our_module, long=True)
test_step, test_run_ended_well = step_tests(stock_storage_long=STEPS)
EACH_SIDE = pytest.mark.parametrize("ours", [1, 2])


@EACH_SIDE
def test_one_driver_is_ours_and_one_is_not(stock_storage_long, ours):
    outcomes = stock_storage_long.check(drivers(ours))
    names = [outcome.text.splitlines()[-1] for outcome in outcomes]
    assert names == (["pvrdma", "vmw_pvrdma"] if ours == 1 else ["vmw_pvrdma", "pvrdma"])


@EACH_SIDE
def test_files_are_the_same(stock_storage_long, ours):
    assert "40 files are the same" in stock_storage_long.check(nfs(ours)[2])[1].text


@EACH_SIDE
def test_nfs_is_mounted_as_documented(stock_storage_long, ours):
    applications.check_output("NFS client", stock_storage_long.check(nfs(ours)[1])[1].text)


@EACH_SIDE
def test_fio_is_as_documented(stock_storage_long, ours):
    applications.check_output("fio", stock_storage_long.check(nvme(ours)[2])[1].text)


@EACH_SIDE
def test_data_went_through_the_device(stock_storage_long, ours):
    """20 MB of files and 32 MiB of blocks, each there and back."""
    moved = []
    for name in (f"before-{ours}", f"after-{ours}"):
        paths = reply(stock_storage_long, noted(name))["paths"]
        moved.append(sum(path["bytes"] for path in paths if path["from"] != path["to"]))
    assert moved[1] - moved[0] > 2 * 52 * MIB, moved
