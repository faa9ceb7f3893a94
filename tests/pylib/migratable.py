# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
"""A VM of -device pvrdma that can be migrated: without shares, which block migration. It runs one script, and its console is a file."""

import functools
import json
import pathlib
import re
import stat
import subprocess

from daemon_process import wait_until
from steps import guest_programs, path_from
from vmlab_lib import initramfs, qemu
from vmlab_lib.qmp import connect
from vmlab_run import ROOT

KERNEL = "6.1"
MAC = "52:54:00:00:00:01"  # of node1 in daemon_process.Daemon
MEMORY = 512 << 20
BOOT_MODULES = ["virtio_pci", "virtio_blk", "squashfs", "overlay"]
MODULES = ["virtio_net", "ib_core", "ib_uverbs", "rdma_ucm", "ib_umad"]

INIT = """#!/bin/busybox sh
bb=/bin/busybox
for fs in proc:proc sysfs:sys devtmpfs:dev; do $bb mount -t ${fs%:*} ${fs%:*} /${fs#*:}; done
for module in /boot/*.ko; do $bb insmod $module; done
$bb mkdir -p /lower /upper
$bb mount -t squashfs -o ro /dev/vda /lower && $bb mount -t tmpfs upper /upper && $bb mkdir /upper/data /upper/work &&
    $bb mount -t overlay -o lowerdir=/lower,upperdir=/upper/data,workdir=/upper/work root /root || $bb poweroff -f
$bb cp -r /job /root/job
for fs in proc sys dev; do $bb mount --move /$fs /root/$fs; done
exec $bb switch_root /root /job/main
"""

MAIN = """#!/bin/bash
export PATH=/job:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin HOME=/root LANG=C.UTF-8
exec </dev/null >/dev/console 2>&1
mount -t tmpfs run /run; mount -t tmpfs tmp /tmp; mkdir -p /dev/shm; mount -t tmpfs shm /dev/shm
ulimit -l unlimited
for module in /job/modules/*.ko; do insmod $module; done
cp /job/provider/libpvrdma-rdmav34.so /usr/lib/x86_64-linux-gnu/libibverbs/
cp /job/provider/pvrdma.driver /etc/libibverbs.d/
rm -f /etc/libibverbs.d/vmw_pvrdma.driver
net=$(basename $(dirname $(grep -il "^{mac}" /sys/class/net/*/address)))
ip link set lo up; ip link set $net up; ip address add 10.88.0.1/24 dev $net
insmod /job/pvrdma.ko
export RDMA_DEV= GID_INDEX=
for _ in $(seq 200); do
    RDMA_DEV=$(ls /sys/class/infiniband)
    GID_INDEX=$(grep -l ffff:0a58:0001 /sys/class/infiniband/$RDMA_DEV/ports/1/gids/* 2>/dev/null | sed 's,.*/,,' | tail -n 1)
    [ -z "$GID_INDEX" ] || break
    sleep 0.1
done
echo "job: ready, $RDMA_DEV, GID $GID_INDEX"
/job/script
echo "job: ended with status $?"
sleep 100000
"""


@functools.cache
def _parts():
    """Kernel, modules, root image, driver, provider."""
    done = subprocess.run([ROOT / "scripts/vmlab", "--build-only"], capture_output=True, text=True, check=True)
    image = re.search(r"image (\S+)", done.stdout + done.stderr)[1]
    return path_from("fetch/kernel", KERNEL), image, path_from("build/module", KERNEL), path_from("build/provider")


def _archive(script):
    kernel, _, driver, provider = _parts()
    modules = kernel / "modules"
    members = [initramfs.member(name, stat.S_IFDIR | 0o755)
               for name in ("bin", "boot", "dev", "job", "job/modules", "job/provider", "proc", "root", "sys")]

    def add(name, data, mode=0o755):
        members.append(initramfs.member(name, stat.S_IFREG | mode, data if isinstance(data, bytes) else data.encode()))
    members.append(initramfs.member("dev/console", stat.S_IFCHR | 0o600, device=(5, 1)))
    add("bin/busybox", initramfs.BUSYBOX.read_bytes())
    add("init", INIT)
    add("job/main", MAIN.replace("{mac}", MAC))
    add("job/script", "#!/bin/bash\n" + script)
    for folder, names in (("boot", BOOT_MODULES), ("job/modules", MODULES)):
        for number, file in enumerate(initramfs.load_order(modules, names)):
            add(f"{folder}/{number:02}.ko", initramfs.unpacked(modules / file))
    add("job/pvrdma.ko", driver.read_bytes())
    for file in ("libpvrdma-rdmav34.so", "pvrdma.driver"):
        add(f"job/provider/{file}", (provider / file).read_bytes())
    for file in guest_programs():
        if pathlib.Path(file).name == "pvr_verify":
            add("job/pvr_verify", pathlib.Path(file).read_bytes())
    return b"".join([*members, initramfs.member("TRAILER!!!", 0)])


def _device(socket, stock):
    if not stock:
        return f"pvrdma,id=adapter,path={socket},addr=7.0"
    return json.dumps({"driver": "vfio-user-pci", "id": "adapter", "addr": "7.0",
                       "socket": {"type": "unix", "path": str(socket)}})


class Vm:
    """One QEMU. incoming: where it waits for the state of another one."""

    def __init__(self, folder, name, program, socket, archive, incoming=None, more=(), stock=False):
        kernel, image, _, _ = _parts()
        self.console, self.errors, self.control = (folder / f"{name}.{what}" for what in ("console", "errors", "qmp"))
        argv = [program, *qemu.accelerator(), "-machine", "q35,memory-backend=mem,vmport=off", "-m", f"{MEMORY}B",
                "-object", f"memory-backend-memfd,id=mem,size={MEMORY},share=on", "-nodefaults", "-no-user-config",
                "-display", "none", "-no-reboot", "-kernel", kernel / "vmlinux", "-initrd", archive,
                "-append", "console=ttyS0 panic=-1 rdinit=/init mitigations=off tsc=reliable no_timer_check",
                "-drive", f"if=none,id=root,file={image},format=raw,readonly=on", "-device", "virtio-blk-pci,drive=root",
                "-serial", f"file:{self.console}", "-qmp", f"unix:{self.control},server=on,wait=off",
                "-netdev", "hubport,id=net,hubid=0", "-device", f"virtio-net-pci,netdev=net,mac={MAC},romfile=,addr=6.0",
                "-device", _device(socket, stock), *more]
        if incoming:
            argv += ["-incoming", incoming]
        with open(self.errors, "wb") as log:
            self.child = subprocess.Popen([str(word) for word in argv], stdin=subprocess.DEVNULL, stdout=log, stderr=log)
        try:
            self.qmp = connect(self.control, self.child)
        except ChildProcessError as err:
            raise ChildProcessError(self.errors.read_text()) from err

    def text(self):
        return self.console.read_text(errors="replace") if self.console.exists() else ""

    def wait_for(self, pattern, seconds=120):
        """In the output of the guest, from its boot or its arrival on."""
        wait_until(lambda: re.search(pattern, self.text()) or self.child.poll() is not None, f"'{pattern}' on {self.console}", seconds)
        found = re.search(pattern, self.text())
        assert found, f"QEMU has ended: {self.errors.read_text()}\n{self.text()[-2000:]}"
        return found

    def migrate(self, uri):
        """Return: the result of query-migrate at the end."""
        self.qmp.execute("migrate", uri=uri)
        state = {}

        def is_over():
            state.update(self.qmp.execute("query-migrate"))
            return state["status"] in ("completed", "failed", "cancelled")
        wait_until(is_over, "end of the migration", 120)
        return state

    def wait_until_it_runs(self):
        wait_until(lambda: self.qmp.execute("query-status")["status"] == "running" or self.child.poll() is not None, "a running VM", 120)
        assert self.child.poll() is None, self.errors.read_text()

    def end(self):
        self.child.kill()
        self.child.wait()


def starter(stack, folder, daemons, program, archive):
    """vm(name, host), which ends each VM with the stack, and has `folder` and `daemons`."""
    def start(name, host, **kwargs):
        vm = Vm(folder, name, program, daemons[host - 1].socket(1), archive, **kwargs)
        stack.callback(vm.end)
        return vm
    start.folder, start.daemons = folder, daemons
    return start


def write_archive(path, script):
    """The initramfs of a VM that runs the script; RDMA_DEV and GID_INDEX are set in it."""
    path.write_bytes(_archive(script))
    return path
