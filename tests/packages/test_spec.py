# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
"""The SPEC file for RPM distributions, by rpmlint of Debian 12, and its files against those of the Debian packages."""

import re
import subprocess

from conftest import BUILD, ROOT, output_of

SPEC = ROOT / "packaging" / "rpm" / "pvrdma.spec"


def test_rpmlint_finds_no_error():
    tarball = output_of(ROOT / "scripts" / "fetch" / "root", "bookworm", "build")
    done = subprocess.run([BUILD / "in-root", "--bind", f"{SPEC.parent}:/spec", tarball, "rpmlint", "/spec/pvrdma.spec"],
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
    assert " 0 errors" in done.stdout, done.stdout
    assert ": E: " not in done.stdout


def test_maintainer_is_that_of_the_debian_packages():
    control = (ROOT / "packaging" / "debian" / "control").read_text()
    maintainer = re.search(r"^Maintainer: (.*)$", control, re.M)[1]
    assert re.search(r"^\* \w+ \w+ \d+ \d+ (.*) - \S+$", SPEC.read_text(), re.M)[1] == maintainer


def test_installed_files_are_in_a_package():
    text = SPEC.read_text()
    install, files = text.split("%install")[1].split("%post")[0], text.split("%files", 1)[1]
    installed = re.findall(r"%{buildroot}(%{_unitdir}/\S+)", install)
    assert len(installed) == 2
    assert [path for path in installed if f"\n{path}\n" not in files] == []
    assert not re.search(r"^%{_", install, re.M)  # the shell would execute it


def test_files_that_it_names_exist():
    words = SPEC.read_text().split()
    named = {word.rstrip(".") for word in words if word.startswith(("packaging/", "docs/", "scripts/", "include/", "drivers/"))}
    assert named
    assert [word for word in sorted(named) if not list(ROOT.glob(word))] == []
