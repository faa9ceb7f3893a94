# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
"""docs/libvirt.md by the libvirtd of Debian 12 and 13: two domains with QEMU by <emulator>. libvirt.sh says what is checked."""

import pathlib
import re
import shlex
import shutil
import subprocess
import sys

import pytest
from conftest import BUILD, ROOT, output_of

sys.path.insert(0, str(ROOT / "scripts" / "lab"))

from vmlab_lib import initramfs, options, parts, process, progress, tsc  # noqa: E402

HERE = pathlib.Path(__file__).parent
DOCUMENT = (ROOT / "docs" / "libvirt.md").read_text(encoding="utf-8")
TIMES = 50
SECONDS = 1500
MODULES = ["virtio_net", "ib_core", "ib_uverbs", "rdma_ucm", "ib_umad"]
# Commands of the document by their names in libvirt.sh, with their first words.
COMMANDS = {
    "dumpxml": "virsh dumpxml --inactive vm1 >vm1.xml",
    "insert": "pvrdmactl domain-xml --vm vm1.xml name=vm1,socket=/run/pvrdma/vm1.sock,mac=52:54:00:12:34:56\n",
    "user": "pvrdmactl domain-xml --vm vm1.xml name=vm1,socket=/run/pvrdma/vm1.sock,mac=52:54:00:12:34:56,user=libvirt-qemu",
    "apparmor": "echo '#include <abstractions/libvirt-qemu.d/pvrdma>' >>/etc/apparmor.d/local/abstractions/libvirt-qemu",
    "define": "virsh define vm1.xml",
    "start": "virsh start vm1",
    "unplug": """virsh qemu-monitor-command vm1 '{"execute":"device_del",""",
    "plug": """virsh qemu-monitor-command vm1 '{"execute":"device_add",""",
    "unguard": """virsh qemu-monitor-command vm1 '{"execute":"blockdev-del",""",
    "guard": """virsh qemu-monitor-command vm1 '{"execute":"blockdev-add",""",
    "unplugged": "virsh dumpxml --migratable vm1 | pvrdmactl domain-xml --unplugged --vm - name=vm1,... >unplugged.xml",
    "migratable": "pvrdmactl domain-xml --migratable --vm vm1.xml name=vm1,socket=/run/pvrdma/vm1.sock,mac=52:54:00:12:34:56\n",
    "migrate-device": "virsh migrate --live vm1 qemu+ssh://host2/system",
    "migrate": "virsh migrate --live --xml unplugged.xml vm1 qemu+ssh://host2/system",
}
NOT_RUN = {"migrate"}  # without the device, from one host to another
RULES = [
    "a domain does not start without pvrdmad", "a domain does not start without the hook",
    "a domain starts with the adapter that the hook made", "the hook removes the adapter when the domain ends",
    "ibv_rc_pingpong between two domains", "libvirt's user connects, and no other user",
    "AppArmor's profile of QEMU has the rules", f"{TIMES} times unplugged and plugged in by virsh under traffic",
    "a domain with its device is not saved, and continues",
]
# libvirt 9.0 saves no domain of QEMU 11.1.
SAVES = ["a domain is saved without its device, restored, and gets the device back",
         "the hook refuses to restore a domain with its device"]
MIGRATION = [
    "two domains with the device of QEMU with -device pvrdma", "a domain whose state is refused goes on at its host",
    "a domain moves there and back twice, and its queue pairs go on", "a domain is saved and restored with its device",
]


def documented_commands():
    """The indented commands, of one line or of more in one pair of quotes; no messages of programs."""
    found, open_text = [], ""
    for line in re.findall(r"^    (.*\n)", DOCUMENT, re.M):
        open_text += line
        if open_text.count("'") % 2 == 0 or not open_text.startswith("virsh"):
            found.append(open_text)
            open_text = ""
    return [text for text in found if re.match(r"(virsh|pvrdmactl|echo) ", text)]


def test_every_command_of_the_document_is_known():
    commands = documented_commands()
    unknown = [text for text in commands if not any(text.startswith(start) for start in COMMANDS.values())]
    assert unknown == []
    assert [name for name, start in COMMANDS.items() if not any(text.startswith(start) for text in commands)] == []
    script = (HERE / "libvirt.sh").read_text() + (HERE / "libvirt-migration.sh").read_text()
    assert {name for name in COMMANDS if not re.search(rf"\bdoc[ /]{name}(?![\w-])", script)} == NOT_RUN


def lay_out_commands(folder):
    folder.mkdir()
    settings = COMMANDS["user"].split()[-1]
    for name, start in COMMANDS.items():
        text = next(text for text in documented_commands() if text.startswith(start))
        (folder / name).write_text(text.replace("name=vm1,...", settings))


def lay_out_domain(work):
    """The kernel, its initial RAM file system and the second disk, of vmlab's parts. Return: the Parts."""
    found = parts.gather(options.parse(["--build-only"]), progress.Progress())
    staging = work / "staging"
    (staging / "modules").mkdir(parents=True)
    for number, file in enumerate(initramfs.load_order(found.modules, MODULES)):
        name = pathlib.Path(file).name
        assert name.endswith(".ko"), f"{name} is compressed"
        shutil.copy(found.modules / file, staging / "modules" / f"{number:02}-{name}")
    shutil.copy(found.drivers["pvrdma"], staging / "pvrdma.ko")
    shutil.copytree(found.provider, staging / "provider", ignore=lambda _, names: set(names) - set(parts.PROVIDER_FILES))
    shutil.copy(HERE / "libvirt-guest.sh", staging / "guest.sh")
    (staging / "guest.sh").chmod(0o755)
    pack = "tar -C {} --owner=0 --group=0 -c . | tar2sqfs --quiet --force --compressor lz4 {}"
    subprocess.run(pack.format(*map(shlex.quote, map(str, (staging, work / "parts.sqfs")))), shell=True, check=True)
    (work / "init").mkdir()
    shutil.copy(HERE / "libvirt-init.sh", work / "init" / "init")
    (work / "init" / "init").chmod(0o755)
    # The later archive replaces the file of the first one.
    own = subprocess.run(["busybox", "cpio", "-o", "-H", "newc"], cwd=work / "init", input=b"init\n", stdout=subprocess.PIPE,
                         stderr=subprocess.DEVNULL, check=True).stdout
    (work / "initrd").write_bytes(found.initramfs.read_bytes() + own)
    shutil.copy(found.kernel, work / "vmlinux")
    return found


def clock():
    frequency = tsc.khz()
    return f"tsc=reliable tsc_early_khz={frequency}" if frequency else "tsc=reliable"


def migratable_qemu(work, stock):
    """An emulator for the domains: the QEMU of scripts/build/qemu, with the libraries of the stock one."""
    built = pathlib.Path(output_of(BUILD / "qemu")).with_name("qemu")
    shutil.copy(built, work / "qemu")
    root = stock.parent / "root"
    script = work / "qemu-system-x86_64"
    script.write_text(f"""#!/bin/sh
exec {root}/usr/lib64/ld-linux-x86-64.so.2 --library-path {root}/usr/lib/x86_64-linux-gnu /job/qemu \
    -L {root}/usr/share/qemu -L {root}/usr/share/seabios -L {root}/usr/lib/ipxe/qemu "$@"
""")
    script.chmod(0o755)
    return f"/job/{script.name}"


def run_in_root(packages, work, script, *arguments, migratable=False):
    """Return: the output of a script with the QEMU, the image and the clock of its VMs."""
    work.chmod(0o755)
    lay_out_commands(work / "doc")
    found = lay_out_domain(work)
    emulator = migratable_qemu(work, pathlib.Path(found.qemu)) if migratable else found.qemu
    cache = found.image.parents[1]
    tarball = output_of(ROOT / "scripts" / "fetch" / "root", packages.suite, "libvirt")
    command = [BUILD / "in-root", "--bind", f"{packages.folder}:/debs", "--bind", f"{HERE}:/tests", "--bind", f"{work}:/job",
               "--bind", f"{cache}:{cache}", tarball, "sh", f"/tests/{script}", cache, emulator, found.image, clock(), *arguments]
    with open(work / "output", "w+", encoding="utf-8") as file:
        child = process.spawn(list(map(str, command)), stdin=subprocess.DEVNULL, stdout=file, stderr=subprocess.STDOUT)
        try:
            child.wait(SECONDS)
        finally:
            process.stop(child)
        file.seek(0)
        return file.read()


def rules_of(output):
    assert "FAILED" not in output, output[-6000:]
    return [line[3:] for line in output.splitlines() if line.startswith("ok ")]


def test_libvirt(packages, tmp_path):
    output = run_in_root(packages, tmp_path, "libvirt.sh", TIMES)
    rules = RULES if packages.suite == "bookworm" else RULES + SAVES
    assert rules_of(output) == rules, output[-6000:]


def test_migration_with_the_device(packages, tmp_path):
    output = run_in_root(packages, tmp_path, "libvirt-migration.sh", migratable=True)
    assert rules_of(output) == MIGRATION, output[-6000:]
