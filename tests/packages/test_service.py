# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
"""The service of pvrdmad under Debian's systemd, in a VM: start, upgrade, ends of its processes. service.sh is its script."""

import shutil
import subprocess

from conftest import BUILD, ROOT, output_of
from vms import make_disk, rules_of, run_until_off

RULES = {
    "the service starts, and guests attach", "QEMUs of another user connect",
    "an instance is a process with a user, a folder, a control group and a memory limit of its own", "a reload without another program keeps the process",
    "a reload starts another program, and traffic goes on", "systemd supervises the new process, and hears its heartbeat",
    "the running process goes on if the new one is killed", "no message is lost or comes twice",
    "VMs outlive the running process if it is killed in an upgrade",
    "systemd starts the service again if the running process is killed", "the service stops",
    "the service starts when its address has come",
}


def copy_guests(share):
    """The program with the fake guests, and the libraries of this system, which the VM's may be older than."""
    program = f"{output_of(BUILD / 'host')}/tests/hosts/hosts_verify"
    shutil.copy(program, share)
    listing = subprocess.run(["ldd", program], capture_output=True, text=True, check=True).stdout
    for path in (word for word in listing.split() if word.startswith("/")):
        shutil.copy(path, share / "ld.so" if "/ld-linux" in path else share)


def test_commands_for_tenants_are_those_of_the_document():
    """service.sh runs them, with names of its own."""
    words = (ROOT / "docs/install.md").read_text().split("### Tenants")[1].split("\n\n* ")[0]
    script = (ROOT / "tests/packages/service.sh").read_text()
    commands = [line.strip() for line in words.splitlines() if line.startswith("    ")]
    assert len(commands) == 6
    assert [command for command in commands if command not in script] == []


def test_service_is_upgraded_under_systemd(packages, folder):
    share = make_disk(packages, folder, "service.sh", "pvrdmad")
    copy_guests(share)
    run_until_off(folder, [folder / "disk"])
    found, output = rules_of(share, 1)
    assert found == RULES, output[-6000:] + (folder / "console1").read_text(errors="replace")[-1500:]
