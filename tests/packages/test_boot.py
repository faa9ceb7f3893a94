# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
"""Boot and shutdown of a host under Debian's systemd, with libvirtd, a domain that it starts, and libvirt-guests."""

import pathlib

from conftest import ROOT, output_of
from vms import make_disk, rules_of, run_until_off

STARTS = "libvirt has started the domain at boot, with its adapter"
STOPS = "at shutdown libvirt-guests has ended the domain, and then the service has stopped"


def test_domain_starts_at_boot_and_ends_before_its_device(packages, folder):
    qemu = pathlib.Path(output_of(ROOT / "scripts" / "fetch" / "qemu")).parent
    share = make_disk(packages, folder, "boot.sh", "pvrdmad", variant="host", binds=[f"{qemu}:/qemu"])
    for rules in ({STARTS}, {STARTS, STOPS}):
        run_until_off(folder, [folder / "disk"])
        found, output = rules_of(share, 1)
        assert found == rules, output[-6000:] + (folder / "console1").read_text(errors="replace")[-1500:]
