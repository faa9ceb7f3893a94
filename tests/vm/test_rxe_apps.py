# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
"""NFS over RDMA and NVMe over fabrics by the wire, between an adapter and Soft-RoCE of each kernel, in both roles.

Servers and targets are on node 1.
"""

import applications
import pytest
import storage
from boots import APPS_PACKAGES, RXE, Boot, each_run, step_tests
from pvrdmactl import at_now, noted, reply
from steps import Step
from traffic import COMPLAINTS

pytestmark = [pytest.mark.slow, pytest.mark.long]

MIB = 1 << 20


def _on(node, heading):
    return f"[ $NODE != {node} ] || {storage.script(heading)}"


def _nvme(node, function):
    return f"{storage.FUNCTIONS} [ $NODE != {node} ] || {function}"


FILES = Step("nfs-files", """
    [ $NODE = 2 ] || exit 0
    mkdir -p /tmp/files && for i in $(seq 40); do head -c $((i * i * 1000)) /dev/urandom >/tmp/files/$i || exit; done
    cp -r /tmp/files /mnt/tree && sync -f /mnt/tree && echo 3 >/proc/sys/vm/drop_caches || exit
    cp -r /mnt/tree/files /tmp/back && diff -r /tmp/files /tmp/back && echo "$(ls /tmp/back | wc -l) files are the same" """, 300)
MOUNT = Step("nfs-client", _on(2, "NFS client"))
NFS = [Step("nfs-server", _on(1, "NFS server")), MOUNT, FILES, Step("nfs-unmounted", _on(2, "NFS unmounted")),
       Step("nfs-server-end", _on(1, "NFS server's end"))]
FIO = Step("fio", _on(2, "fio"), 480)
NVME = [Step("nvme-target", _nvme(1, "target"), 60), Step("nvme-host", _nvme(2, "host"), 60), FIO,
        Step("nvme-disconnect", _nvme(2, "host_end")), Step("nvme-target-end", _nvme(1, "target_end"))]
BEFORE, AFTER = noted("before"), noted("after")
NOTHING_LEFT = Step("nothing-left", storage.FUNCTIONS + "until_true 50 no_qp")
STEPS = [BEFORE, *NFS, *NVME, AFTER, NOTHING_LEFT, COMPLAINTS]


def _part(kernel, server, client):
    return Boot(f"rxe-apps-{kernel}-{server}-", packages=APPS_PACKAGES, driver=f"{server},{client}", kernel=kernel).part(
        STEPS, at_now([BEFORE, AFTER], "--json", "paths"), long=True)


pvrdma_serves_6_1_long, pvrdma_serves_6_12_long, pvrdma_serves_7_2_long = (_part(kernel, "pvrdma", "rxe") for kernel in RXE)
rxe_serves_6_1_long, rxe_serves_6_12_long, rxe_serves_7_2_long = (_part(kernel, "rxe", "pvrdma") for kernel in RXE)
RUNS = [f"{server}_serves_{kernel.replace('.', '_')}_long" for kernel in RXE for server in ("pvrdma", "rxe")]
test_step, test_run_ended_well = step_tests(**dict.fromkeys(RUNS, STEPS))
EACH_RUN = pytest.mark.parametrize("run", each_run(*RUNS), indirect=True)


@EACH_RUN
def test_nfs_is_mounted_as_documented(run):
    applications.check_output("NFS client", run.check(MOUNT)[1].text)


@EACH_RUN
def test_files_are_the_same(run):
    assert "40 files are the same" in run.check(FILES)[1].text


@EACH_RUN
def test_fio_is_as_documented(run):
    applications.check_output("fio", run.check(FIO)[1].text)


@EACH_RUN
def test_storage_data_went_over_the_wire(run):
    """20 MB of files and 32 MiB of blocks, each there and back. The adapter counts the messages that it sends as requester."""
    moved = []
    for step in (BEFORE, AFTER):
        run.check(step)
        moved.append(sum(path["bytes"] for path in reply(run, step)["paths"] if path["path"] == "wire"))
    assert moved[1] - moved[0] > 20 * MIB, moved
