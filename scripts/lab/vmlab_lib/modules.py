# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
"""Kernel modules of the user: --module FILE or a folder with the source of one."""

import dataclasses
import os
import pathlib
import subprocess

from . import process
from .errors import LabError
from .options import SCRIPTS

# PCI alias of the RDMA device: a module that has it is a driver of the device.
DEVICE = "pci:v000015ADd00000820"


@dataclasses.dataclass
class Modules:
    driver: pathlib.Path | None = None
    others: list = dataclasses.field(default_factory=list)


def _info(path, field):
    """Values of a field of the module."""
    env = {**os.environ, "PATH": f"{os.environ.get('PATH', '')}:/usr/sbin:/sbin"}
    try:
        done = subprocess.run(["modinfo", "-F", field, path], capture_output=True, text=True, check=False, env=env)
    except OSError as err:
        raise LabError(f"modinfo: {err.strerror}: say apt-get install kmod") from err
    return done.stdout.splitlines() if done.returncode == 0 else []


def _check(path, release):
    versions = _info(path, "vermagic")
    if not versions:
        raise LabError(f"--module {path}: is no kernel module")
    if versions[0].split()[0] != release:
        raise LabError(f"--module {path}: is built for kernel {versions[0].split()[0]}, and the VMs have {release}: "
                       "name the folder of its source, or another --kernel")


def of_user(options, release, progress):
    """Return the modules of --module, for the kernel `release`. Those of folders are built."""
    found = Modules()
    for path in options.module:
        if path.is_dir():
            path = pathlib.Path(process.run_step([SCRIPTS / "build/user-module", options.kernel, path], progress))
        _check(path, release)
        if not any(alias.startswith(DEVICE) for alias in _info(path, "alias")):
            found.others.append(path)
        elif found.driver:
            raise LabError(f"--module {path}: is a second driver of the device, after {found.driver}")
        elif not options.needs_daemon:
            raise LabError(f"--module {path}: is a driver of a device that --driver {options.driver} does not have")
        else:
            found.driver = path
    return found
