# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
"""libvirt's hook: an adapter is made when its domain starts, and removed when it ends."""

import os
import re
import subprocess

import pytest

from daemon_process import PATIENCE, PVRDMACTL, ROOT, mac, wait_until
from domains import DOMAIN, MAC
from vfio_user import attach

HOOK = ROOT / "packaging/libvirt/pvrdma"


def call(control, text, operation, step="begin"):
    return subprocess.run([PVRDMACTL, "--control", str(control), "libvirt-hook", "guest", operation, step, "-"],
                          input=text, capture_output=True, text=True, timeout=PATIENCE, check=False)


def domain(adapter, *options, text=DOMAIN):
    """A domain with an adapter."""
    done = subprocess.run([PVRDMACTL, *options, "domain-xml", "--vm", "-", adapter], input=text, capture_output=True,
                          text=True, timeout=PATIENCE, check=True)
    return done.stdout


@pytest.fixture
def socket(daemon):
    return daemon.folder / "hook.sock"


@pytest.fixture
def guest_xml(socket):
    return domain(f"name=hooked,socket={socket},mac={MAC},memory=1G")


@pytest.fixture
def hook(daemon, guest_xml):
    """A function that calls the hook and expects its success."""
    def run(operation, step="begin", text=guest_xml):
        done = call(daemon.control, text, operation, step)
        assert (done.returncode, done.stdout) == (0, ""), done.stderr  # libvirt takes output as the domain's new XML
        return done.stderr
    return run


def names(daemon):
    return [row["ADAPTER"] for row in daemon.table("adapters")]


def refusal(daemon, text, operation="prepare"):
    done = call(daemon.control, text, operation)
    assert done.returncode == 1 and not done.stdout
    line, = done.stderr.splitlines()
    assert line.startswith("pvrdmactl: domain 'guest': "), line
    return line


def test_start_makes_the_adapter_with_all_its_settings(daemon, hook, socket):
    assert hook("prepare") == ""
    row = next(row for row in daemon.query("adapters")["adapters"] if row["name"] == "hooked")
    assert (row["socket"], row["mac"], row["ram_limit_bytes"]) == (str(socket), MAC, 1 << 30)
    with attach(socket) as client:
        assert client.read_reg(0) == 20


def test_end_removes_the_adapter(daemon, hook, socket):
    hook("prepare")
    assert hook("release", "end") == ""
    assert "hooked" not in names(daemon) and not socket.exists()


def test_end_waits_for_a_qemu_that_has_just_ended(daemon, hook, socket):
    hook("prepare")
    client = attach(socket)
    running = subprocess.Popen([PVRDMACTL, "--control", str(daemon.control), "libvirt-hook", "guest", "release", "end", "-"],
                               stdin=subprocess.PIPE, text=True)
    running.stdin.write(domain(f"name=hooked,socket={socket},mac={MAC}"))
    running.stdin.close()
    with pytest.raises(subprocess.TimeoutExpired):
        running.wait(0.5)
    client.close()
    assert running.wait(PATIENCE) == 0
    assert "hooked" not in names(daemon)


def test_adapter_that_a_qemu_uses_is_kept_at_the_end(daemon, hook, socket):
    """A second domain with the same adapter, which libvirt could not start, ends."""
    hook("prepare")
    with attach(socket):
        assert "adapter 'hooked' is kept: a QEMU uses it" in hook("release", "end")
    assert "hooked" in names(daemon)


def test_adapter_that_was_left_is_used_again(daemon, hook):
    hook("prepare")
    hook("prepare")
    assert names(daemon).count("hooked") == 1


@pytest.mark.parametrize("operation, step", [("start", "begin"), ("started", "begin"), ("stopped", "end"), ("reconnect", "begin"),
                                             ("attach", "begin"), ("release", "begin"), ("something-new", "begin")])
def test_other_operations_do_nothing(daemon, hook, operation, step):
    before = names(daemon)
    assert hook(operation, step) == ""
    assert names(daemon) == before


# ----------------------------------------------------------------------- wire on a bridge


@pytest.fixture
def bridge():
    """A bridge in a network namespace, for commands that begin with the words of the fixture."""
    if os.geteuid() != 0:
        pytest.skip("only root can make a bridge")
    holder = subprocess.Popen(["unshare", "--net", "--mount", "sleep", "600"])
    enter = ["nsenter", "--net", "--mount", "--target", str(holder.pid)]
    try:
        wait_until(lambda: os.readlink(f"/proc/{holder.pid}/ns/net") != os.readlink("/proc/self/ns/net"), "the namespace")
        for command in ("mount -t sysfs sysfs /sys", "ip link add br0 type bridge", "ip link add vnet1 type veth peer name vm"):
            subprocess.run([*enter, *command.split()], check=True)
        yield enter
    finally:
        holder.kill()
        holder.wait()


WIRED = f"name=hooked,socket=/run/pvrdma/x.sock,mac={MAC},wire=eth:br0"
WITH_TAP = DOMAIN.replace("<model type='virtio'/>", "<model type='virtio'/><target dev='vnet1'/>")


def started(prefix, text, env=None):
    return subprocess.run([*prefix, PVRDMACTL, "libvirt-hook", "guest", "started", "begin", "-"], input=text, capture_output=True,
                          text=True, timeout=PATIENCE, check=False, env=env)


def test_start_redirects_roce_to_the_bridge_as_documented(bridge, tmp_path):
    """A program in the place of tc has the commands of docs/native-endpoints.md."""
    (tmp_path / "tc").write_text(f'#!/bin/sh\necho "tc $*" >>{tmp_path}/log; exec /sbin/tc "$@"\n')
    (tmp_path / "tc").chmod(0o755)
    done = started(bridge, domain(WIRED, text=WITH_TAP), os.environ | {"PATH": f"{tmp_path}:{os.environ['PATH']}"})
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    document = (ROOT / "docs" / "native-endpoints.md").read_text()
    assert (tmp_path / "log").read_text().splitlines() == re.findall(r"^    (tc .*)$", document, re.MULTILINE)
    rules = subprocess.run([*bridge, "tc", "filter", "show", "dev", "vnet1", "egress"], capture_output=True, text=True, check=True)
    assert rules.stdout.count("mirred (Ingress Redirect to device br0)") == 4


def test_start_redirects_roce_to_the_tap_of_the_adapter(bridge):
    subprocess.run([*bridge, "ip", "tuntap", "add", "pvr1", "mode", "tap"], check=True)
    done = started(bridge, domain(WIRED.replace("eth:br0", "tap:pvr1"), text=WITH_TAP))
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    rules = subprocess.run([*bridge, "tc", "filter", "show", "dev", "vnet1", "egress"], capture_output=True, text=True, check=True)
    assert rules.stdout.count("mirred (Egress Redirect to device pvr1)") == 4


def test_start_with_another_wire_adds_no_rules(bridge):
    for wire in ("eth:vm", "unix:/run/pvrdma/x.eth"):
        done = started(bridge, domain(WIRED.replace("eth:br0", wire), text=WITH_TAP))
        assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    rules = subprocess.run([*bridge, "tc", "qdisc", "show", "dev", "vnet1"], capture_output=True, text=True, check=True)
    assert "clsact" not in rules.stdout


def test_nic_without_a_tap_is_refused(bridge):
    done = started(bridge, domain(WIRED))
    assert done.returncode == 1 and not done.stdout
    assert "adapter 'hooked' has eth:br0, but the NIC with its MAC address has no <target dev>" in done.stderr


def test_rule_that_fails_is_one_reason(bridge, tmp_path):
    (tmp_path / "tc").write_text("#!/bin/sh\nexit 1\n")
    (tmp_path / "tc").chmod(0o755)
    done = started(bridge, domain(WIRED, text=WITH_TAP), os.environ | {"PATH": f"{tmp_path}:{os.environ['PATH']}"})
    assert done.returncode == 1 and not done.stdout
    assert done.stderr == ("pvrdmactl: domain 'guest': 'tc qdisc replace dev vnet1 clsact' failed: "
                           "the kernel needs cls_u32, sch_ingress and act_mirred\n")


# ----------------------------------------------------------------------------- refusals


def test_domain_does_not_start_without_the_daemon(tmp_path, guest_xml):
    done = call(tmp_path / "none", guest_xml, "prepare")
    assert done.returncode == 1
    assert done.stderr == (f"pvrdmactl: domain 'guest': no pvrdmad at {tmp_path}/none: start it with 'pvrdmad --control {tmp_path}/none "
                           "...' or 'systemctl start pvrdmad', or give --control PATH\n")


def test_domain_ends_without_the_daemon(tmp_path, guest_xml):
    done = call(tmp_path / "none", guest_xml, "release", "end")
    assert done.returncode == 0 and "no pvrdmad at" in done.stderr


@pytest.mark.parametrize("operation", ["prepare", "release", "migrate", "restore"])
@pytest.mark.parametrize("text", [DOMAIN, ""], ids=["other", "none"])
def test_domain_without_an_adapter_needs_no_daemon(tmp_path, operation, text):
    done = call(tmp_path / "none", text, operation)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


@pytest.mark.parametrize("operation", ["migrate", "restore"])
def test_migration_and_restore_are_refused(daemon, guest_xml, operation):
    before = names(daemon)
    assert "QEMU cannot migrate, save or restore the RDMA device of adapter 'hooked'" in refusal(daemon, guest_xml, operation)
    assert names(daemon) == before


@pytest.mark.parametrize("operation", ["migrate", "restore"])
def test_migration_and_restore_of_a_migratable_device_are_allowed(hook, socket, operation):
    hook(operation, text=domain(f"name=hooked,socket={socket},mac={MAC}", "--migratable"))


def test_socket_of_a_migratable_device_is_checked(daemon, socket):
    daemon.add_adapter("listed", 9)
    text = domain(f"name=listed,socket={socket},mac={MAC}", "--migratable")
    text = text[:text.index("<metadata>")] + text[text.index("</metadata>") + len("</metadata>"):]
    assert f"adapter 'listed' has the socket {daemon.folder}" in refusal(daemon, text)


def test_adapter_with_another_socket_is_not_taken(daemon, hook, socket):
    daemon.add_adapter("hooked", 9)
    assert "pvrdmad has an adapter 'hooked' with MAC" in refusal(daemon, domain(f"name=hooked,socket={socket},mac={MAC}"))
    assert "no such adapter 'hooked'" in hook("release", "end")
    assert "hooked" in names(daemon)


def test_adapter_of_a_running_domain_is_not_taken(daemon, hook, socket, guest_xml):
    hook("prepare")
    with attach(socket):
        assert "adapter 'hooked' is in use by the QEMU of process" in refusal(daemon, guest_xml)


def test_device_without_its_adapter_is_refused(daemon):
    text = domain("node1", "--control", str(daemon.control), text=DOMAIN.replace(MAC.upper(), mac(1)))
    assert call(daemon.control, text, "prepare").returncode == 0
    daemon.must("remove-adapter", "node1")
    assert "pvrdmad has no adapter 'node1': add it" in refusal(daemon, text)
    daemon.add_adapter("node1", 1, socket=daemon.folder / "moved")
    assert "adapter 'node1' has the socket" in refusal(daemon, text)


def test_settings_that_pvrdmad_refuses_are_reported(daemon, guest_xml):
    assert "unknown adapter setting 'nix'" in refusal(daemon, guest_xml.replace("memory=", "nix="))
    assert "socket" in refusal(daemon, guest_xml.replace(f"socket={daemon.folder}", "socket=/nix"))


# ------------------------------------------------------------------------------ the script


def test_script_calls_pvrdmactl_with_its_arguments(tmp_path):
    fake = tmp_path / "pvrdmactl"
    fake.write_text('#!/bin/sh\necho "$@" >&2\ncat >&2\nexit 3\n')
    fake.chmod(0o755)
    script = tmp_path / "pvrdma"
    script.write_text(HOOK.read_text().replace("/usr/sbin/pvrdmactl", str(fake)))
    assert str(fake) in script.read_text()
    done = subprocess.run(["sh", script, "guest", "prepare", "begin", "-"], input="<domain/>", capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (3, "libvirt-hook guest prepare begin -\n<domain/>")


def test_script_does_nothing_after_removal_of_the_package(tmp_path):
    """A configuration file stays until the package is purged."""
    script = tmp_path / "pvrdma"
    script.write_text(HOOK.read_text().replace("/usr/sbin/pvrdmactl", str(tmp_path / "none")))
    assert subprocess.run(["sh", script, "guest", "prepare", "begin", "-"], check=False).returncode == 0
