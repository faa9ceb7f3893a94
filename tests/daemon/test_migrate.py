# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
"""A client migrates its device: version 2 of VFIO's protocol, in messages of vfio-user."""

import contextlib
import errno
import itertools
import json
import struct
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

import vfio_user as v
from daemon_net import peer_of, start_pair, wait_pair, wait_up
from daemon_process import PATIENCE, wait_until
from guest import ASYNC, CMD, CQ, DSR, PAGE, RAM_SIZE, RESP, Guest
from pipe_peer import Closed
from vfio_user import attach

STATES = {"RUNNING": v.RUNNING, "STOP": v.STOP, "STOP_COPY": v.STOP_COPY, "RESUMING": v.RESUMING}
NO_STATE = (v.STATE_ERROR, 5, 6, 7, 0xFFFFFFFF)
# Commands.
CREATE_PD, CREATE_CQ, CREATE_BIND = 2, 6, 15


def refused(call, *args, **kwargs):
    """Return: the errno of the error reply."""
    with pytest.raises(v.Refused) as refusal:
        call(*args, **kwargs)
    return refusal.value.args[0]


def move(source, target):
    target.load(source.save())
    target.set_state(v.RUNNING)


# ------------------------------------------------------------------------- states

def test_device_offers_stop_copy(client):
    assert client.feature(v.GET | v.MIGRATION, space=8) == struct.pack("<Q", 1)


def test_device_is_running_at_first(client):
    assert client.state() == v.RUNNING


@pytest.mark.parametrize("begin, end", itertools.product(STATES, STATES))
def test_transition(client, begin, end):
    """RESUMING ends with a check of the state, which has not come."""
    client.set_state(STATES[begin])
    assert client.state() == STATES[begin]
    if begin == "RESUMING" and end != "RESUMING":
        assert refused(client.set_state, STATES[end]) == errno.EINVAL
        assert client.state() == v.STATE_ERROR
    else:
        client.set_state(STATES[end])
        assert client.state() == STATES[end]


@pytest.mark.parametrize("begin", STATES)
@pytest.mark.parametrize("state", NO_STATE)
def test_no_state_is_refused(client, begin, state):
    client.set_state(STATES[begin])
    assert refused(client.set_state, state) == errno.EINVAL
    assert client.state() == STATES[begin]


@pytest.mark.parametrize("state", [*STATES, "ERROR"])
def test_reset_ends_each_state(client, state):
    client.set_state(v.RESUMING if state == "ERROR" else STATES[state])
    if state == "ERROR":
        refused(client.set_state, v.STOP)
        assert refused(client.set_state, v.RUNNING) == errno.EINVAL
    client.call(v.RESET)
    assert client.state() == v.RUNNING
    client.set_state(v.STOP)
    client.set_state(v.RUNNING)


@pytest.mark.parametrize("state", STATES)
def test_next_client_finds_a_running_device(daemon, state):
    with attach(daemon.socket()) as client:
        client.set_state(STATES[state])
    with attach(daemon.socket()) as client:
        assert client.state() == v.RUNNING
        Guest(client).start()


def test_request_byte_by_byte(client):
    for byte in client.message(v.DEVICE_FEATURE, struct.pack("<IIIi", 16, v.SET | v.STATE, v.STOP, -1)):
        client.send_raw(bytes([byte]))
    client.reply()
    assert client.state() == v.STOP


def test_stopped_device_starts_again(client, guest):
    guest.start()
    client.set_state(v.STOP)
    client.set_state(v.RUNNING)
    assert guest.query_port()[0] == 0


# ----------------------------------------------------------------------- features

@pytest.mark.parametrize("flags", [v.STATE | v.GET, v.STATE | v.SET, v.STATE | v.GET | v.SET, v.MIGRATION | v.GET,
                                   v.MIGRATION, v.LOG_START | v.SET, v.LOG_STOP | v.SET, v.LOG_REPORT | v.GET, v.THROTTLE | v.SET])
def test_probe(client, flags):
    assert client.feature(v.PROBE | flags) == b""


@pytest.mark.parametrize("flags", [0, 3, 4, 5, 9, 0xFFFF, v.MIGRATION | v.SET, v.LOG_START | v.GET, v.LOG_REPORT | v.SET,
                                   v.THROTTLE | v.GET])
def test_probe_of_what_is_missing(client, flags):
    assert refused(client.feature, v.PROBE | flags) == errno.ENOTTY
    assert refused(client.feature, flags | v.GET) in (errno.ENOTTY, errno.EINVAL)


@pytest.mark.parametrize("flags", [v.STATE, v.STATE | v.GET | v.SET])
def test_get_and_set_exclude_each_other(client, flags):
    assert refused(client.feature, flags, bytes(8)) == errno.EINVAL


@pytest.mark.parametrize("flags, size", [(v.STATE | v.SET, 8), (v.LOG_START | v.SET, 16), (v.LOG_REPORT | v.GET, 24),
                                         (v.THROTTLE | v.SET, 4)])
def test_short_request(client, flags, size):
    for length in range(size):
        assert refused(client.feature, flags, bytes(length), space=65536) == errno.EINVAL
    assert client.state() == v.RUNNING


@pytest.mark.parametrize("command", [v.DEVICE_FEATURE, v.MIG_DATA_READ, v.MIG_DATA_WRITE])
@pytest.mark.parametrize("size", range(0, 8, 3))
def test_message_without_its_head(client, command, size):
    assert refused(client.call, command, bytes(size)) == errno.EINVAL


# -------------------------------------------------------------------- dirty pages

def test_log_has_the_pages_that_the_device_writes(client, guest):
    guest.start()
    client.start_logging()
    assert client.dirty_pages(0, RAM_SIZE) == []
    guest.query_port()
    assert client.dirty_pages(0, RAM_SIZE) == [RESP // PAGE]
    assert client.dirty_pages(0, RAM_SIZE) == []


def test_report_of_other_pages_leaves_them_in_the_log(client, guest):
    guest.start()
    client.start_logging([(0, RAM_SIZE)])
    guest.query_port()
    assert client.dirty_pages(RESP + PAGE, PAGE) == []
    assert client.dirty_pages(RESP, PAGE) == [0]


def test_log_begins_empty_again(client, guest):
    guest.start()
    for _ in range(2):
        client.start_logging()
        assert client.dirty_pages(0, RAM_SIZE) == []
        guest.query_port()
        client.feature(v.SET | v.LOG_STOP)
    client.feature(v.SET | v.LOG_STOP)


def test_log_starts_once(client):
    client.start_logging()
    assert refused(client.start_logging) == errno.EALREADY


def test_report_without_a_log(client):
    assert refused(client.dirty_pages, 0, PAGE) == errno.ENOENT


def test_next_client_has_no_log(daemon):
    with attach(daemon.socket()) as client:
        client.start_logging()
    with attach(daemon.socket()) as client:
        assert refused(client.dirty_pages, 0, PAGE) == errno.ENOENT
        client.start_logging()


def test_reset_leaves_the_log_on(client):
    client.start_logging()
    client.call(v.RESET)
    assert client.dirty_pages(0, PAGE) == []


def test_log_of_ram_that_is_mapped_meanwhile(client):
    client.start_logging()
    guest = Guest(client)
    guest.start()
    assert client.dirty_pages(0, RAM_SIZE) == [DSR // PAGE]


def test_longest_report(client):
    client.start_logging()
    assert client.dirty_pages(0, v.CHUNK * 8 * PAGE) == []


@pytest.mark.parametrize("address, size, page", [(0, 0, PAGE), (0, 1, PAGE), (1, PAGE, PAGE), (0, v.CHUNK * 8 * PAGE + PAGE, PAGE),
                                                 (2**64 - PAGE, 2 * PAGE, PAGE), (0, 2**64 - PAGE, PAGE), (0, PAGE, 0),
                                                 (0, PAGE, 1), (0, 2 * PAGE, 2 * PAGE), (0, PAGE, 2**63)])
def test_report_of_a_hostile_range(client, address, size, page):
    client.start_logging()
    data = struct.pack("<QQQ", address, size, page)
    assert refused(client.feature, v.GET | v.LOG_REPORT, data, space=0x10000000) == errno.EINVAL


@pytest.mark.parametrize("size", [PAGE, 64 * PAGE, 65 * PAGE])
def test_report_with_too_little_space(client, size):
    client.start_logging()
    data, needed = struct.pack("<QQQ", 0, size, PAGE), (size // PAGE + 63) // 64 * 8
    for space in range(needed):
        assert refused(client.feature, v.GET | v.LOG_REPORT, data, space=space) == errno.EINVAL
    assert len(client.feature(v.GET | v.LOG_REPORT, data, space=needed)) == 24 + needed


@pytest.mark.parametrize("page, ranges", [(0, []), (2048, []), (8192, []), (2**63, []), (PAGE, [(0, 0)]), (PAGE, [(2**64 - PAGE, 2 * PAGE)])])
def test_log_of_hostile_ranges(client, page, ranges):
    data = struct.pack("<QII", page, len(ranges), 0) + b"".join(struct.pack("<QQ", *pair) for pair in ranges)
    assert refused(client.feature, v.SET | v.LOG_START, data) == errno.EINVAL
    assert refused(client.dirty_pages, 0, PAGE) == errno.ENOENT


@pytest.mark.parametrize("number", [1, 2, 0x10000000, 0xFFFFFFFF])
def test_log_with_fewer_ranges_than_announced(client, number):
    data = struct.pack("<QII", PAGE, number, 0) + struct.pack("<QQ", 0, PAGE)[:15]
    assert refused(client.feature, v.SET | v.LOG_START, data) == errno.EINVAL


def throttle(client, percent):
    client.feature(v.SET | v.THROTTLE, struct.pack("<I", percent))


def test_throttle_needs_the_log(client):
    assert refused(throttle, client, 20) == errno.ENOENT
    throttle(client, 0)
    client.start_logging()
    throttle(client, 20)
    throttle(client, 99)


@pytest.mark.parametrize("percent", [100, 2**31, 2**32 - 1])
def test_throttle_of_more_than_all_but_one_percent(client, percent):
    client.start_logging()
    assert refused(throttle, client, percent) == errno.EINVAL


# --------------------------------------------------------------------------- data

@pytest.mark.parametrize("state", ["RUNNING", "STOP", "RESUMING"])
def test_read_in_another_state(client, state):
    client.set_state(STATES[state])
    assert refused(client.read_data) == errno.EINVAL


@pytest.mark.parametrize("state", ["RUNNING", "STOP", "STOP_COPY"])
def test_write_in_another_state(client, state):
    client.set_state(STATES[state])
    assert refused(client.write_data, b"state") == errno.EINVAL


@pytest.mark.parametrize("argsz, size", [(8 + v.CHUNK + 1, v.CHUNK + 1), (0xFFFFFFFF, 0xFFFFFFFF), (8, 1), (0, 0), (7, 0)])
def test_read_of_a_hostile_size(client, argsz, size):
    client.set_state(v.STOP_COPY)
    assert refused(client.call, v.MIG_DATA_READ, struct.pack("<II", argsz, size)) == errno.EINVAL
    assert client.read_data()


@pytest.mark.parametrize("size", [0, 4, 6, 0xFFFFFFFF])
def test_write_of_a_wrong_size(client, size):
    client.set_state(v.RESUMING)
    assert refused(client.call, v.MIG_DATA_WRITE, struct.pack("<II", 8, size) + b"state") == errno.EINVAL


def test_largest_write(client):
    client.set_state(v.RESUMING)
    client.write_data(bytes(v.CHUNK))


def test_write_that_is_too_large(daemon, client):
    client.set_state(v.RESUMING)
    client.send_raw(client.message(v.MIG_DATA_WRITE, struct.pack("<II", 8, v.CHUNK + 1)[:8], size=16 + 8 + v.CHUNK + 1))
    with pytest.raises(Closed):
        client.reply()
    daemon.wait_for_log("message size 65561 (command 18), expected 16 to 65560")


def test_large_message_of_another_command(daemon, client):
    client.send_raw(client.message(v.DEVICE_FEATURE, size=8192))
    with pytest.raises(Closed):
        client.reply()
    daemon.wait_for_log("message size 8192 (command 16), expected 16 to 4096")


def test_write_with_descriptors(client):
    """They are closed."""
    client.set_state(v.RESUMING)
    fds = [v.memfd(4096)] * 2
    assert client.call(v.MIG_DATA_WRITE, struct.pack("<II", 8, 5) + b"state", fds) == b""


def test_large_write_with_descriptors(client):
    client.set_state(v.RESUMING)
    assert client.call(v.MIG_DATA_WRITE, struct.pack("<II", 8, v.CHUNK) + bytes(v.CHUNK), [v.memfd(4096)]) == b""


def test_reading_again_begins_anew(client, guest):
    guest.start()
    client.set_state(v.STOP_COPY)
    first = client.read_data(64)
    client.set_state(v.STOP)
    client.set_state(v.STOP_COPY)
    assert client.read_data(64)[:8] == first[:8]


# ---------------------------------------------------------------------- migration

@pytest.fixture
def two(daemon, start_daemon):
    """Clients of two daemons, whose adapters are alike."""
    other = start_daemon()
    with attach(daemon.socket()) as source, attach(other.socket()) as target:
        yield source, target


def adopt(guest, client):
    """The driver of the guest, at another host: its RAM, and the interrupts."""
    moved = Guest.__new__(Guest)
    moved.__dict__.update(guest.__dict__, client=client)
    client.map(0, RAM_SIZE, [guest.fd])
    client.set_irqs(v.MSIX, 0, len(guest.vectors), guest.vectors)
    client.write_config(4, 6, 2)
    return moved


@pytest.mark.parametrize("size", [64, 4096, v.CHUNK])
def test_driver_goes_on_at_the_other_daemon(two, size):
    source, target = two
    guest = Guest(source)
    guest.start()
    pd, _ = guest.command(CREATE_PD, "II", 0, 0)
    state = source.save(size)
    moved = adopt(guest, target)
    target.load(state, size)
    target.set_state(v.RUNNING)
    assert moved.query_port()[0] == 0
    assert moved.command(CREATE_PD, "II", 0, 0)[0] != pd


def test_ram_is_moved_by_passes_over_dirty_pages(two):
    """Of the driver's own stores, each page is copied again; of the device's, those in the log."""
    source, target = two
    guest, moved = Guest(source), Guest(target)
    source.start_logging()
    moved.ram[:] = guest.ram[:]
    guest.start()
    handles = []
    for _ in range(5):
        handles.append(guest.command(CREATE_PD, "II", 0, 0)[0])
        for page in source.dirty_pages(0, RAM_SIZE):
            moved.ram[page * PAGE:(page + 1) * PAGE] = guest.ram[page * PAGE:(page + 1) * PAGE]
    guest.command(CREATE_PD, "II", 0, 0)
    state = source.save()
    stored = {DSR, CMD, *range(ASYNC, ASYNC + 2 * PAGE, PAGE), *range(CQ, CQ + 2 * PAGE, PAGE)}
    for address in stored | {page * PAGE for page in source.dirty_pages(0, RAM_SIZE)}:
        moved.ram[address:address + PAGE] = guest.ram[address:address + PAGE]
    assert source.dirty_pages(0, RAM_SIZE) == []
    assert moved.ram[:] == guest.ram[:]
    target.load(state)
    target.set_state(v.RUNNING)
    target.write_config(4, 6, 2)
    assert moved.query_port()[0] == 0
    assert moved.command(CREATE_PD, "II", 0, 0)[0] not in handles


def test_loaded_device_saves_the_same_state(two):
    source, target = two
    guest = Guest(source)
    guest.start()
    guest.command(CREATE_PD, "II", 0, 0)
    state = source.save()
    adopt(guest, target)
    target.load(state)
    target.set_state(v.RUNNING)
    assert len(target.save()) == len(state)


def test_source_goes_on_after_a_cancel(client, guest):
    guest.start()
    client.save()
    client.set_state(v.RUNNING)
    assert guest.query_port()[0] == 0


@pytest.mark.parametrize("part", [0, 1, 2])
def test_truncated_state_is_refused(two, part):
    source, target = two
    guest = Guest(source)
    guest.start()
    state = source.save()
    adopt(guest, target)
    assert refused(target.load, state[:len(state) * part // 3]) == errno.EINVAL
    assert target.state() == v.STATE_ERROR
    target.call(v.RESET)
    assert target.state() == v.RUNNING
    source.set_state(v.RUNNING)
    assert guest.query_port()[0] == 0


def test_flipped_bit_is_refused_with_a_reason(daemon, start_daemon):
    other = start_daemon()
    with attach(daemon.socket()) as source, attach(other.socket()) as target:
        guest = Guest(source)
        guest.start()
        state = bytearray(source.save())
        adopt(guest, target)
        state[len(state) // 2] ^= 0x10
        assert refused(target.load, bytes(state)) == errno.EINVAL
        other.wait_for_log("migration state STOP (1) was not reached, the device is in ERROR: ")


# ---------------------------------------------------------------------- hosts

@pytest.fixture
def hosts(start):
    """h1 and h2, each with the adapter of the VM."""
    pair = start_pair(start)
    for daemon in pair:
        daemon.add_adapter("vm", 1)
    return pair


def run_state(daemon):
    return daemon.query("adapters")["adapters"][0]["run_state"]


@contextlib.contextmanager
def moving(one, two):
    """A started guest at `one`, whose state is loaded at `two`: the clients, and the guest there."""
    with attach(one.folder / "vm") as source, attach(two.folder / "vm") as target:
        guest = Guest(source)
        guest.start()
        state = source.save()
        moved = adopt(guest, target)
        target.load(state)
        yield source, target, moved


def test_source_gives_the_adapter(hosts):
    one, two = hosts
    with moving(one, two) as (source, target, moved):
        target.set_state(v.RUNNING)
        assert (run_state(one), run_state(two)) == ("moved", "running")
        one.wait_for_log("moved to host h2")
        assert moved.query_port()[0] == 0
        assert refused(source.set_state, v.RUNNING) == errno.EPERM
        assert run_state(one) == "moved"


def test_source_that_runs_again_keeps_the_adapter(hosts):
    one, two = hosts
    with moving(one, two) as (source, target, _):
        source.set_state(v.RUNNING)
        assert refused(target.set_state, v.RUNNING) == errno.EPERM
        assert run_state(one) == "running"
        two.wait_for_log("its VM runs at the host that its state is from")


def test_destination_of_a_dead_source_starts(hosts):
    one, two = hosts
    with moving(one, two) as (_, target, moved):
        one.kill()
        target.set_state(v.RUNNING)
        two.wait_for_log("host h1 does not respond: the adapter starts without it")
        assert moved.query_port()[0] == 0


def test_source_that_has_ended_its_client_gives_the_adapter(hosts):
    one, two = hosts
    with attach(two.folder / "vm") as target:
        with attach(one.folder / "vm") as source:
            guest = Guest(source)
            guest.start()
            state = source.save()
            moved = adopt(guest, target)
        target.load(state)
        target.set_state(v.RUNNING)
        assert moved.query_port()[0] == 0


def test_operator_reclaims_the_adapter(hosts):
    one, two = hosts
    with moving(one, two) as (source, target, _):
        target.set_state(v.RUNNING)
        two.kill()
        one.must("adapter", "reclaim", "vm")
        assert run_state(one) == "stopped"
        source.call(v.RESET)
        assert run_state(one) == "running"


# ------------------------------------------------- two destinations of one state

@pytest.fixture
def three(start, etcd):
    """h1, h2 and h3 with one etcd, each with the adapter of the VM. No one else is at its addresses."""
    hosts = [start(number, args=("--etcd", etcd.url, "--insecure")) for number in (1, 2, 3)]
    for daemon in hosts:
        daemon.add_adapter("vm", 1)
    return hosts


@contextlib.contextmanager
def loaded(three, targets=(1, 2)):
    """A state of h1, loaded at other hosts: the client there, and the guest at the first and at the second one."""
    with contextlib.ExitStack() as stack:
        source, *others = (stack.enter_context(attach(three[number].folder / "vm")) for number in (0, *targets))
        guest = Guest(source)
        guest.start()
        state = source.save()
        guests = []
        for client in others:
            guests.append(adopt(guest, client))
            client.load(state)
        yield source, others, guests


def claimants_in(etcd):
    """The hosts whose claim has won; each claim also has the number of its load."""
    claims = [json.loads(value) for key, value in etcd.keys().items() if key.startswith("pvrdma/moves/default/")]
    assert all(len(claim["load"]) == 16 for claim in claims)
    return [claim["host"] for claim in claims]


def test_one_of_two_destinations_of_a_dead_source_starts(three, etcd):
    one, two, other = three
    with loaded(three) as (_, clients, guests):
        one.kill()
        clients[0].set_state(v.RUNNING)
        assert guests[0].query_port()[0] == 0
        assert refused(clients[1].set_state, v.RUNNING) == errno.EPERM
        other.wait_for_log("failed until reset: host h2 has started the adapter with this state")
        assert guests[0].query_port()[0] == 0
        assert claimants_in(etcd) == ["h2"]
        two.wait_for_log("host h1 does not respond: the adapter starts without it")


def test_destination_finds_a_source_without_gids(three):
    """The name of the source is in the state, and its address in etcd. Its VM has ended, so it has no GID."""
    one, two, _ = three
    with attach(two.folder / "vm") as target:
        with attach(one.folder / "vm") as source:
            guest = Guest(source)
            guest.start()
            state = source.save()
            moved = adopt(guest, target)
        target.load(state)
        wait_until(lambda: peer_of(two, "h1")["state"] == "up", "the connection to the source")
        target.set_state(v.RUNNING)
        assert moved.query_port()[0] == 0
        assert "does not respond" not in two.log()


def test_destinations_of_a_dead_source_ask_each_other(start):
    """Without etcd."""
    hosts = [start(number, *({1, 2, 3} - {number})) for number in (1, 2, 3)]
    for daemon in hosts:
        daemon.add_adapter("vm", 1)
    with loaded(hosts) as (_, clients, guests):
        wait_up(hosts[1], "h3")
        wait_up(hosts[2], "h2")
        hosts[0].kill()
        clients[0].set_state(v.RUNNING)
        assert guests[0].query_port()[0] == 0
        assert refused(clients[1].set_state, v.RUNNING) == errno.EPERM
        hosts[2].wait_for_log("failed until reset: host h2 has started the adapter with this state")


def test_both_destinations_of_a_dead_source_start_at_once(three, etcd):
    with loaded(three) as (_, clients, guests):
        three[0].kill()
        results = []
        with ThreadPoolExecutor(2) as pool:
            for attempt in [pool.submit(client.set_state, v.RUNNING) for client in clients]:
                results.append(attempt.exception())
        assert [result is None for result in results].count(True) == 1, results
        winner = results.index(None)
        assert guests[winner].query_port()[0] == 0
        assert claimants_in(etcd) == [f"h{winner + 2}"]


def test_destination_of_a_dead_source_tries_again(three, etcd):
    one, two, _ = three
    with attach(one.folder / "vm") as source:
        guest = Guest(source)
        guest.start()
        state = source.save()
        one.kill()
        for _ in range(2):
            with attach(two.folder / "vm") as target:
                moved = adopt(guest, target)
                target.load(state)
                target.set_state(v.RUNNING)
                assert moved.query_port()[0] == 0
    assert claimants_in(etcd) == ["h2"]


def test_destination_of_a_dead_source_without_an_etcd(three, etcd):
    """No host knows whether another one has started."""
    with loaded(three, targets=(1,)) as (_, clients, _guests):
        three[0].kill()
        etcd.kill()
        assert refused(clients[0].set_state, v.RUNNING) == errno.EPERM
        three[1].wait_for_log("it is unknown whether another host has started with this state (etcd does not respond)")


# ------------------------------------------------------- a QEMU that cannot migrate

@pytest.fixture(params=["peers", "etcd"])
def both(request, start):
    """h1 and h2, each with the adapter of the VM, and all that their directory needs."""
    if request.param == "peers":
        return request.getfixturevalue("hosts")
    url = request.getfixturevalue("etcd").url
    pair = [start(number, args=("--etcd", url, "--insecure")) for number in (1, 2)]
    for daemon in pair:
        daemon.add_adapter("vm", 1)
    return pair


def start_driver(client, daemon):
    """A guest that binds the GID of its MAC, as each driver does."""
    mac = [int(part, 16) for part in daemon.query("adapters")["adapters"][0]["mac"].split(":")]
    gid = bytes([0xFE, 0x80, *[0] * 6, mac[0] ^ 2, mac[1], mac[2], 0xFF, 0xFE, *mac[3:]])
    guest = Guest(client)
    guest.start()
    assert guest.try_command(CREATE_BIND, "III16sBBBB", 1024, 0xFFF, 0, gid, 2, 0, 0, 0) == 0
    return guest


def attach_until(daemon, is_refused):
    """A directory caches for a second that a GID is nowhere, and etcd tells of one that is gone after a moment."""
    end = time.monotonic() + PATIENCE
    while time.monotonic() < end:
        try:
            client = attach(daemon.folder / "vm")
        except v.Refused as refusal:
            assert refusal.args[0] == errno.EBUSY
            if is_refused:
                return None
        else:
            if not is_refused:
                return client
            client.close()
            time.sleep(0.3)
    raise AssertionError(f"not in time: refused={is_refused}")


def test_vm_that_cannot_be_migrated_has_no_destination(both):
    one, two = both
    with attach(one.folder / "vm") as source:
        guest = start_driver(source, one)
        attach_until(two, is_refused=True)
        two.wait_for_log("is refused: a VM of host h1 uses this adapter, and its QEMU cannot migrate it; unplug the device there first")
        assert guest.query_port()[0] == 0
        source.call(v.RESET)
        attach_until(two, is_refused=False).close()


@pytest.mark.parametrize("how", ["realize", "vm runs"])
def test_vm_that_can_be_migrated_has_a_destination(both, how):
    one, two = both
    with attach(one.folder / "vm") as source:
        start_driver(source, one)
        attach_until(two, is_refused=True)
        if how == "realize":
            source.feature(v.GET | v.MIGRATION, space=8)
        else:
            source.set_state(v.RUNNING)
        attach(two.folder / "vm").close()
    # That client could migrate. The next one is another.
    with attach_until(one, is_refused=False) as source:
        start_driver(source, one)
        attach_until(two, is_refused=True)


def test_destination_of_a_host_that_has_died(hosts):
    one, two = hosts
    with attach(one.folder / "vm") as source:
        start_driver(source, one)
        attach_until(two, is_refused=True)
        one.kill()
        attach(two.folder / "vm").close()


def test_upgrade_knows_that_the_vm_can_be_migrated(hosts):
    one, two = hosts
    with attach(one.folder / "vm") as source:
        start_driver(source, one)
        attach_until(two, is_refused=True)
        source.feature(v.GET | v.MIGRATION, space=8)
        one.upgrade()
        source.read_reg(0)
        wait_pair(one, two)
        attach(two.folder / "vm").close()
    with attach_until(one, is_refused=False) as source:
        start_driver(source, one)
        one.upgrade()
        wait_pair(one, two)
        attach_until(two, is_refused=True)


# ---------------------------------------------------------------------------- log

def test_client_that_leaves_its_driver_behind_is_named(daemon):
    with attach(daemon.socket()) as client:
        Guest(client).start()
    daemon.wait_for_log("while the guest used the adapter: it was killed, or it has migrated or saved the VM without the device")


def test_client_that_has_saved_its_state_is_not(daemon):
    with attach(daemon.socket()) as client:
        Guest(client).start()
        client.save()
    daemon.wait_for_log("has disconnected after the VM was migrated or saved")
    assert "without the device" not in daemon.log()
