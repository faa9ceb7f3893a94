# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
"""The module for SELinux with the policy of Debian 12, by the commands of docs/libvirt.md: selinux.sh says what is checked."""

import pathlib
import re
import subprocess

from conftest import BUILD, ROOT, output_of

RULES = ["the module is built and installed", "libvirt and its QEMUs connect", "other domains do not connect",
         "files have their contexts"]
DOCUMENT = (ROOT / "docs" / "libvirt.md").read_text(encoding="utf-8")


def test_module_lets_only_libvirt_connect(tmp_path):
    commands, = re.findall(r"^( {4}cp /usr/share/pvrdmad/selinux/.*\n(?: {4}.*\n)+)", DOCUMENT, re.M)
    (tmp_path / "commands").write_text(commands)
    tarball = output_of(ROOT / "scripts" / "fetch" / "root", "bookworm", "selinux")
    done = subprocess.run([BUILD / "in-root", "--bind", f"{ROOT}/packaging/selinux:/selinux", "--bind", f"{tmp_path}:/job",
                           "--bind", f"{pathlib.Path(__file__).parent}:/tests", tarball, "sh", "/tests/selinux.sh"],
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
    assert done.returncode == 0, done.stdout[-4000:]
    assert [line[3:] for line in done.stdout.splitlines() if line.startswith("ok ")] == RULES
