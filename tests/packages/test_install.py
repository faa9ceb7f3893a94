# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
"""Installation in a clean root, a second time, an upgrade, removal: install.sh says what is checked."""

from conftest import NEXT, Packages

RULES = ["pvrdmad runs", "dkms built the driver", "provider replaces vmw_pvrdma", "driver replaces vmw_pvrdma",
         "libibverbs and systemd have no complaint", "a second installation changes nothing",
         "dkms refuses a kernel that is too old", "dkms names the headers that are missing",
         "removal keeps the configuration only", "a purge leaves nothing"]
UPGRADE_RULES = ["a kernel upgrade builds the driver", "an upgrade replaces the driver", "an upgrade keeps the configuration", "an upgrade keeps the provider"]


def rules_of(done):
    assert done.returncode == 0, "\n".join(done.stdout.splitlines()[-40:])
    return {line.removeprefix("ok ") for line in done.stdout.splitlines() if line.startswith("ok ")}


def test_packages_are_installed_twice_and_removed(in_root):
    assert rules_of(in_root("install.sh")) == set(RULES)


def test_upgrade_keeps_the_configuration(packages, in_root):
    later = Packages(packages.suite, "--version", NEXT)
    assert rules_of(in_root("install.sh", "upgrade", binds=[f"{later.folder}:/next"])) == {*RULES, *UPGRADE_RULES}
