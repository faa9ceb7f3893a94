# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
"""What each package has: its files, its dependencies, its version; what lintian finds."""

import re

import pytest
from conftest import ROOT, VERSION

DOC = "usr/share/doc"
SOURCE = f"usr/src/pvrdma-{VERSION}"
LAB = "usr/share/pvrdma-lab"


def of_tree(place, *patterns):
    return {f"{place}/{path.relative_to(ROOT)}" for pattern in patterns for path in ROOT.glob(pattern)
            if path.is_file() and "__pycache__" not in path.parts and not path.name.startswith(".")
            and not path.name.endswith((".o", ".ko", ".mod", ".mod.c"))}


DRIVER = ("VERSION", "Kbuild", "drivers/*.[ch]", "drivers/Kbuild", "include/*.h")
FILES = {
    "pvrdmad": {
        "etc/pvrdma/pvrdmad.conf", "etc/libvirt/hooks/qemu.d/pvrdma",
        "etc/apparmor.d/abstractions/libvirt-qemu.d/pvrdma", "usr/share/pvrdma/no-migration.vdi",
        "usr/sbin/pvrdmad", "usr/sbin/pvrdmactl",
        "lib/systemd/system/pvrdmad.service", "lib/systemd/system/pvrdmad@.service", "usr/lib/sysusers.d/pvrdmad.conf",
        "usr/share/man/man8/pvrdmad.8.gz", "usr/share/man/man8/pvrdmactl.8.gz", "usr/share/man/man5/pvrdmad.conf.5.gz",
        "usr/share/pvrdmad/prometheus/pvrdma.rules.yml", "usr/share/pvrdmad/grafana/pvrdma.json",
        "usr/share/pvrdmad/selinux/pvrdma.te", "usr/share/pvrdmad/selinux/pvrdma.fc",
        "usr/share/bash-completion/completions/pvrdmad", "usr/share/bash-completion/completions/pvrdmactl",
        "usr/share/zsh/vendor-completions/_pvrdmad", "usr/share/zsh/vendor-completions/_pvrdmactl",
    },
    "pvrdma-dkms": {f"{SOURCE}/dkms.conf", "usr/lib/modprobe.d/pvrdma.conf", *of_tree(SOURCE, *DRIVER)},
    "pvrdma-provider": {
        "usr/lib/x86_64-linux-gnu/libibverbs/libpvrdma-rdmav34.so", "usr/share/pvrdma-provider/pvrdma.driver",
    },
    "pvrdma-lab": {
        "usr/bin/pvrdma-lab", "usr/share/man/man1/pvrdma-lab.1.gz", "usr/share/bash-completion/completions/pvrdma-lab",
        *of_tree(LAB, *DRIVER, "rdma-core-provider/providers/**/*", "scripts/fetch/*", "scripts/guest/**/*",
                 "scripts/lab/**/*", "scripts/lib/*", "scripts/vmlab", "scripts/build/module", "scripts/build/provider",
                 "scripts/build/libvfio-user", "scripts/build/*debug*", "scripts/build/user-*"),
    },
}


def plain(path):
    """In the unmerged form, in which Debian 12 has units."""
    return re.sub(r"^usr/lib/systemd/", "lib/systemd/", path)


def test_packages_are_these(packages):
    assert set(packages.files) - {name for name in packages.files if name.endswith("-dbgsym")} == set(FILES)


@pytest.mark.parametrize("package", FILES)
def test_files_are_these(packages, package):
    found = {plain(path) for path in packages.paths(package) if not path.startswith((f"{DOC}/", "usr/share/lintian/"))}
    assert found == FILES[package]


@pytest.mark.parametrize("package", FILES)
def test_version_is_that_of_the_file(packages, package):
    release = {"bookworm": "deb12", "trixie": "deb13"}[packages.suite]
    assert packages.field(package, "Version") == f"{VERSION}+{release}"


@pytest.mark.parametrize("package, pattern", [
    ("pvrdmad", r"libc6 .*libcurl4.*libibverbs1.*libjson-c5.*libseccomp2.*libssl3.*libxml2"),
    ("pvrdma-dkms", r"dkms"),
    ("pvrdma-provider", r"libibverbs1.*ibverbs-providers"),
    ("pvrdma-lab", r"mmdebstrap.*pvrdmad"),
])
def test_dependencies(packages, package, pattern):
    assert re.search(pattern, packages.field(package, "Depends"))


def test_lintian_finds_no_error(packages):
    found = (packages.folder / "lintian.txt").read_text().splitlines()
    assert [line for line in found if line.startswith("E:")] == []
