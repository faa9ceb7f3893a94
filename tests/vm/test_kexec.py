# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
"""A VM starts another kernel by kexec, without a reset of its hardware, while its storage over NVMe-oF is in use."""

import pytest
import storage
from boots import APPS_PACKAGES
from steps import path_from
from vmlab_lib import initramfs
from vmlab_run import ROOT

pytestmark = pytest.mark.long

# Node 2 runs the script twice. The second kernel finds the device as the first one's shutdown method left it.
SCRIPT = """#!/bin/bash
. "$SHARE/steps.sh"
export STEP=kexec; mkdir -p "$SHARE/flags"
""" + storage.FUNCTIONS + """
no_faults() { ! dmesg | grep -E 'WARNING|BUG|Oops|Call Trace'; }
if [ $NODE = 1 ]; then
    target || exit
    barrier connected; barrier second-kernel
    pingpong 18515 1 2 -c -s 4096 -n 200 && no_faults
    exit
fi
if [ -e "$SHARE/second" ]; then
    echo "kernel $(cat "$SHARE/second"), then $(cat /proc/sys/kernel/random/boot_id)"
    barrier second-kernel
    pingpong 18515 1 2 -c -s 4096 -n 200 && no_faults
    exit
fi
until_true 100 eval "ping -c 1 -W 1 $PEER_IP >/dev/null"
barrier connected
host || exit
dd if=/dev/zero of=/dev/nvme0n1 bs=16k count=64 oflag=direct 2>/dev/null || exit
while dd if=/dev/zero of=/dev/nvme0n1 bs=16k count=64 oflag=direct; do :; done >/dev/null 2>&1 &
cat /proc/sys/kernel/random/boot_id >"$SHARE/second"
kexec --load "$SHARE/vmlinuz" --initrd="$SHARE/initramfs" --reuse-cmdline || exit
sync
kexec --exec
"""


def test_kexec_with_storage_in_use(vmlab):
    kernel = path_from("fetch/kernel", "6.1")
    vmlab.put(kernel / "vmlinuz", ROOT / "scripts/guest/steps.sh")
    image = initramfs.initramfs((kernel / "release").read_text().strip(), kernel / "modules")
    (vmlab.share / "initramfs").write_bytes(image.read_bytes())
    result = vmlab(SCRIPT, packages=APPS_PACKAGES + ",kexec-tools", timeout=300).check()
    booted = next(line for line in result.nodes[2] if line.startswith("kernel "))
    first, second = booted.removeprefix("kernel ").split(", then ")
    assert first != second
    assert result.log("node2.console").count("kexec_core: Starting new kernel") == 1
