# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
"""Parts of vmlab that need no VM: the kernel's complaints, the switch, barriers, the initramfs, the SSH key, steps."""

import argparse
import os
import pathlib
import platform
import re
import socket
import struct
import subprocess
import sys
import time

import pytest
from documents import Document
from vmlab_lib import bridge, cache, faults, image, initramfs, modules, options, parts, process, qemu, reuse, rundir, segment, ssh, steps, tsc
from vmlab_lib.barrier import Barriers
from vmlab_lib.console import Console
from vmlab_lib.errors import LabError

# --- console ------------------------------------------------------------------------------------

COMPLAINTS = [
    "[    3.774643] WARNING: CPU: 0 PID: 1 at drivers/some.c:12 some_probe+0x12/0x34 [pvrdma]",
    "[   13.774643][  T120] WARNING: possible circular locking dependency detected",
    "[    3.774643] WARNING: possible recursive locking detected",
    "[    3.774643] WARNING: inconsistent lock state",
    "[    3.774643] WARNING: suspicious RCU usage",
    "[    3.774643] BUG: kernel NULL pointer dereference, address: 0000000000000008",
    "[    3.774643] BUG: sleeping function called from invalid context at mm/slab.h:1",
    "[    3.774643] watchdog: BUG: soft lockup - CPU#0 stuck for 120s! [ib_write_bw:123]",
    "[    3.774643] BUG kmalloc-64 (Tainted: G           O      ): Poison overwritten",
    "[    3.774643] rcu: INFO: rcu_preempt self-detected stall on CPU",
    "[    3.774643] INFO: task insmod:99 blocked for more than 120 seconds.",
    "[    3.774643] general protection fault, probably for non-canonical address: 0000 [#1] SMP",
    "[    3.774643] Oops: 0002 [#1] PREEMPT SMP",
    "[    3.774643] kernel BUG at lib/list_debug.c:59!",
    "[    3.774643] refcount_t: underflow; use-after-free.",
    "[    3.774643] list_del corruption, ffff8880->next is LIST_POISON1",
    "[    3.774643] kmemleak: 3 new suspected memory leaks (see /sys/kernel/debug/kmemleak)",
    "[    3.774643] UBSAN: array-index-out-of-bounds in drivers/some.c:1:2",
    "[    3.774643] Kernel panic - not syncing: Attempted to kill init!",
]
HARMLESS = [
    "[    3.774643] traps: ib_write_bw[99] general protection fault ip:55 sp:7f error:0",
    "[    3.774643] ib_write_bw[99]: segfault at 8 ip 000055 sp 00007f error 4",
    "[    3.774643] pvrdma 0000:00:07.0: loaded out-of-tree module taints kernel.",
    "[    0.000000] Warning: unable to open an initial console.",
    "[    0.000000] Command line: watchdog_thresh=60 panic=-1",
    "a program that prints its own BUG: in the middle of a line",
]


@pytest.mark.parametrize("line", COMPLAINTS)
def test_console_sees_complaint(line):
    console = Console()
    assert console.feed(line + "\r")
    assert console.complaint


@pytest.mark.parametrize("line", HARMLESS)
def test_console_lets_pass(line):
    console = Console()
    assert not console.feed(line)
    assert console.complaint is None


def test_console_reason_names_our_driver():
    console = Console()
    console.feed("[    1.000000] WARNING: CPU: 0 PID: 1 at kernel/some.c:12")
    console.feed("[    1.000000]  pvrdma_post_send+0x12/0x34")
    assert console.reason() == "WARNING: CPU: 0 PID: 1 at kernel/some.c:12 (pvrdma is in its trace)"


def test_console_keeps_first_complaint_and_bounds_its_trace():
    console = Console()
    console.feed("[    1.000000] BUG: first")
    for _ in range(1000):
        console.feed("[    1.000000] WARNING: CPU: 1 second")
    assert console.reason() == "BUG: first"
    assert len(console.trace) == Console.TRACE_LINES


# --- switch -------------------------------------------------------------------------------------

def frame(to, source, payload=b"x" * 50):
    data = bytes([2, 0, 0, 0, 0, to]) + bytes([2, 0, 0, 0, 0, source]) + b"\x08\x00" + payload
    return struct.pack("!I", len(data)) + data


BROADCAST = 0xff


@pytest.fixture
def ports(tmp_path):
    """Four sockets on a switch, each known to it by a frame it sent."""
    lab = segment.Segment(4, tmp_path)
    socks = []
    for _ in range(4):
        sock = socket.socket(socket.AF_UNIX)
        sock.connect(str(lab.path))
        sock.settimeout(5)
        socks.append(sock)
    time.sleep(0.3)  # until it has accepted them all
    for number, sock in enumerate(socks):
        hello = frame(BROADCAST, number)
        sock.sendall(hello)
        for other in socks:
            if other is not sock:
                assert receive(other, len(hello)) == hello
    yield socks
    for sock in socks:
        sock.close()
    lab.close()
    assert lab.switch is None


def receive(sock, count):
    data = b""
    while len(data) < count:
        more = sock.recv(count - len(data))
        assert more
        data += more
    return data


def silent(sock):
    sock.settimeout(0.1)
    with pytest.raises(TimeoutError):
        sock.recv(1)
    sock.settimeout(5)
    return True


def test_switch_sends_only_where_the_target_is(ports):
    one = frame(2, 0)
    ports[0].sendall(one)
    assert receive(ports[2], len(one)) == one
    assert silent(ports[1]) and silent(ports[3]) and silent(ports[0])


def test_switch_splits_runs_of_frames_and_joins_halves(ports):
    to_one, to_two = frame(1, 0, b"a" * 1400), frame(2, 0, b"b" * 100)
    stream = to_one + to_two + to_one + to_one + to_two
    ports[0].sendall(stream[:1000])
    time.sleep(0.05)
    ports[0].sendall(stream[1000:])
    assert receive(ports[1], 3 * len(to_one)) == 3 * to_one
    assert receive(ports[2], 2 * len(to_two)) == 2 * to_two


def test_switch_keeps_order_and_loses_nothing_under_load(ports):
    sent = b"".join(frame(1, 0, struct.pack("!I", n) + b"z" * 1000) for n in range(3000))
    pid = os.fork()
    if pid == 0:
        ports[0].sendall(sent)
        os._exit(0)
    assert receive(ports[1], len(sent)) == sent
    assert os.waitpid(pid, 0)[1] == 0


def test_switch_survives_a_port_that_leaves(ports):
    ports[3].close()
    one = frame(3, 0)  # no port now: flooded
    time.sleep(0.05)
    ports[0].sendall(one)
    assert receive(ports[1], len(one)) == one
    assert receive(ports[2], len(one)) == one


# --- barriers -----------------------------------------------------------------------------------

def test_barrier_opens_when_the_last_one_comes():
    barriers, replies = Barriers(), []
    barriers.arrive("b", 1, replies.append)
    barriers.settle({1, 2}, set())
    assert replies == []
    barriers.arrive("b", 2, replies.append)
    barriers.settle({1, 2}, set())
    assert replies == ["ok", "ok"]


def test_barrier_does_not_wait_for_a_node_that_is_through():
    barriers, replies = Barriers(), []
    barriers.arrive("b", 1, replies.append)
    barriers.settle({1, 2}, {2})
    assert replies == ["error b: node2 ended without coming here"]


def test_barrier_gives_up_in_time():
    barriers, replies = Barriers(), []
    barriers.arrive("b", 1, replies.append, seconds=0)
    time.sleep(0.01)
    barriers.settle({1, 2, 3}, set())
    assert replies == ["error b: node2, node3 did not come in time"]


def test_barrier_forgets_a_killed_node():
    barriers, replies = Barriers(), []
    barriers.arrive("b", 1, replies.append)
    barriers.forget(1)
    barriers.settle({1}, set())
    assert replies == []


# --- the rest -----------------------------------------------------------------------------------

def test_initramfs_loads_modules_in_order_of_need(tmp_path):
    (tmp_path / "modules.dep").write_text(
        "kernel/fs/9p/9p.ko.xz: kernel/net/9pnet.ko.xz kernel/fs/netfs.ko.xz\n"
        "kernel/net/9pnet.ko.xz:\nkernel/fs/netfs.ko.xz:\n"
        "kernel/net/9pnet_virtio.ko.xz: kernel/net/9pnet.ko.xz\n")
    assert initramfs.load_order(tmp_path, ["9p", "9pnet_virtio", "built_in"]) == [
        "kernel/fs/netfs.ko.xz", "kernel/net/9pnet.ko.xz", "kernel/fs/9p/9p.ko.xz",
        "kernel/net/9pnet_virtio.ko.xz"]


@pytest.mark.parametrize("text, size", [
    ("512M", 512 << 20), ("1G", 1 << 30), ("1g", 1 << 30), ("2GiB", 2 << 30), ("300", 300 << 20),
    ("1048576K", 1 << 30)])
def test_memory_size(text, size):
    assert options.parse_size(text) == size


@pytest.mark.parametrize("text", ["", "G", "1.5G", "-1G", "1X", "1 G", "255M", "524289K"])
def test_memory_is_not_a_size(text):
    with pytest.raises(LabError):
        options.parse_size(text)


def test_cache_builds_once_and_leaves_nothing_of_a_failure(tmp_path, monkeypatch):
    monkeypatch.setenv("PVRDMA_CACHE", str(tmp_path))

    def fails(path):
        path.write_text("half")
        raise LabError("no")

    with pytest.raises(LabError):
        cache.get("some", "thing", fails)
    assert [path.name for path in (tmp_path / "some").iterdir()] == [".thing.lock"]
    assert cache.get("some", "thing", lambda path: path.write_text("whole")).read_text() == "whole"
    assert cache.get("some", "thing", fails).read_text() == "whole"


@pytest.mark.parametrize("free, writable, message", [
    (1 << 20, True, "the cache {folder}/cache/pvrdma is full, it has 1 MiB left: free 3 GiB there, or set PVRDMA_CACHE to another folder (a step failed)"),
    (1 << 30, False, "this user may not write to the cache {folder}/cache/pvrdma: set PVRDMA_CACHE to another folder (a step failed)"),
    (1 << 30, True, "a step failed"),
])
@pytest.mark.parametrize("error", [LabError("a step failed"), OSError("a step failed")])
def test_step_that_fails_for_the_cache_says_so(tmp_path, monkeypatch, free, writable, message, error):
    def fail(*_):
        raise error
    monkeypatch.setenv("PVRDMA_CACHE", str(tmp_path / "cache" / "pvrdma"))
    monkeypatch.setattr(cache.shutil, "disk_usage", lambda _: argparse.Namespace(free=free, total=1 << 40))
    monkeypatch.setattr(cache.os, "access", lambda *_: writable)
    monkeypatch.setattr(parts, "_check_host_packages", lambda: None)
    monkeypatch.setattr(parts, "_gather", fail)
    with pytest.raises(LabError) as raised:
        parts.gather(argparse.Namespace(packages=[]), None)
    assert str(raised.value) == message.format(folder=tmp_path)


def test_qemu_that_cannot_be_fetched_is_to_be_named(monkeypatch):
    def fail(*_):
        raise LabError("fetch/qemu: cannot download QEMU (see above)")
    monkeypatch.delenv("QEMU", raising=False)
    monkeypatch.setattr(process, "run_step", fail)
    with pytest.raises(LabError, match=r"^no QEMU 10.1 or newer is installed, and none can be fetched \(.*\): install one, or name it with --qemu$"):
        parts._qemu(argparse.Namespace(qemu=None), None)


@pytest.mark.parametrize("line, message", [
    ("E: Unable to locate package frobnicate", "--packages: Debian bookworm has no frobnicate; https://packages"),
    ("E: Package 'frobnicate' has no installation candidate", "--packages: Debian bookworm has no frobnicate; https://packages"),
    ("E: Package 'frobnicate' is broken", "the guest image could not be built: E: Package 'frobnicate' is broken"),
])
def test_unknown_package_is_named(tmp_path, monkeypatch, line, message):
    program = tmp_path / "mmdebstrap"
    program.write_text(f"#!/bin/sh\necho I: running apt-get update >&2\necho \"{line}\" >&2\nexit 1\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    with pytest.raises(LabError) as raised:
        image._build(tmp_path / "root.sqfs", tmp_path / "log", ["frobnicate"])
    assert str(raised.value).startswith(message)


def test_stopped_child_takes_its_children_along(tmp_path):
    pids = tmp_path / "pids"
    child = process.spawn(["sh", "-c", f"trap '' TERM; sleep 1000 & echo $! >{pids}; wait"])
    assert process.wait_for(lambda: pids.exists() and pids.read_text().endswith("\n"), 5)
    process.stop(child, grace=0.2)
    grandchild = pids.read_text().strip()
    assert process.wait_for(lambda: not _runs(grandchild), 5)


def _runs(pid):
    try:
        with open(f"/proc/{pid}/stat") as stat:
            return stat.read().rsplit(")", 1)[1].split()[0] != "Z"
    except FileNotFoundError:
        return False


def test_cpu_time_is_that_of_a_whole_process():
    """Of all its threads, and of those that have ended, too."""
    busy = "import threading, time\nt = threading.Thread(target=lambda: [0 for _ in range(3 * 10**6)])\n" \
           "t.start(); t.join(); print('over', flush=True); time.sleep(60)"
    child = subprocess.Popen([sys.executable, "-c", busy], stdout=subprocess.PIPE, text=True)
    try:
        child.stdout.readline()
        fields = pathlib.Path(f"/proc/{child.pid}/stat").read_text().rpartition(") ")[2].split()
        ticks = int(fields[11]) + int(fields[12])
        used = process.cpu_nanoseconds(child.pid)
    finally:
        child.kill()
        child.wait()
    assert ticks > 0 and abs(used / 1e9 - ticks / os.sysconf("SC_CLK_TCK")) < 0.05


def test_run_dir_is_short_and_removes_what_dead_runs_left(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_RUNTIME_DIR", "/tmp")
    stale = f"/tmp/{rundir._PREFIX}999999999-x"
    os.mkdir(stale)
    with rundir.run_dir() as path:
        assert not os.path.exists(stale)
        assert len(str(path / "adapter250")) < 108
    assert not path.exists()


# --- the guests' clock --------------------------------------------------------------------------

@pytest.mark.skipif(platform.machine() != "x86_64", reason="only x86 has a time stamp counter")
def test_frequency_of_the_clock_does_not_depend_on_the_time_of_measurement():
    short, long = tsc.khz(0.02), tsc.khz(0.5)
    assert short > 100_000 and abs(short - long) < long / 1000


def test_no_frequency_where_there_is_no_such_clock(monkeypatch):
    monkeypatch.setattr(platform, "machine", lambda: "aarch64")
    assert tsc.khz() is None


# --- accelerator --------------------------------------------------------------------------------

@pytest.mark.parametrize("flags, device, reason", [
    ("fpu vmx sse", "kvm", None),
    ("fpu svm", "kvm", None),
    ("fpu sse", "kvm", "the CPU has no hardware virtualization"),
    ("fpu vmx", "nowhere", "there is no {folder}/nowhere"),
    ("fpu vmx", "kvm", "no access to {folder}/kvm; the group kvm usually has it"),
])
def test_kvm_is_used_or_the_reason_not_to_is_known(tmp_path, monkeypatch, flags, device, reason):
    (tmp_path / "kvm").touch()
    (tmp_path / "cpuinfo").write_text(f"processor\t: 0\nflags\t\t: {flags}\n")
    monkeypatch.setattr(os, "access", lambda *_: not reason or "access" not in reason)
    expected = reason.format(folder=tmp_path) if reason else None
    assert qemu.why_no_kvm(str(tmp_path / device), str(tmp_path / "cpuinfo")) == expected


@pytest.mark.parametrize("choice, variable, reason, expected", [
    (None, None, None, "kvm"),
    (None, None, "no KVM", "tcg,thread=multi"),
    ("auto", "tcg", None, "kvm"),
    ("tcg", None, None, "tcg,thread=multi"),
    ("kvm", None, None, "kvm"),
    (None, "tcg", None, "tcg,thread=multi"),
    (None, "kvm", "no KVM", LabError),
    ("kvm", None, "no KVM", LabError),
    ("xen", None, None, LabError),
    (None, "xen", None, LabError),
])
def test_accelerator_is_the_chosen_one(monkeypatch, choice, variable, reason, expected):
    """An option, else a variable of the environment, else KVM where it works."""
    monkeypatch.setattr(qemu, "why_no_kvm", lambda: reason)
    monkeypatch.setenv("PVRDMA_ACCEL", variable or "")
    if expected is LabError:
        with pytest.raises(LabError, match="no KVM" if reason else "known are auto, kvm, tcg"):
            qemu.choose_accelerator(choice)
        return
    qemu.choose_accelerator(choice)
    assert qemu.accelerator()[:2] == ["-accel", expected]
    assert bool(qemu.why_tcg()) == (expected != "kvm")


# --- faults -------------------------------------------------------------------------------------

def test_fault_acts_at_the_host_of_its_requester():
    """Three nodes on two hosts: node1 and node3 are on host 1."""
    lines = ["from=node1 to=node2 drop=1%", "from=node2 to=node2 drop=2%  # none", "", "delay=1ms", "to=host1 rate=1Gbit"]
    assert faults.distribute(lines, 3, 1) == [lines]
    assert faults.distribute(lines, 3, 2) == [
        ["from=node1 to=host2 drop=1%", "", "", "delay=1ms", ""],
        ["", "from=node2 to=node2 drop=2%", "", "delay=1ms", "to=host1 rate=1Gbit"]]


@pytest.mark.parametrize("line, message", [
    ("from=node4 drop=1%", "line 1: there is no 'node4', only node1 to node3 and host1 to host2"),
    ("to=elsewhere drop=1%", "line 1: there is no 'elsewhere'"),
    ("from=node2 to=node1 drop=1%", "line 1: node1 shares host1, and a fault acts on all messages from another host"),
])
def test_fault_of_a_wrong_node_names_its_line(line, message):
    with pytest.raises(LabError, match=message):
        faults.distribute([line], 3, 2)


# --- modules of the user ------------------------------------------------------------------------

DEVICE_ALIAS = "pci:v000015ADd00000820sv*sd*bc*sc*i*"


def of_user(monkeypatch, infos, driver="pvrdma"):
    """infos: {name: (vermagic, aliases)} of modules."""
    def info(path, field):
        vermagic, aliases = infos[path.name]
        return ([vermagic] if vermagic else []) if field == "vermagic" else aliases
    monkeypatch.setattr(modules, "_info", info)
    wanted = argparse.Namespace(module=[pathlib.Path("/nowhere") / name for name in infos], kernel="6.1", driver=driver,
                                needs_daemon=driver != "rxe")
    return modules.of_user(wanted, "6.1.0-1", None)


def test_module_with_the_alias_of_the_device_is_its_driver(monkeypatch):
    found = of_user(monkeypatch, {"a.ko": ("6.1.0-1 SMP", []), "mine.ko": ("6.1.0-1 SMP", ["other", DEVICE_ALIAS]),
                                  "b.ko": ("6.1.0-1 SMP", ["pci:v000015ADd000007B0sv*"])})
    assert found.driver.name == "mine.ko"
    assert [path.name for path in found.others] == ["a.ko", "b.ko"]


@pytest.mark.parametrize("infos, driver, message", [
    ({"a.ko": ("6.12.1 SMP", [])}, "none", "/nowhere/a.ko: is built for kernel 6.12.1, and the VMs have 6.1.0-1: name the folder"),
    ({"a.ko": ("6.1.0-10 SMP", [])}, "none", "is built for kernel 6.1.0-10, and the VMs have 6.1.0-1"),
    ({"a.ko": ("", [])}, "none", "/nowhere/a.ko: is no kernel module"),
    ({"a.ko": ("6.1.0-1 SMP", [DEVICE_ALIAS]), "b.ko": ("6.1.0-1 SMP", [DEVICE_ALIAS])}, "pvrdma",
     "/nowhere/b.ko: is a second driver of the device, after /nowhere/a.ko"),
    ({"a.ko": ("6.1.0-1 SMP", [DEVICE_ALIAS])}, "rxe", "is a driver of a device that --driver rxe does not have"),
])
def test_module_that_cannot_be_loaded_is_refused(monkeypatch, infos, driver, message):
    with pytest.raises(LabError, match=message):
        of_user(monkeypatch, infos, driver)


# --- devices of the nodes -----------------------------------------------------------------------

def test_drivers_are_for_the_nodes_in_turn():
    found = options.parse(["run", "--driver", "pvrdma,vmw_pvrdma,rxe", "--nodes", "4", "--pvrdmad", sys.executable, "/bin/true"])
    devices = [found.devices[number] for number in range(1, 5)]
    assert [device.driver for device in devices] == ["pvrdma", "vmw_pvrdma", "rxe", "pvrdma"]
    assert [device.nic for device in devices] == ["virtio-net-pci", "vmxnet3", "virtio-net-pci", "virtio-net-pci"]
    assert [device.provider for device in devices] == ["pvrdma", "debian", "debian", "pvrdma"]
    assert [device.posted for device in devices] == [True, False, False, True]
    assert [device.has_adapter for device in devices] == [True, True, False, True]


# --- a segment that is a bridge -----------------------------------------------------------------

@pytest.mark.parametrize("more", [("--hosts", "2"), ("--adapters", "2"), ("--adapter-socket", "/nowhere")])
def test_bridge_is_refused_with_options_that_need_another_segment(more):
    with pytest.raises(LabError, match=f"^--segment bridge does not go with {more[0]}$"):
        options.parse(["run", "--segment", "bridge", *more, "--pvrdmad", sys.executable, "/bin/true"])


def test_unknown_segment_is_refused():
    with pytest.raises(LabError, match="^--segment 'hub' is unknown; known are sockets, bridge$"):
        options.parse(["run", "--segment", "hub", "--pvrdmad", sys.executable, "/bin/true"])


def test_rules_of_a_bridge_are_those_of_the_document():
    assert set(bridge.rules("vnet1")) <= Document("docs/native-endpoints.md").commands()


def test_bridge_redirects_roce_of_nodes_with_a_wire_only():
    segment_of_two = bridge.Bridge(2, wired=[1])
    try:
        rules = [segment_of_two.space.run("tc", "filter", "show", "dev", f"vnet{number}", "egress") for number in (1, 2)]
        assert rules[0].count("mirred (Ingress Redirect to device br0)") == 2
        assert rules[1] == ""
        assert re.findall(r"vnet\d", segment_of_two.space.run("ip", "-oneline", "link", "show", "master", "br0")) == ["vnet1", "vnet2"]
        assert [segment_of_two.wire(number) for number in (1, 2)] == ["eth:br0", None]
    finally:
        segment_of_two.close()


# --- kept labs ----------------------------------------------------------------------------------

def test_kept_vms_are_used_again_if_nothing_of_theirs_has_changed(tmp_path):
    driver, provider = tmp_path / "pvrdma.ko", tmp_path / "provider"
    provider.mkdir()

    def key(*more, text="driver", library="provider"):
        driver.write_text(text)
        (provider / "lib.so").write_text(library)
        found = parts.Parts(qemu="qemu", kernel=tmp_path, modules=tmp_path, initramfs=tmp_path, image=tmp_path,
                            drivers={"pvrdma": driver}, provider=provider)
        return reuse.key_of(options.parse(["run", "--reuse", "--pvrdmad", sys.executable, *more, "/bin/true"]), found)

    same = [key(), key("--timeout", "7"), key("--fault", "/etc/hostname"), key("--idle-timeout", "7", "--keep-logs", "/nowhere")]
    assert len(set(same)) == 1
    others = [key("--nodes", "3"), key("--hosts", "2"), key("--share", str(tmp_path)), key("--memory", "512M"),
              key("--pvrdmad", "/bin/true"), key(text="changed"), key(library="changed")]
    assert len(set(same + others)) == 1 + len(others)


# --- SSH key ------------------------------------------------------------------------------------

def test_each_run_has_a_key_of_its_own_with_access_for_its_owner_only(tmp_path):
    folders = [tmp_path / name for name in ("one", "two")]
    for folder in folders:
        ssh.make_key(folder)
        assert folder.stat().st_mode & 0o777 == 0o700
        assert (folder / ssh.KEY).stat().st_mode & 0o777 == 0o600
    public = [(folder / f"{ssh.KEY}.pub").read_text().split()[1] for folder in folders]
    assert public[0] != public[1]


def test_host_without_ssh_keygen_gets_the_package_name(tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(LabError, match="apt-get install openssh-client"):
        ssh.check_host()


# --- steps --------------------------------------------------------------------------------------

def test_step_is_over_when_all_nodes_are_through_with_it():
    taken = []
    on_line = steps.when_over({"one", "two"}, taken.append)
    for line in ("node1| step one: status 0\n", "node1| step two: status 0\n", "node2| something else\n",
                 "node2| step two: status 1\n", "node1| step other: status 0\n", "node2| step other: status 0\n"):
        on_line(line)
    assert taken == ["two"]
    on_line("node2| step one: status 0\n")
    assert taken == ["two", "one"]
