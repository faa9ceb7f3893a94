# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
"""Plain VMs of Debian's own kernel, systemd and udev, each with a disk and a script of this folder."""

import pathlib
import re
import shlex
import shutil
import subprocess
import sys
import time

import pytest
from conftest import BUILD, ROOT, output_of

sys.path.insert(0, str(ROOT / "scripts" / "lab"))

from vmlab_lib import process, qemu, tsc  # noqa: E402

HERE = pathlib.Path(__file__).parent
SECONDS = 900  # of the VMs: 170 s under TCG on a busy machine
README = (ROOT / "README.md").read_text(encoding="utf-8")


def make_disk(packages, folder, script, *installed, variant="vm", binds=()):
    """A disk with these of our packages, and the folder that the VMs share: node.sh there is the script that they run."""
    tarball = output_of(ROOT / "scripts" / "fetch" / "root", packages.suite, variant)
    binds = [f"{folder}:/out", f"{HERE}:/tests", f"{packages.folder}:/debs", *binds]
    done = subprocess.run([BUILD / "in-root", *(word for bind in binds for word in ("--bind", bind)), tarball, "sh", "/tests/disk.sh", *installed],
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
    assert done.returncode == 0, done.stdout[-4000:]
    share = folder / "share"
    share.mkdir()
    shutil.copy(HERE / script, share / "node.sh")
    shutil.copy(HERE / "functions.sh", share)
    return share


def rules_of(share, node):
    output = (share / f"node{node}.out").read_text() if (share / f"node{node}.out").exists() else "no output"
    assert "FAILED" not in output, output[-4000:]
    return {line.removeprefix("ok ") for line in output.splitlines() if line.startswith("ok ")}, output


def readme_options(folder, node):
    """QEMU's options in README.md, with the RAM, MAC and socket of this VM, and a network of two."""
    text = "\n".join(re.findall(r"^ {7}(-.*)$", README, re.M))
    for theirs, ours in (("size=4G", "size=1G"), ("52:54:00:12:34:56", f"52:54:00:00:00:0{node}"),
                         ("/run/pvrdma/vm1.sock", f"{folder}/run/node{node}.sock")):
        assert theirs in text
        text = text.replace(theirs, ours)
    network = f"stream,id=net0,server={'on' if node == 1 else 'off'},addr.type=unix,addr.path={folder}/segment"
    return ["-netdev", network, *shlex.split(text), "-global", "virtio-net-pci.romfile="]


def no_devices(_folder, _node):
    return []


def arguments(folder, node, disk, devices):
    """As an operator starts a VM with a disk, but for its kernel, which no boot loader loads."""
    accelerator, frequency = qemu.accelerator(), tsc.khz()
    clock = f"tsc=reliable no_timer_check tsc_early_khz={frequency}" if "kvm" not in accelerator and frequency else ""
    return [
        *accelerator, "-smp", "2", "-m", "1G", "-nodefaults", "-no-user-config", "-display", "none", "-no-reboot",
        "-kernel", f"{folder}/vmlinuz", "-initrd", f"{folder}/initrd",
        # A busy host does not make a unit of the VM fail.
        "-append", f"root=/dev/vda rw console=ttyS0 panic=-1 mitigations=off {clock} systemd.hostname=node{node}"
                   " systemd.default_timeout_start_sec=600",
        "-drive", f"if=virtio,file={disk},format=raw,cache=unsafe", "-serial", f"file:{folder}/console{node}",
        "-fsdev", f"local,id=share,path={folder}/share,security_model=none,multidevs=remap",
        "-device", "virtio-9p-pci,fsdev=share,mount_tag=share",
        *devices(folder, node),
    ]


def run_until_off(folder, disks, devices=no_devices):
    """Boot a VM from each disk, and wait until all have switched themselves off."""
    program = output_of(ROOT / "scripts" / "fetch" / "qemu")
    end = time.monotonic() + SECONDS
    (folder / "segment").unlink(missing_ok=True)
    vms = []
    try:
        for node, disk in enumerate(disks, 1):
            vms.append(process.spawn([program, *arguments(folder, node, disk, devices)], stdin=subprocess.DEVNULL))
            process.wait_for(lambda: devices is no_devices or (folder / "segment").exists(), 60)
        for node, vm in enumerate(vms, 1):
            try:
                assert vm.wait(max(0, end - time.monotonic())) == 0
            except subprocess.TimeoutExpired:
                shown = [folder / f"console{node}", folder / "share" / f"node{node}.out"]
                ends = [path.read_text(errors="replace")[-3000:] for path in shown if path.exists()]
                pytest.fail("\n".join([f"node {node} still runs after {SECONDS} s:", *ends]))
    finally:
        for vm in vms:
            process.stop(vm)
