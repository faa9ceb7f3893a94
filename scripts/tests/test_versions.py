# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
"""The version is in the file VERSION; CHANGELOG.md and the SPEC file have the same, and the versions of the interfaces."""

import re

from conftest import ROOT

VERSION = (ROOT / "VERSION").read_text().strip()
CHANGELOG = (ROOT / "CHANGELOG.md").read_text()
NEWEST = re.split(r"^## ", CHANGELOG, flags=re.M)[1]


def row(name):
    return re.search(rf"^\| {name}.*\| (.*) \|$", NEWEST, re.M)[1]


def constant(path, name):
    return int(re.search(rf"\b{name}(?: =)? (\d+)", (ROOT / path).read_text())[1])


def test_changelog_begins_with_the_version():
    assert NEWEST.splitlines()[0].split()[-1].strip("[]") == VERSION or VERSION in NEWEST.splitlines()[0].split()


def test_changelog_has_the_versions_of_the_abi():
    revisions = re.search(r'PVR_REVISION_NAMES "(.*)"', (ROOT / "qemu-device/ctrl/revision.h").read_text())[1]
    abi = "include/pvrdma_abi.h"
    assert row("device ABI") == (f"VERSION register {constant(abi, 'PVR_VERSION_ROCEV1')} to {constant(abi, 'PVR_VERSION')}; "
                                 f"hardware versions {revisions}")


def test_changelog_has_the_version_of_the_pipe_protocol():
    assert row("pipe protocol") == str(constant("qemu-device/path/pipe/frame.h", "PVR_FRAME_VERSION"))


def test_changelog_has_the_provider_abi():
    assert f"libpvrdma-rdmav{row('private provider ABI')}.so" in (ROOT / "scripts/build/provider").read_text()


def test_spec_file_has_the_version():
    spec = (ROOT / "packaging/rpm/pvrdma.spec").read_text()
    assert re.search(r"^Version: *(\S+)$", spec, re.M)[1] == VERSION
    assert re.search(r"^\* .* - (\S+)-1$", spec, re.M)[1] == VERSION
