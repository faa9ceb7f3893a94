# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
"""Upgrade of a running daemon: a new process of the installed program replaces it, and VMs stay attached."""

import contextlib
import json
import mmap
import os
import re
import resource
import shutil
import socket
import struct
import subprocess
import threading
from pathlib import Path

import pytest

import daemon_process
import vfio_user as v
from daemon_load import Load
from daemon_net import address, host_of, start_pair, wait_pair
from daemon_process import PATIENCE, wait_until
from guest import Guest
from scrape import get
from sender import CREATE_PD, CREATE_QP, QP_RINGS, UD, WQES, Sender, create_ud_qp
from upgrading import GOES_ON, Forged, Traffic, install, install_script, wait_for_messages
from vfio_user import attach

CQ_DOORBELL, ARM, CQ_VECTOR = 4, 1 << 30, 2


@pytest.fixture
def traffic(daemon, tmp_path):
    made = Traffic(daemon, over=tmp_path / "over")
    yield made
    made.kill()


# ------------------------------------------------------------------------- traffic

def test_traffic_goes_on_over_ten_upgrades(daemon, traffic):
    for _ in range(10):
        wait_for_messages(daemon)
        pid = daemon.child.pid
        assert daemon.upgrade()["pid"] == daemon.child.pid != pid
    wait_for_messages(daemon)
    assert traffic.end() > 100


def test_traffic_of_two_workers_goes_on(start_daemon, tmp_path):
    daemon = start_daemon(args=["--workers", "2"])
    traffic = Traffic(daemon, "--streams", "16", "--max-write", "4096", over=tmp_path / "over")
    for _ in range(5):
        wait_for_messages(daemon)
        daemon.upgrade()
    traffic.end()


@pytest.mark.parametrize("tls", [False, True])
def test_connections_to_another_host_are_remade(start, ca, tls):
    first, second = (ca.options("h1"), ca.options("h2")) if tls else (["--insecure"], ["--insecure"])
    one, two = start_pair(start, first, second, guest=True)
    load = Load(one, two)
    for _ in range(5):
        one.upgrade()
        wait_pair(one, two)
        load.wait_for_progress()
    two.upgrade()
    one.upgrade()
    wait_pair(one, two)
    load.wait_for_progress()
    load.end()


# --------------------------------------------------------------------------- state

def test_guest_notices_nothing(daemon, client, guest):
    create_ud_qp(guest)
    qps = daemon.query("qps", "node1")
    guest.interrupts(0)
    made = set()
    for _ in range(3):
        daemon.upgrade()
        assert client.read_reg(0) == 20
        assert client.read_config(4, 2) & 7 == 6
        assert guest.query_port()[0] == 0
        assert guest.interrupts(0) >= 1
        made.add(guest.command(CREATE_PD, "II", 0, 0)[0])
    assert len(made) == 3
    assert client.state() == v.RUNNING
    assert daemon.query("qps", "node1") == qps


def test_cq_that_was_armed_before_interrupts(daemon):
    """Each upgrade is between the arm and the completion."""
    with attach(daemon.socket()) as client:
        sender = Sender(client)
        for _ in range(3):
            client.write(v.BAR_UAR, CQ_DOORBELL, struct.pack("<I", sender.cq | ARM), posted=True)
            client.read_reg(0)
            sender.guest.interrupts(CQ_VECTOR)
            daemon.upgrade()
            sender.guest.interrupts(CQ_VECTOR)  # a start may raise a vector once more
            sender.put()
            sender.ring()
            sender.wait()
            wait_until(lambda: sender.guest.interrupts(CQ_VECTOR), "the interrupt of the completion")
        sender.close()


def test_requests_in_the_pause_are_answered(daemon, client):
    """They stay in the socket."""
    over = threading.Event()
    wrong = []

    def read():
        while not over.is_set():
            if client.read_reg(0) != 20:
                wrong.append(client)

    thread = threading.Thread(target=read)
    thread.start()
    for _ in range(5):
        daemon.upgrade()
    over.set()
    thread.join(PATIENCE)
    assert not thread.is_alive() and not wrong


def test_mapped_doorbells_stay_mapped(start_daemon):
    daemon = start_daemon(settings=",uar=mapped")
    with attach(daemon.socket()) as client:
        fd = client.region_fd(v.BAR_UAR)
        pages = mmap.mmap(fd, 4 << 20)
        os.close(fd)
        sender = Sender(client)
        for _ in range(3):
            daemon.upgrade()
            before = daemon.counters()["doorbells"]
            sender.put()
            struct.pack_into("<I", pages, 0, sender.qp | 1 << 30)
            sender.wait()
            wait_until(lambda: daemon.counters()["doorbells"] > before, "the doorbell is found")
        pages.close()
        sender.close()


def test_adapters_keep_what_was_changed(daemon):
    daemon.add_adapter("more", 7, fabric="blue", hwversion=18, memory="1G", **{"object-memory": "64M"}, uar="mapped",
                       interrupts="msi", user=os.getuid(), rate="1Gbit", weight=30)
    daemon.must("qos", "set", "node1", "messages=1000")
    daemon.must("qos", "set", "--fabric", "blue", "rate=2Gbit")
    daemon.must("link", "node2", "down")
    daemon.must("log-level", "debug")
    before = daemon.query("adapters"), daemon.query("qos")
    daemon.upgrade()
    after = daemon.query("adapters"), daemon.query("qos")
    assert after == before


def test_removed_adapter_does_not_come_back(daemon):
    daemon.must("remove-adapter", "node1")
    daemon.upgrade()
    assert [row["name"] for row in daemon.query("adapters")["adapters"]] == ["node2"]


def test_next_vm_attaches_at_the_same_socket(daemon):
    with attach(daemon.socket(1)) as client:
        daemon.upgrade()
        with pytest.raises(Exception):
            attach(daemon.socket(1))
        assert client.read_reg(0) == 20
    with attach(daemon.socket(1)) as client:
        Guest(client).start()
    with attach(daemon.socket(2)) as client:
        Guest(client).start()


def test_vm_that_connects_meanwhile_is_served(daemon):
    """Its connection is accepted, and its VERSION has not come."""
    before = daemon.open_files()
    late = v.Client(daemon.socket(1))
    daemon.wait_for_files(before + 1)
    daemon.upgrade()
    late.negotiate()
    Guest(late).start()
    late.close()


def test_descriptors_do_not_add_up(daemon, client, guest):
    guest.query_port()
    daemon.upgrade()
    client.read_reg(0)
    count = daemon.open_files()
    for _ in range(3):
        daemon.upgrade()
        client.read_reg(0)
    daemon.wait_for_files(count)


def test_metrics_stay_at_their_address(start_daemon):
    daemon = start_daemon(args=["--metrics", f"{address(1)}:9471"])
    daemon.upgrade()
    status, _, body = get((address(1), 9471))
    assert status == 200 and "pvrdma" in body


def test_peers_connect_to_the_same_port(start):
    daemon = start(1, args=["--insecure"])
    before = host_of(daemon)
    daemon.upgrade()
    after = host_of(daemon)
    assert after["instance"] != before["instance"]
    assert after["listen"] == before["listen"]


def test_if_changed_starts_only_another_file(program, start_daemon):
    daemon = start_daemon()
    assert daemon.must("upgrade", "--if-changed") == "the running pvrdmad is the installed one\n"
    pid = daemon.child.pid
    install(program, program)
    reply = daemon.query("upgrade", "--if-changed")
    assert reply["changed"] and reply["pid"] != pid
    daemon.child.wait(PATIENCE)
    daemon.child = daemon_process.Successor(reply["pid"])


# ------------------------------------------------------------------------- failure

FAILURES = {
    "missing": (None, "it ended before it was ready, see its log"),
    "ends": ("sys.exit(3)", "it ended before it was ready, see its log"),
    "ends after hello": ("hello()\nreceive('create')", "it ended before it was ready, see its log"),
    "ends when it is ready": ("ready()", "it ended while it loaded the states of the VMs, see its log"),
    "ends with one VM": ("ready()\nreceive('ram')", "it ended while it loaded the states of the VMs, see its log"),
    "ends with all VMs": ("ready()\nreceive('load')", "it ended while it loaded the states of the VMs, see its log"),
    "other version": ("hello(99)\nreceive('abort')", "it has another version of the hand-over: restart pvrdmad"),
    "garbage": ("channel.send(b'garbage')\nreceive('abort')", "a message of 7 bytes is no JSON object"),
    "wrong message": ("ready()\nreceive('load')\nsend(type='hello')\nreceive('abort')",
                      "it sent 'hello', expected 'loaded'"),
    "never ready": ("hello()\nreceive('abort')", "it was not ready within 10 s"),
    "hangs with all VMs": ("ready()\nreceive('load')\nreceive('abort')",
                           "it did not load the states of the VMs within 5 s"),
}
SLOW = ("never ready", "hangs with all VMs")


@pytest.mark.parametrize("kind", [pytest.param(kind, marks=[pytest.mark.long] * (kind in SLOW)) for kind in FAILURES])
def test_running_daemon_goes_on(program, start_daemon, tmp_path, kind):
    body, why = FAILURES[kind]
    good = tmp_path / "good"
    shutil.copy(program, good)
    daemon = start_daemon()
    traffic = Traffic(daemon, over=tmp_path / "over")
    files = daemon.open_files()
    program.unlink() if body is None else install_script(program, body)
    done = daemon.ctl("upgrade")
    assert (done.returncode, done.stderr) == (1, f"pvrdmactl: {GOES_ON}{why}\n")
    wait_for_messages(daemon)
    daemon.wait_for_files(files)
    install(program, good)
    daemon.upgrade()
    wait_for_messages(daemon)
    assert traffic.end() > 0


def test_settings_that_are_wrong_now_leave_the_old_daemon(start_daemon, write_config):
    option = write_config("")
    daemon = start_daemon(args=[option])
    write_config("nonsense\n")
    assert GOES_ON in daemon.ctl("upgrade").stderr
    write_config("")
    daemon.upgrade()


@pytest.mark.parametrize("state", [v.STOP_COPY, v.RESUMING], ids=["STOP_COPY", "RESUMING"])
def test_client_that_migrates_is_not_handed_over(daemon, client, state):
    client.set_state(state)
    done = daemon.ctl("upgrade")
    assert done.returncode == 1
    assert f"{GOES_ON}adapter node1: QEMU (process {os.getpid()}) pauses, migrates or saves the VM" in done.stderr


def run_states(daemon):
    return [row["run_state"] for row in daemon.query("adapters")["adapters"]]


def test_paused_vm_stays_paused(daemon, client, guest):
    client.set_state(v.STOP)
    for _ in range(2):
        daemon.upgrade()
        assert run_states(daemon) == ["stopped", "running"]
        assert client.state() == v.STOP
    client.set_state(v.RUNNING)
    assert guest.query_port()[0] == 0
    daemon.upgrade()
    assert run_states(daemon) == ["running", "running"]
    assert guest.query_port()[0] == 0


def test_paused_vm_stays_paused_after_an_upgrade_that_fails(program, start_daemon, tmp_path):
    good = tmp_path / "good"
    shutil.copy(program, good)
    daemon = start_daemon()
    with attach(daemon.socket()) as client:
        guest = Guest(client)
        guest.start()
        client.set_state(v.STOP)
        install_script(program, "hello(paused=True)\nreceive('create')\nsend(type='ready')\nreceive('load')")
        assert GOES_ON in daemon.ctl("upgrade").stderr
        assert run_states(daemon) == ["stopped", "running"]
        install_script(program, "ready()\nreceive('abort')")
        assert (f"{GOES_ON}adapter node1: its VM is paused, and the new pvrdmad cannot take over such a VM: continue it"
                in daemon.ctl("upgrade").stderr)
        assert run_states(daemon) == ["stopped", "running"]
        install(program, good)
        daemon.upgrade()
        client.set_state(v.RUNNING)
        assert guest.query_port()[0] == 0


def test_paused_vm_that_was_saved_ends_without_a_word_to_its_peers(daemon):
    """Its state may be loaded elsewhere."""
    with attach(daemon.socket()) as client:
        Guest(client).start()
        client.save()
        client.set_state(v.STOP)
        daemon.upgrade()
        assert client.state() == v.STOP
    daemon.wait_for_log("has disconnected after the VM was migrated or saved")


def test_adapter_that_the_operator_has_stopped_stays_stopped(daemon, client, guest):
    daemon.must("adapter", "stop", "node1")
    daemon.upgrade()
    assert run_states(daemon) == ["stopped", "running"]
    daemon.must("adapter", "start", "node1")
    assert guest.query_port()[0] == 0


def test_client_that_logs_dirty_pages_is_not_handed_over(daemon, client, guest):
    client.start_logging()
    done = daemon.ctl("upgrade")
    assert done.returncode == 1
    assert f"{GOES_ON}adapter node1: QEMU (process {os.getpid()}) pauses, migrates or saves the VM" in done.stderr
    assert client.dirty_pages(0, 1 << 20) is not None
    client.feature(v.SET | v.LOG_STOP)
    daemon.upgrade()
    assert guest.query_port()[0] == 0


def test_adapter_with_a_wire_is_not_handed_over(start_daemon, tmp_path):
    daemon = start_daemon(adapters=0)
    daemon.add_adapter("node1", 1, socket=daemon.socket(1), wire=f"unix:{tmp_path}/wire")
    with attach(daemon.socket(1)) as client:
        Guest(client).start()
        done = daemon.ctl("upgrade")
        assert done.stderr == "pvrdmactl: adapter node1 has a wire, which cannot be handed over\n"
        assert client.read_reg(0) == 20


def test_changes_are_refused_meanwhile(program, start_daemon, tmp_path):
    daemon = start_daemon()
    install_script(program, f"hello()\nreceive('create')\nwhile not os.path.exists('{tmp_path}/go'): time.sleep(0.01)")
    child = subprocess.Popen([daemon_process.PVRDMACTL, "--control", str(daemon.control), "upgrade"],
                             stderr=subprocess.PIPE, text=True)
    daemon.wait_for_log("upgrade: started")
    for command in (["remove-adapter", "node1"], ["upgrade"], ["log-level", "debug"]):
        assert "an upgrade is in progress: repeat this after it" in daemon.ctl(*command).stderr
    assert daemon.query("adapters")["adapters"]
    (tmp_path / "go").touch()
    assert GOES_ON in child.communicate(timeout=PATIENCE)[1]
    daemon.must("remove-adapter", "node1")


def test_operator_that_leaves_changes_nothing(daemon, client):
    with socket.socket(socket.AF_UNIX) as control:
        control.connect(str(daemon.control))
        control.sendall(b'{"command": "upgrade"}\n')
    assert daemon.child.wait(PATIENCE) == 0
    pid = daemon.query("upgrade")["pid"]
    daemon.child = daemon_process.Successor(pid)
    assert client.read_reg(0) == 20


def test_daemon_that_stops_meanwhile_ends_both(program, start_daemon):
    daemon = start_daemon()
    install_script(program, "hello()\nreceive('create')\nprint('begun', flush=True)\nreceive('abort')\nprint('heard')")
    subprocess.Popen([daemon_process.PVRDMACTL, "--control", str(daemon.control), "upgrade"],
                     stderr=subprocess.DEVNULL)
    daemon.wait_for_log("begun")
    assert daemon.stop() == 0
    wait_until(lambda: "heard" in daemon.log(), "the new process hears of it")


# ---------------------------------------------------------- the new process, and a forged old one

@pytest.fixture
def forged(tmp_path):
    made = Forged(tmp_path)
    yield made
    made.close()


def test_new_process_goes_on_after_the_death_of_the_old_one(forged):
    forged.ready()
    forged.send("load")
    assert forged.receive()["type"] == "loaded"
    forged.channel.close()
    wait_until(lambda: "ready, 1 adapters" in (forged.folder / "log").read_text(), "it serves")
    with attach(forged.folder / "a1") as client:
        Guest(client).start()


@pytest.mark.parametrize("step, end", [("adapters", "abort"), ("adapters", "close"), ("ready", "abort"), ("ready", "close"),
                                       ("loaded", "abort")])
def test_new_process_ends_when_the_old_one_goes_on(forged, step, end):
    if step != "adapters":
        forged.ready()
    if step == "loaded":
        forged.send("load")
        forged.receive()
    if end == "abort":
        forged.send("abort")
    else:
        forged.channel.shutdown(socket.SHUT_RDWR)
    why = "the running pvrdmad goes on" if end == "abort" else "the other process has ended"
    assert f"upgrade: {why}" in forged.error()
    # It unlinks no socket that the old one uses.
    assert (forged.folder / "a1").exists() == (step != "adapters")


@pytest.mark.parametrize("settings, why", [
    ({"mac": "nonsense"}, "mac 'nonsense' is not a MAC address"),
    ({"name": "a/b"}, "name 'a/b' has characters"),
    ({"surprise": "1"}, "unknown adapter setting 'surprise'"),
])
def test_wrong_adapter_is_refused(forged, settings, why):
    forged.adapter(**settings)
    assert why in forged.error()


def client_message(**changes):
    fields = {"adapter": "node1", "version": "", "config": "00" * 256, "irqs": [], "irqs_pending": [], "irqs_enabled": False,
              "uar": False, **changes}
    return {key: value for key, value in fields.items() if value is not None}


def version_text(max_fds):
    text = json.dumps({"capabilities": {"max_msg_fds": max_fds, "max_data_xfer_size": 1048576}}).encode() + b"\0"
    body = struct.pack("<HH", 0, 1) + text
    return (v.HEADER.pack(1, v.VERSION, v.HEADER.size + len(body), 0, 0) + body).hex()


VERSION, OTHER_VERSION = version_text(8), version_text(7)


@pytest.mark.parametrize("changes, fds, why", [
    ({"adapter": "other"}, 1, "there is no adapter 'other'"),
    ({}, 0, "has 0 descriptors"),
    ({}, 2, "has 2 descriptors, 1 were found"),
    ({"version": "xy"}, 1, "descriptors"),
    ({"version": "0" * 20000}, 1, "descriptors"),
    ({"version": None}, 1, "descriptors"),
    ({"version": "00" * 20}, 1, "descriptors"),
    ({"version": "00" * 20, "config": "00"}, 2, "descriptors"),
    ({"version": "00" * 20, "irqs": [True] * 3}, 3, "descriptors"),
    ({"version": "00" * 20, "irqs": [False] * 1000}, 2, "descriptors"),
    ({"version": "00" * 20}, 2, "no agreement on the vfio-user version"),
    ({"version": VERSION, "uar": True}, 3, "its doorbells are mapped"),
])
def test_wrong_client_is_refused(forged, changes, fds, why):
    forged.ready()
    ends = [socket.socketpair()[0] for _ in range(fds)]
    forged.send("client", [end.fileno() for end in ends], **client_message(**changes))
    with contextlib.suppress(BrokenPipeError):
        forged.send("ram", regions=[])
    assert why in forged.error()
    for end in ends:
        end.close()


def refuse_state(forged, regions, why):
    one, two = socket.socketpair()
    state = os.memfd_create("state")
    os.write(state, b"nonsense")
    os.lseek(state, 0, os.SEEK_SET)
    forged.send("client", [one.fileno(), state], **client_message(version=VERSION))
    forged.send("ram", regions=regions)
    assert why in forged.error()
    # The connection is as it was: the old daemon goes on with it.
    two.setblocking(False)
    with pytest.raises(BlockingIOError):
        two.recv(1)
    for end in (one, two):
        end.close()
    os.close(state)


@pytest.mark.parametrize("regions, why", [
    ([{"gpa": 0, "size": 4096, "shared": True}], "1 regions of RAM with 0 descriptors"),
    ([{"gpa": 0, "size": 4096}] * 129, "129 regions of RAM"),
    ([{"gpa": 0, "size": 4096}] * 2, "overlaps"),
    ([{"gpa": 0, "size": 0}], "is empty or wraps"),
    (None, "its state is refused"),
])
def test_wrong_ram_or_state_is_refused(forged, regions, why):
    forged.ready()
    refuse_state(forged, regions or [], why)


@pytest.mark.parametrize("vms", [
    {"a": VERSION}, {"a": OTHER_VERSION}, {"a": OTHER_VERSION, "b": VERSION}, {"a": "xy"}, {"a": ""}, {"a": "00" * 20}, {"a": "0" * 20000},
])
def test_what_was_prepared_is_used_or_replaced(forged, vms):
    forged.ready(**vms)
    refuse_state(forged, [], "its state is refused")


def test_contexts_are_made_before_the_pause(tmp_path):
    """A context has a socket."""
    counts = []
    for name, vms in (("without", {}), ("with", {"a": VERSION})):
        folder = tmp_path / name
        folder.mkdir()
        forged = Forged(folder)
        forged.ready(**vms)
        counts.append(len(os.listdir(f"/proc/{forged.child.pid}/fd")))
        forged.close()
    assert counts[1] > counts[0]


# --------------------------------------------------------------------------- pause

def test_table_of_descriptors_does_not_grow(daemon):
    """It would grow in the pause, and the kernel would let all VMs wait."""
    slots = int(re.search(r"FDSize:\s*(\d+)", Path(f"/proc/{daemon.child.pid}/status").read_text())[1])
    assert slots >= min(resource.getrlimit(resource.RLIMIT_NOFILE)[1], 65536)


def test_pause_of_ten_adapters_with_a_hundred_queue_pairs(start_daemon, record_property):
    """The goal is 50 ms, and two cores need 3.1 ms, at most 3.5 ms (50 upgrades). On a busy machine each of the two processes
    also waits for a CPU, and a sanitizer makes them slower: this fails only if the best of five pauses takes 2 s."""
    daemon = start_daemon(adapters=10)
    clients = [attach(daemon.socket(number)) for number in range(1, 11)]
    guests = [Guest(client) for client in clients]
    for guest in guests:
        guest.start()
        pd, cq, _, _ = create_ud_qp(guest)
        for _ in range(99):
            guest.command(CREATE_QP, "Q11I3H6B", QP_RINGS, pd, cq, cq, 0, WQES, 16, 1, 1, 0, 0, 0, 3, 1, 0, 0, UD, 0, 0, 0, 0)
    pauses = sorted(daemon.upgrade()["pause_us"] for _ in range(5))
    record_property("pause_us", pauses)
    print("pauses in us:", pauses)
    assert pauses[0] < 2_000_000
    for client, guest in zip(clients, guests):
        assert guest.query_port()[0] == 0
        client.close()
        guest.close()
