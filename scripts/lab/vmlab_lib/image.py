# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
"""The guest's root file system: a squashfs of Debian packages, independent of the kernel."""

import os
import platform
import re
import subprocess

from . import cache, process
from .errors import LabError

SUITE = "bookworm"
PACKAGES = [
    "ibverbs-providers", "ibverbs-utils", "iproute2", "iputils-ping", "kmod", "mount",
    "perftest", "procps", "rdma-core", "rdmacm-utils", "strace",
]
# lz4 costs a TCG guest least to read.
COMPRESSOR = "lz4"
DPKG_OPTIONS = ["path-exclude=/usr/share/man/*", "path-exclude=/usr/share/locale/*"]


def root_image(extra_packages, progress):
    """Return the path of a root image with PACKAGES and `extra_packages`."""
    packages = sorted(set(PACKAGES) | set(extra_packages))
    key = cache.key(SUITE, COMPRESSOR, *DPKG_OPTIONS, *packages)

    def build(path):
        with progress.step("building the guest image (once for this list of packages)"):
            _build(path, path.parent / f"root-{key}.log", packages)

    return cache.get("images", f"root-{key}.sqfs", build)


def _archives():
    """URIs from which this system's apt gets each release's main packages: {"bookworm": URI, ...}."""
    form = "$(REPO_URI) $(RELEASE) $(COMPONENT)"
    found = subprocess.run(["apt-get", "indextargets", "--format", form, "Created-By: Packages"],
                           capture_output=True, text=True, check=False)
    lines = [line.split() for line in found.stdout.splitlines()]
    return {words[1]: words[0].rstrip("/") for words in reversed(lines) if words[2:] == ["main"]}


def _host_release():
    try:
        release = platform.freedesktop_os_release()
    except OSError:
        return None
    return release.get("VERSION_CODENAME") if release.get("ID") == "debian" else None


def _sources():
    """From $PVRDMA_MIRROR, else from the archive that this system uses; its security archive if it has one."""
    archives = _archives()
    mirror = os.environ.get("PVRDMA_MIRROR") or archives.get(SUITE) or archives.get(_host_release())
    if not mirror:
        raise LabError(f"apt has no source for Debian {SUITE}: set PVRDMA_MIRROR to the URI of a Debian archive")
    sources = [f"deb {mirror} {SUITE} main", f"deb {mirror} {SUITE}-updates main"]
    security = archives.get(f"{SUITE}-security")
    return sources + ([f"deb {security} {SUITE}-security main"] if security else [])


def _build(path, log, packages):
    options = [f"--dpkgopt={option}" for option in DPKG_OPTIONS]
    command = ["mmdebstrap", "--mode=auto", "--variant=apt", "--architectures=amd64",
               f"--include={','.join(packages)}", *options, SUITE, "-", *_sources()]
    pack = ["tar2sqfs", "--quiet", "--no-skip", "--force", "--compressor", COMPRESSOR, path]
    with open(log, "w") as stderr:
        make = process.spawn(command, stdout=subprocess.PIPE, stderr=stderr)
        try:
            squash = process.spawn(pack, stdin=make.stdout, stdout=stderr, stderr=stderr)
            try:
                make.stdout.close()
                failed = make.wait() or squash.wait()
            finally:
                process.stop(squash)
        finally:
            process.stop(make)
    unknown = re.findall(r"^E: (?:Unable to locate package|Package) '?([^\s']+)(?:$|' has no installation candidate)",
                         log.read_text(errors="replace"), re.M)
    if failed and unknown:
        raise LabError(f"--packages: Debian {SUITE} has no {', '.join(sorted(set(unknown)))}; "
                       f"https://packages.debian.org/{SUITE}/ has a search for names")
    if failed:
        raise LabError(f"the guest image could not be built: {_reason(log)} (all of it: {log})")
    log.unlink()


def _reason(log):
    """The line of apt's or mmdebstrap's log that says most."""
    lines = [line.strip() for line in log.read_text(errors="replace").splitlines() if line.strip()]
    for line in lines:
        if line.startswith("E:") and "apt-get" not in line:
            return line
    return lines[-1] if lines else "no message"
