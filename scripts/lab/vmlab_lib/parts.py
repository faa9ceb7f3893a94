# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
"""The parts of the VMs: found, fetched or built before the first VM boots."""

import dataclasses
import os
import pathlib
import shutil
import struct

from . import cache, image, initramfs, modules, process, qemu, ssh
from .errors import LabError
from .options import BUILD, OVERLAY, ROOT, SCRIPTS

PT_INTERP = 3
PROVIDER_FILES = ("libpvrdma-rdmav34.so", "pvrdma.driver")


@dataclasses.dataclass
class Parts:
    qemu: str
    kernel: pathlib.Path
    modules: pathlib.Path
    initramfs: pathlib.Path
    image: pathlib.Path
    drivers: dict                    # driver: the .ko to load, if it is not the kernel's own
    provider: pathlib.Path | None    # folder with PROVIDER_FILES
    extra: list = dataclasses.field(default_factory=list)  # further .ko files of the user
    rdma_core: pathlib.Path | None = None  # folder with the files that replace the guest's


def gather(options, progress):
    """Return the Parts for these options; builds or fetches what is not there."""
    _check_host_packages()
    if ssh.SERVER in options.packages:
        ssh.check_host()
    try:
        return _gather(options, progress)
    except LabError as err:
        raise LabError(cache.trouble(str(err)) or str(err)) from err
    except OSError as err:
        reason = f"{err.filename}: {err.strerror}" if err.filename else str(err)
        raise LabError(cache.trouble(reason) or reason) from err


def _qemu(options, progress):
    if options.qemu == OVERLAY:
        return process.run_step([SCRIPTS / "build/qemu"], progress)
    if options.qemu:
        return options.qemu
    try:
        return process.run_step([SCRIPTS / "fetch/qemu"], progress)
    except LabError as err:
        if os.environ.get("QEMU") or cache.VARIABLE in str(err):
            raise  # it says what to do
        raise LabError(f"no QEMU {'.'.join(map(str, qemu.OLDEST))} or newer is installed, and none can be fetched ({err}): "
                       "install one, or name it with --qemu") from err


def _image_of(kernel):
    """What QEMU boots of a folder of fetch/kernel. Only Debian's kernels are unpacked there."""
    return next(path for path in (kernel / "vmlinux", kernel / "vmlinuz") if path.exists())


def _gather(options, progress):
    program = _qemu(options, progress)
    qemu.check_version(program)
    kernel = pathlib.Path(process.run_step([SCRIPTS / "fetch/kernel", options.kernel], progress))
    release = (kernel / "release").read_text().strip()
    mine = modules.of_user(options, release, progress)
    return Parts(
        qemu=program, kernel=_image_of(kernel), modules=kernel / "modules",
        initramfs=initramfs.initramfs(release, kernel / "modules"),
        image=image.root_image(options.packages, progress),
        drivers=_drivers(options, mine.driver, progress), extra=mine.others,
        provider=_provider(options, progress), rdma_core=_rdma_core(options, progress))


def _check_host_packages():
    needs = {"mmdebstrap": "mmdebstrap", "tar2sqfs": "squashfs-tools-ng"}
    if os.geteuid() != 0:
        needs["newuidmap"] = "uidmap"
    missing = [package for command, package in needs.items() if not shutil.which(command)]
    if not _is_static(initramfs.BUSYBOX):
        missing.append("busybox-static")
    if missing:
        raise LabError(f"host packages are missing: say apt-get install {' '.join(missing)}")


def _is_static(path):
    """Return: True if `path` is a 64-bit ELF program that names no loader (PT_INTERP)."""
    try:
        data = path.read_bytes()
    except OSError:
        return False
    if data[:5] != b"\x7fELF\x02":
        return False
    offset, = struct.unpack_from("<Q", data, 0x20)
    size, count = struct.unpack_from("<HH", data, 0x36)
    types = [struct.unpack_from("<I", data, offset + n * size)[0] for n in range(count)]
    return PT_INTERP not in types


def _is_stale(results, *sources):
    """Return: True if a result is missing or older than a source; a build may leave a result as it was."""
    if not all(result.exists() for result in results):
        return True
    made = max(result.stat().st_mtime for result in results)
    files = [ROOT / source for source in sources]
    files += [file for folder in files for file in folder.rglob("*.[ch]")]
    return any(file.is_file() and file.stat().st_mtime > made for file in files)


def _drivers(options, users, progress):
    """`users` is a module of the user in place of the driver, or None."""
    return {driver: users or _driver(options, driver, progress)
            for driver in options.drivers if driver in ("pvrdma", "vmw_pvrdma")}


def _driver(options, driver, progress):
    if driver == "vmw_pvrdma":
        return _file(process.run_step([SCRIPTS / "fetch/vmw-pvrdma", options.kernel], progress))
    path = BUILD / f"module-{options.kernel}" / "pvrdma.ko"
    if _is_stale([path], "VERSION", "Kbuild", "include", "drivers"):
        process.run_step([SCRIPTS / "build/module", options.kernel], progress)
    return _file(path)


def _rdma_core(options, progress):
    if not options.rdma_core:
        return None
    ours = ["--with-pvrdma"] if "pvrdma" in options.providers else []
    return pathlib.Path(process.run_step([SCRIPTS / "build/user-rdma-core", *ours, options.rdma_core], progress))


def _provider(options, progress):
    if "pvrdma" not in options.providers or options.rdma_core:
        return None
    folder = BUILD / "provider"
    if _is_stale([folder / name for name in PROVIDER_FILES], "include", "rdma-core-provider/providers"):
        process.run_step([SCRIPTS / "build/provider"], progress)
    for name in PROVIDER_FILES:
        _file(folder / name)
    return folder


def _file(path):
    path = pathlib.Path(path)
    if not path.is_file():
        raise LabError(f"there is no {path}: say `make` first")
    return path
