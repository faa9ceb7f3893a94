# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
"""Two plain VMs with the packages of a VM, on a host with the package of a host: node.sh and host.sh say what they do."""

import contextlib
import pathlib
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
import time

import pytest
from conftest import BUILD, ROOT, output_of

sys.path.insert(0, str(ROOT / "scripts" / "lab"))

from vmlab_lib import process, qemu, tsc  # noqa: E402

HERE = pathlib.Path(__file__).parent
SECONDS = 900  # of the VMs: 170 s under TCG on a busy machine
README = (ROOT / "README.md").read_text(encoding="utf-8")
INSTALL = (ROOT / "docs" / "install.md").read_text(encoding="utf-8")
RULES = {"the driver is loaded at boot instead of vmw_pvrdma", "ibv_rc_pingpong", "rping"}
RULES_OF = {
    1: RULES | {"the provider is loaded", "the service runs and adds an adapter", "removal stops the service"},
    2: RULES | {"removal beside the loaded driver"},
}


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


def readme_options(folder, node):
    """QEMU's options in README.md, with the RAM, MAC and socket of this VM."""
    text = "\n".join(re.findall(r"^ {7}(-.*)$", README, re.M))
    for theirs, ours in (("size=4G", "size=1G"), ("52:54:00:12:34:56", f"52:54:00:00:00:0{node}"),
                         ("/run/pvrdma/vm1.sock", f"{folder}/run/node{node}.sock")):
        assert theirs in text
        text = text.replace(theirs, ours)
    return shlex.split(text)


def arguments(folder, node, disk):
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
        "-netdev", f"stream,id=net0,server={'on' if node == 1 else 'off'},addr.type=unix,addr.path={folder}/segment",
        *readme_options(folder, node), "-global", "virtio-net-pci.romfile=",
    ]


def run_until_off(folder, program, disks):
    """Boot a VM from each disk, and wait until all have switched themselves off."""
    end = time.monotonic() + SECONDS
    (folder / "segment").unlink(missing_ok=True)
    vms = []
    try:
        for node, disk in enumerate(disks, 1):
            vms.append(process.spawn([program, *arguments(folder, node, disk)], stdin=subprocess.DEVNULL))
            process.wait_for((folder / "segment").exists, 60)
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


def test_every_command_of_the_documentation_is_tested():
    commands = {line.strip() for line in re.findall(r"^ {4}(\S.*)$", INSTALL, re.M)}
    assert {command.split("  ")[0] for command in commands} == {
        "make deb", "make deb SUITE=trixie",  # the fixture packages
        "apt install ./pvrdmad_*.deb", "systemctl start pvrdmad",  # node.sh, and pvrdmactl
        next(command for command in commands if command.startswith("pvrdmactl add-adapter ")),
        "apt install linux-headers-amd64 ./pvrdma-dkms_*.deb ./pvrdma-provider_*.deb", "reboot",  # disk.sh
    }


def test_plain_vms_have_rdma_after_installation(packages, folder):
    fetch = ROOT / "scripts" / "fetch"
    program = output_of(fetch / "qemu")
    tarball = output_of(fetch / "root", packages.suite, "vm")
    done = subprocess.run([BUILD / "in-root", "--bind", f"{folder}:/out", "--bind", f"{HERE}:/tests", "--bind", f"{packages.folder}:/debs",
                           tarball, "sh", "/tests/disk.sh"], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
    assert done.returncode == 0, done.stdout[-4000:]
    subprocess.run(["cp", "--sparse=always", folder / "disk", folder / "disk2"], check=True)
    share = folder / "share"
    share.mkdir()
    (share / "add-adapter").write_text(re.search(r"^    (pvrdmactl add-adapter .*\n)", INSTALL, re.M)[1])
    shutil.copy(packages.files["pvrdmad"], share)
    for script in ("node.sh", "functions.sh"):
        shutil.copy(HERE / script, share)
    with host(packages, folder):
        run_until_off(folder, program, [folder / "disk", folder / "disk2"])
        consoles = "".join((folder / f"console{node}").read_text(errors="replace")[-1500:] for node in RULES_OF)
        for node, rules in RULES_OF.items():
            found, output = rules_of(share, node)
            assert found == rules, output[-4000:] + consoles
