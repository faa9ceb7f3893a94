# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
"""pvrdmactl domain-xml: libvirt domains for an adapter."""

import os
import pathlib
import re
import shutil
import subprocess
import xml.etree.ElementTree as ElementTree

import pytest

from daemon_process import PATIENCE, PVRDMACTL, mac
from domains import DOMAIN, MAC, devices, nodes, settings, values

SOCKET = "/run/pvrdma/vm1.sock"
ADAPTER = f"name=vm1,socket={SOCKET},mac={MAC}"
ARG = "<qemu:arg value='{}'/>"


def with_command_line(*words):
    """DOMAIN with these words for QEMU."""
    text = DOMAIN.replace("<domain ", "<domain xmlns:qemu='http://libvirt.org/schemas/domain/qemu/1.0' ")
    args = "".join(ARG.format(word) for word in words)
    return text.replace("</domain>", f"<qemu:commandline>{args}</qemu:commandline></domain>")


def run(*args, text=None):
    return subprocess.run([PVRDMACTL, *map(str, args)], input=text, capture_output=True, text=True, timeout=PATIENCE, check=False)


def insert(text, *args, adapter=ADAPTER):
    """The domain with the adapter."""
    done = run("domain-xml", "--vm", "-", *args, adapter, text=text)
    assert done.returncode == 0, done.stderr
    return done.stdout


def refused(text, *args):
    """The line on standard error, without the program's name."""
    done = run("domain-xml", "--vm", "-", *args, ADAPTER, text=text)
    assert done.returncode == 1 and not done.stdout
    line, = done.stderr.splitlines()
    assert line.startswith("pvrdmactl: ")
    return line


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "guest.xml"
    path.write_text(DOMAIN)
    return path


def test_domain_gets_shared_memory_a_port_and_the_device():
    text = insert(DOMAIN)
    root = ElementTree.fromstring(text)
    assert root.find("memoryBacking/source").get("type") == "memfd"
    assert root.find("memoryBacking/access").get("mode") == "shared"
    port, device = devices(text)
    assert port == {"driver": "pcie-root-port", "id": "port-of-pvrdma-vm1", "chassis": 255, "mem-reserve": 16 << 20}
    assert device == {"driver": "vfio-user-pci", "id": "pvrdma-vm1", "bus": "port-of-pvrdma-vm1",
                      "socket": {"type": "unix", "path": SOCKET}, "x-no-posted-writes": True}
    assert settings(text) == [ADAPTER]


def test_domain_keeps_all_else():
    text = insert(DOMAIN)
    assert "<!-- a comment of the operator -->" in text
    before, after = ElementTree.fromstring(DOMAIN), ElementTree.fromstring(text)
    for node in before:
        assert ElementTree.canonicalize(ElementTree.tostring(node), strip_text=True) == \
            ElementTree.canonicalize(ElementTree.tostring(after.find(node.tag)), strip_text=True)


def test_second_run_changes_nothing():
    once = insert(DOMAIN)
    assert insert(once) == once


def test_second_adapter_is_added_and_repeated_without_a_change():
    other = "name=vm1b,socket=/run/pvrdma/b,mac=52:54:00:00:00:99"
    both = insert(insert(DOMAIN), adapter=other)
    assert [device.get("id") for device in devices(both)] == ["port-of-pvrdma-vm1", "pvrdma-vm1", "port-of-pvrdma-vm1b", "pvrdma-vm1b"]
    assert [device.get("chassis") for device in devices(both)] == [255, None, 254, None]
    assert settings(both) == [ADAPTER, other]
    assert insert(both, adapter=other) == both


def test_new_socket_replaces_the_old_one():
    moved = insert(insert(DOMAIN), adapter=ADAPTER.replace(SOCKET, "/run/pvrdma/new"))
    assert [device["socket"]["path"] for device in devices(moved) if "socket" in device] == ["/run/pvrdma/new"]
    assert settings(moved) == [ADAPTER.replace(SOCKET, "/run/pvrdma/new")]


def test_device_written_by_hand_is_replaced():
    text = insert(with_command_line("-device", f'{{"driver":"vfio-user-pci","socket":{{"type":"unix","path":"{SOCKET}"}}}}', "-foo", "bar"))
    device, port = devices(text)
    assert (device["id"], port["driver"]) == ("pvrdma-vm1", "pcie-root-port")
    assert values(text)[2:4] == ["-foo", "bar"]


def test_posted_writes_are_off_unless_the_option_is_given():
    text = insert(insert(DOMAIN), "--posted-writes")
    assert "x-no-posted-writes" not in devices(text)[1]
    assert devices(insert(text))[1]["x-no-posted-writes"] is True


def test_migratable_device_has_no_guard():
    text = insert(DOMAIN, "--migratable")
    device = {"driver": "pvrdma", "id": "pvrdma-vm1", "bus": "port-of-pvrdma-vm1", "path": SOCKET, "x-no-posted-writes": True}
    assert devices(text)[1] == device
    assert nodes(text) == []
    assert insert(text, "--migratable") == text


def test_migratable_device_and_the_stock_one_replace_each_other():
    stock, migratable = insert(DOMAIN), insert(DOMAIN, "--migratable")
    assert sorted(values(insert(stock, "--migratable"))) == sorted(values(migratable))
    assert sorted(values(insert(migratable))) == sorted(values(stock))
    assert insert(migratable, "--unplugged") == insert(DOMAIN, "--unplugged")


def test_guard_stays_beside_a_migratable_device_for_a_stock_one():
    other = "name=vm1b,socket=/run/pvrdma/b,mac=52:54:00:00:00:99"
    text = insert(insert(insert(DOMAIN), adapter=other), "--migratable")
    assert [device["driver"] for device in devices(text)] == ["pcie-root-port", "pvrdma", "pcie-root-port", "vfio-user-pci"]
    assert len(nodes(text)) == 1
    assert nodes(insert(text, "--migratable", adapter=other)) == []


@pytest.mark.parametrize("backing", [
    "<memoryBacking/>",
    "<memoryBacking><hugepages/></memoryBacking>",
    "<memoryBacking><source type='file'/><access mode='shared'/></memoryBacking>",
])
def test_memory_backing_that_can_be_shared_is_kept(backing):
    root = ElementTree.fromstring(insert(DOMAIN.replace("<vcpu", backing + "<vcpu")))
    kept, = root.findall("memoryBacking")
    assert kept.find("access").get("mode") == "shared"
    assert kept.find("source").get("type") == ("file" if "file" in backing else "memfd")
    assert (kept.find("hugepages") is not None) == ("hugepages" in backing)


def test_adapter_of_a_name_is_that_of_the_running_daemon(daemon):
    text = insert(DOMAIN.replace(MAC.upper(), mac(1)), "--control", daemon.control, adapter="node1")
    assert devices(text)[1]["socket"]["path"] == str(daemon.socket(1))
    assert settings(text) == []


def test_adapter_that_the_daemon_has_by_itself_is_not_the_hooks(daemon):
    """The hook would remove it when the VM ends."""
    hooked = insert(DOMAIN.replace(MAC.upper(), mac(1)), adapter=f"name=node1,socket=/x,mac={mac(1)}")
    assert settings(hooked)
    assert "metadata" not in insert(hooked, "--control", daemon.control, adapter="node1")


def test_without_a_domain_an_example_is_printed():
    done = run("domain-xml", ADAPTER)
    assert done.returncode == 0
    assert insert(done.stdout) == done.stdout
    assert f'<mac address="{MAC}"/>' in done.stdout


# ----------------------------------------------------------------------- migration, hot plug


def test_domain_has_a_node_that_qemu_does_not_migrate():
    text = insert(DOMAIN)
    node, = nodes(text)
    image = pathlib.Path(node["file"].pop("filename"))
    assert node == {"driver": "vdi", "node-name": "pvrdma-is-plugged", "read-only": True, "file": {"driver": "file"}}
    assert (image.name, image.stat().st_size) == ("no-migration.vdi", 1024)


def test_operator_is_warned_if_qemu_will_migrate(tmp_path):
    """Without the image. QEMU itself does not refuse."""
    program = shutil.copy(pathlib.Path(PVRDMACTL).resolve(), tmp_path)
    done = subprocess.run([program, "domain-xml", ADAPTER], capture_output=True, text=True, check=True)
    assert re.search("note: .*/no-migration.vdi is not installed: QEMU 11.1 will migrate and save this VM without", done.stderr)
    assert nodes(done.stdout) == []
    assert "no-migration" not in run("domain-xml", ADAPTER).stderr


def test_unplugged_domain_has_all_but_the_device():
    plugged = insert(DOMAIN)
    text = insert(plugged, "--unplugged")
    port, = devices(text)
    assert port == devices(plugged)[0]
    assert (nodes(text), settings(text)) == ([], [ADAPTER])
    assert len(values(text)) == 2
    assert insert(DOMAIN, "--unplugged") == text
    assert sorted(values(insert(text))) == sorted(values(plugged))


def test_unplugged_adapter_leaves_the_other_one():
    other = "name=vm1b,socket=/run/pvrdma/b,mac=52:54:00:00:00:99"
    text = insert(insert(insert(DOMAIN), adapter=other), "--unplugged")
    assert [device["id"] for device in devices(text)] == ["port-of-pvrdma-vm1", "port-of-pvrdma-vm1b", "pvrdma-vm1b"]
    assert len(nodes(text)) == 1


# ------------------------------------------------------------------------------ the file


def test_file_is_changed_in_place(file):
    file.chmod(0o640)
    before = file.stat().st_ino
    done = run("domain-xml", "--vm", file, ADAPTER)
    assert (done.returncode, done.stdout) == (0, "")
    assert file.read_text() == insert(DOMAIN)
    assert file.stat().st_mode & 0o777 == 0o640
    assert file.stat().st_ino != before, "the file is written, not replaced: a reader may see half of it"
    assert os.listdir(file.parent) == ["guest.xml"]


def test_link_to_a_file_stays_a_link(file):
    link = file.parent / "link"
    link.symlink_to(file)
    assert run("domain-xml", "--vm", link, ADAPTER).returncode == 0
    assert link.is_symlink() and file.read_text() == insert(DOMAIN)


def test_file_of_a_refused_domain_is_unchanged(file):
    file.write_text(DOMAIN.replace("q35", "i440fx"))
    done = run("domain-xml", "--vm", file, ADAPTER)
    assert done.returncode == 1
    assert file.read_text() == DOMAIN.replace("q35", "i440fx")


def test_file_that_is_not_there(tmp_path):
    done = run("domain-xml", "--vm", tmp_path / "nix", ADAPTER)
    assert (done.returncode, done.stderr) == (1, f"pvrdmactl: cannot read {tmp_path}/nix: No such file or directory\n")


# --------------------------------------------------------------------------- refused input


@pytest.mark.parametrize("text, complaint", [
    ("", "standard input is no XML"),
    ("[adapter vm1]\nsocket = /x\n", "standard input is no XML: line 1"),
    (DOMAIN.replace("</os>", ""), r"standard input is no XML: line \d+: "),
    ("<network><name>x</name></network>", "no libvirt domain: its first element is <network>, expected <domain>"),
    ("<x:domain xmlns:x='urn:x'/>", "no libvirt domain"),
    ("<!DOCTYPE domain [<!ENTITY a 'b'>]><domain/>", "has a DOCTYPE"),
    ("<domain>" + " " * (8 << 20) + "</domain>", "more than 8 MiB"),
    ("<domain>" * 300, "no XML"),
    (DOMAIN.replace("'kvm'", "'lxc'"), "domain 'guest' has the type 'lxc', expected kvm or qemu"),
    (DOMAIN.replace("pc-q35-10.1", "pc-i440fx-10.1"), "has the machine type 'pc-i440fx-10.1', expected q35"),
    (DOMAIN.replace("x86_64' machine='pc-q35-10.1", "aarch64' machine='virt"), "has the architecture aarch64, expected x86_64"),
    (DOMAIN.replace(MAC.upper(), "52:54:00:00:00:01"), f"has no <interface> with <mac address='{MAC}'/>"),
    (DOMAIN.replace("<vcpu", "<memoryBacking><access mode='private'/></memoryBacking><vcpu"), "has <access mode='private'/>"),
    (DOMAIN.replace("<vcpu", "<memoryBacking><source type='anonymous'/></memoryBacking><vcpu"), "has <source type='anonymous'/>"),
    (DOMAIN.replace("<os>", "<cpu><numa><cell id='0' memAccess='shared'/><cell id='1' memAccess='private'/></numa></cpu><os>"),
     "has a NUMA cell with memAccess='private'"),
    (DOMAIN.replace("<devices>", "<devices><memory model='dimm' access='private'/>"), "has a memory device with access='private'"),
], ids=lambda value: value[:30] if len(value) < 90 else "")
def test_file_that_no_adapter_fits(text, complaint):
    assert re.search(complaint, refused(text))


@pytest.mark.parametrize("adapter, complaint", [
    ("name=vm1,socket=/x", "adapter 'vm1' lacks mac=MAC"),
    (f"name=vm1,mac={MAC},socket=x", "the socket x of adapter 'vm1' is not an absolute path"),
    (f"name=vm1,mac={MAC},socket=/x,nix=1", "unknown adapter setting 'nix'"),
])
def test_adapter_that_no_domain_can_have(adapter, complaint):
    done = run("domain-xml", adapter)
    assert done.returncode == 1 and complaint in done.stderr and not done.stdout


def test_name_without_an_adapter(daemon):
    done = run("--control", daemon.control, "domain-xml", "nix")
    assert done.returncode == 1
    assert "there is no adapter 'nix': see 'pvrdmactl adapters', or give name=NAME," in done.stderr


def test_options_are_for_this_command_only():
    for option in (["--vm", "x"], ["--migratable"], ["--posted-writes"], ["--unplugged"]):
        done = run(*option, "version")
        assert (done.returncode, "are for the command domain-xml" in done.stderr) == (2, True)
