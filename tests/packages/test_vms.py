# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
"""Two plain VMs with the packages of a VM, on a host with the package of a host: node.sh and host.sh say what they do."""

import contextlib
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

import pytest
from conftest import BUILD, ROOT, output_of

sys.path.insert(0, str(ROOT / "scripts" / "lab"))

from vmlab_lib import process, qemu, tsc  # noqa: E402

HERE = pathlib.Path(__file__).parent
PHASE_SECONDS = 3600  # under TCG, where the driver is built in some minutes
INSTALL = (ROOT / "docs" / "install.md").read_text(encoding="utf-8")
INSTALL_RULES = {"the service runs and adds an adapter", "removal stops the service", "dkms builds the driver in the VM"}
RULES = {"the driver is loaded at boot instead of vmw_pvrdma", "ibv_rc_pingpong", "rping"}


@pytest.fixture
def folder():
    """Sockets need a short path."""
    with tempfile.TemporaryDirectory(prefix="pvr-") as name:
        pathlib.Path(name).chmod(0o755)
        yield pathlib.Path(name)


def rules_of(share, node):
    output = (share / f"node{node}.out").read_text() if (share / f"node{node}.out").exists() else "no output"
    assert "FAILED" not in output, output[-4000:]
    return {line.removeprefix("ok ") for line in output.splitlines() if line.startswith("ok ")}, output


@contextlib.contextmanager
def host(packages, folder):
    """pvrdmad of the package, with its sockets in folder/run."""
    (folder / "run").mkdir()
    tarball = output_of(ROOT / "scripts" / "fetch" / "root", packages.suite, "install")
    with open(folder / "host.log", "w", encoding="utf-8") as log, \
            subprocess.Popen([BUILD / "in-root", "--bind", f"{packages.folder}:/debs", "--bind", f"{HERE}:/tests",
                              "--bind", f"{folder}/run:/run/pvrdma", tarball, "sh", "/tests/host.sh"],
                             stdin=subprocess.PIPE, stdout=log, stderr=log) as child:
        process.wait_for(lambda: (folder / "run" / "started").exists() or child.poll() is not None, 300)
        assert child.poll() is None, (folder / "host.log").read_text()[-3000:]
        yield
        child.stdin.close()
        assert child.wait(60) == 0, (folder / "host.log").read_text()[-3000:]


def arguments(folder, node, disk):
    """As an operator starts a VM with a disk, but for its kernel, which no boot loader loads."""
    frequency = tsc.khz()
    clock = f"tsc=reliable no_timer_check tsc_early_khz={frequency}" if "kvm" not in qemu.accelerator() and frequency else ""
    mac = f"52:54:00:00:00:0{node}"
    return [
        *qemu.accelerator(), "-machine", "q35,memory-backend=mem,vmport=off", "-smp", "2", "-m", "1G",
        "-object", "memory-backend-memfd,id=mem,size=1G,share=on",
        "-nodefaults", "-no-user-config", "-display", "none", "-no-reboot",
        "-kernel", f"{folder}/vmlinuz", "-initrd", f"{folder}/initrd",
        "-append", f"root=/dev/vda rw console=ttyS0 panic=-1 mitigations=off {clock} systemd.hostname=node{node}",
        "-drive", f"if=virtio,file={disk},format=raw,cache=unsafe", "-serial", f"file:{folder}/console{node}",
        "-fsdev", f"local,id=share,path={folder}/share,security_model=none,multidevs=remap",
        "-device", "virtio-9p-pci,fsdev=share,mount_tag=share",
        "-netdev", f"stream,id=net,server={'on' if node == 1 else 'off'},addr.type=unix,addr.path={folder}/segment",
        "-device", f"virtio-net-pci,netdev=net,mac={mac},romfile=,addr=6.0",
        "-device", f'{{"driver":"vfio-user-pci","socket":{{"type":"unix","path":"{folder}/run/node{node}.sock"}},"addr":"7.0"}}',
    ]


def run_until_off(folder, program, disks):
    """Boot a VM from each disk, and wait until all have switched themselves off."""
    (folder / "segment").unlink(missing_ok=True)
    vms = []
    try:
        for node, disk in enumerate(disks, 1):
            vms.append(process.spawn([program, *arguments(folder, node, disk)], stdin=subprocess.DEVNULL))
            process.wait_for((folder / "segment").exists, 60)
        for node, vm in enumerate(vms, 1):
            try:
                assert vm.wait(PHASE_SECONDS) == 0
            except subprocess.TimeoutExpired:
                pytest.fail(f"node {node} runs on: {(folder / f'console{node}').read_text(errors='replace')[-3000:]}")
    finally:
        for vm in vms:
            process.stop(vm)


def test_every_command_of_the_documentation_is_tested():
    commands = {line.strip() for line in re.findall(r"^ {4}(\S.*)$", INSTALL, re.M)}
    assert {command.split("  ")[0] for command in commands} == {
        "make deb", "make deb SUITE=trixie",  # the fixture packages
        "apt install ./pvrdmad_*.deb", "systemctl start pvrdmad",  # node.sh, and pvrdmactl
        next(command for command in commands if command.startswith("pvrdmactl add-adapter ")),
        "apt install linux-headers-amd64 ./pvrdma-dkms_*.deb ./pvrdma-provider_*.deb", "reboot",  # node.sh
    }


def test_plain_vms_have_rdma_after_installation_and_reboot(packages, folder):
    fetch = ROOT / "scripts" / "fetch"
    program = output_of(fetch / "qemu")
    tarball = output_of(fetch / "root", packages.suite, "vm")
    subprocess.run([BUILD / "in-root", "--bind", f"{folder}:/out", "--bind", f"{HERE}:/tests", tarball, "sh", "/tests/disk.sh"],
                   check=True)
    share = folder / "share"
    share.mkdir()
    (share / "add-adapter").write_text(re.search(r"^    (pvrdmactl add-adapter .*\n)", INSTALL, re.M)[1])
    for package in ("pvrdmad", "pvrdma-dkms", "pvrdma-provider"):
        shutil.copy(packages.files[package], share)
    shutil.copy(HERE / "node.sh", share)
    with host(packages, folder):
        run_until_off(folder, program, [folder / "disk"])
        rules, output = rules_of(share, 1)
        assert rules == INSTALL_RULES, output + (folder / "console1").read_text(errors="replace")[-3000:]
        # The second VM is a copy of the first.
        subprocess.run(["cp", "--sparse=always", folder / "disk", folder / "disk2"], check=True)
        run_until_off(folder, program, [folder / "disk", folder / "disk2"])
    rules, output = rules_of(share, 1)
    assert rules == RULES | {"the provider is loaded"}, output
    rules, output = rules_of(share, 2)
    assert rules == RULES, output
