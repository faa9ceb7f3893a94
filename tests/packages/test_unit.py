# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
"""The service's order, and its list of system calls, which depends on systemd's version, against that of pvrdmad."""

import re
import subprocess

import pytest
from conftest import BUILD, ROOT, SUITES, output_of

CONFINE = (ROOT / "qemu-device" / "daemon" / "confine.c").read_text(encoding="utf-8")
SET_UP = {"seccomp", "setrlimit"}  # before the list is in force


def names_in(pattern):
    return set(re.findall(r'"(\w+)"', re.search(pattern, CONFINE, re.S)[1]))


def test_unit_is_ordered_and_tries_again():
    """Between the network and libvirt: at shutdown the order is the reverse. An address that comes late is no end."""
    lines = (ROOT / "packaging/systemd/pvrdmad.service").read_text(encoding="utf-8").splitlines()
    unit, service = lines[lines.index("[Unit]"):lines.index("[Service]")], lines[lines.index("[Service]"):]
    assert {"Wants=network-online.target", "After=network-online.target", "StartLimitIntervalSec=0"} <= set(unit)
    before = next(line for line in unit if line.startswith("Before="))
    assert {"libvirtd.service", "virtqemud.service", "libvirt-guests.service"} == set(before.removeprefix("Before=").split())
    assert {"Restart=on-failure", "RestartSec=1"} <= set(service)


@pytest.mark.parametrize("suite", SUITES)
def test_unit_allows_the_system_calls_of_the_daemon(suite):
    tarball = output_of(ROOT / "scripts" / "fetch" / "root", suite, "install")
    done = subprocess.run([BUILD / "in-root", "--bind", f"{ROOT}/packaging/systemd:/unit", "--bind", f"{ROOT}/tests/packages:/tests",
                           tarball, "sh", "/tests/unit.sh"], stdout=subprocess.PIPE, text=True, check=True)
    lines = [line.split() for line in done.stdout.splitlines()]
    allowed = {name for verb, name in lines if verb == "allow"} - {name for verb, name in lines if verb == "deny"}
    with_any_argument = names_in(r"\ballowed\[\] = \{(.*?)\n\};")
    with_one_argument = set(re.findall(r'add_(?:masked|int)\(ctx, "(\w+)"', CONFINE))
    assert with_any_argument and with_one_argument
    # systemd 252 has mincore() in no set of services. Only libraries call it, and none that is linked needs it.
    needed = (with_any_argument | with_one_argument | SET_UP) - {"mincore"}
    assert needed - allowed == set()
