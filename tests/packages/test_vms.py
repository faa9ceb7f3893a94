# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
"""Two plain VMs with the packages of a VM, on a host with the package of a host: node.sh and host.sh say what they do."""

import contextlib
import re
import shutil
import subprocess

from conftest import BUILD, ROOT, output_of
from vms import HERE, make_disk, process, readme_options, rules_of, run_until_off

INSTALL = (ROOT / "docs" / "install.md").read_text(encoding="utf-8")
RULES = {"the driver is loaded at boot instead of vmw_pvrdma", "ibv_rc_pingpong", "rping"}
RULES_OF = {
    1: RULES | {"the provider is loaded", "the service runs and adds an adapter", "removal stops the service"},
    2: RULES | {"removal beside the loaded driver"},
}


@contextlib.contextmanager
def host(packages, folder):
    """pvrdmad of the package, with its sockets in folder/run."""
    (folder / "run").mkdir()
    tarball = output_of(ROOT / "scripts" / "fetch" / "root", packages.suite, "install")
    with open(folder / "host.log", "w", encoding="utf-8") as log, \
            subprocess.Popen([BUILD / "in-root", "--bind", f"{packages.folder}:/debs", "--bind", f"{HERE}:/tests",
                              "--bind", f"{folder}/run:/run/pvrdma", tarball, "sh", "/tests/host.sh"],
                             stdin=subprocess.PIPE, stdout=log, stderr=log) as child:
        process.wait_for(lambda: (folder / "run" / "started").exists() or child.poll() is not None, 300)
        assert child.poll() is None, (folder / "host.log").read_text()[-3000:]
        yield
        child.stdin.close()
        assert child.wait(60) == 0, (folder / "host.log").read_text()[-3000:]


def test_every_command_of_the_documentation_is_tested():
    commands = {line.strip() for line in re.findall(r"^ {4}(\S.*)$", INSTALL, re.M)}
    assert {command.split("  ")[0] for command in commands} == {
        "make deb", "make deb SUITE=trixie",  # the fixture packages
        "apt install ./pvrdmad_*.deb", "systemctl start pvrdmad",  # node.sh, and pvrdmactl
        "systemctl reload pvrdmad",  # service.sh
        next(command for command in commands if command.startswith("pvrdmactl add-adapter ")),
        "apt install linux-headers-amd64 ./pvrdma-dkms_*.deb ./pvrdma-provider_*.deb", "reboot",  # disk.sh
    }


def test_plain_vms_have_rdma_after_installation(packages, folder):
    share = make_disk(packages, folder, "node.sh", "pvrdma-dkms", "pvrdma-provider")
    subprocess.run(["cp", "--sparse=always", folder / "disk", folder / "disk2"], check=True)
    (share / "add-adapter").write_text(re.search(r"^    (pvrdmactl add-adapter .*\n)", INSTALL, re.M)[1])
    shutil.copy(packages.files["pvrdmad"], share)
    with host(packages, folder):
        run_until_off(folder, [folder / "disk", folder / "disk2"], readme_options)
        consoles = "".join((folder / f"console{node}").read_text(errors="replace")[-1500:] for node in RULES_OF)
        for node, rules in RULES_OF.items():
            found, output = rules_of(share, node)
            assert found == rules, output[-4000:] + consoles
