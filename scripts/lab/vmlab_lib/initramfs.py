# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
"""The small initramfs that finds the root image: busybox, a few modules, one script."""

import lzma
import os
import pathlib
import stat
import zlib

from . import cache
from .errors import LabError

BUSYBOX = pathlib.Path("/bin/busybox")
GUEST_SCRIPTS = pathlib.Path(__file__).resolve().parents[2] / "guest"
INIT = GUEST_SCRIPTS / "initramfs-init"
MODULES = ["virtio_pci", "virtio_blk", "virtio_console", "squashfs", "overlay", "9p",
           "9pnet_virtio"]


def initramfs(release, modules):
    """Return the path of an initramfs for kernel `release`, whose modules are in `modules`."""
    files = load_order(modules, MODULES)
    key = cache.key(release, INIT.read_bytes(), BUSYBOX.read_bytes(), *map(str, files))
    return cache.get("images", f"initramfs-{release}-{key}.cpio",
                     lambda path: path.write_bytes(_archive(modules, files)))


def load_order(modules, names):
    """The module files that `names` need, each after those that it depends on.

    A name that is not in modules.dep is built into the kernel.
    """
    depends = {}
    for line in (modules / "modules.dep").read_text().splitlines():
        file, _, needs = line.partition(":")
        depends[_module_name(file)] = (file, needs.split())
    order = []
    for name in names:
        if name in depends:
            file, needs = depends[name]
            for needed in [*reversed(needs), file]:
                if needed not in order:
                    order.append(needed)
    return order


def _module_name(file):
    return os.path.basename(file).split(".ko")[0].replace("-", "_")


def _archive(modules, files):
    entries = [member(name, stat.S_IFDIR | 0o755)
               for name in ("bin", "dev", "modules", "proc", "root", "sys")]
    entries.append(member("dev/console", stat.S_IFCHR | 0o600, device=(5, 1)))
    entries.append(member("bin/busybox", stat.S_IFREG | 0o755, BUSYBOX.read_bytes()))
    entries.append(member("init", stat.S_IFREG | 0o755, INIT.read_bytes()))
    for number, file in enumerate(files):
        name = f"modules/{number:02}-{_module_name(file)}.ko"
        entries.append(member(name, stat.S_IFREG | 0o644, unpacked(modules / file)))
    entries.append(member("TRAILER!!!", 0))
    return b"".join(entries)


def unpacked(path):
    data = path.read_bytes()
    if path.suffix == ".xz":
        return lzma.decompress(data)
    if path.suffix == ".gz":
        return zlib.decompress(data, wbits=31)
    if path.suffix != ".ko":
        raise LabError(f"{path}: modules compressed like this cannot be put in the initramfs")
    return data


def member(name, mode, data=b"", device=(0, 0)):
    """One member of a cpio archive in the kernel's "newc" format."""
    links = 2 if stat.S_ISDIR(mode) else 1
    fields = [0, mode, 0, 0, links, 0, len(data), 0, 0, *device, len(name) + 1, 0]
    header = b"070701" + b"".join(b"%08X" % field for field in fields)
    return _padded(header + name.encode() + b"\0") + _padded(data)


def _padded(data):
    return data + b"\0" * (-len(data) % 4)
