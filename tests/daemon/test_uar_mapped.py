# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
"""uar=mapped: doorbells are stores of the guest to memory of the daemon."""

import mmap
import os
import struct

import pytest

import vfio_user as v
from daemon_process import mac, wait_until
from guest import Guest
from daemon_idle import assert_idle, cpu
from vfio_user import Client

UAR_SIZE = 4 << 20
PAGE = 4096
MAPPABLE = 4
QP, CQ, SRQ = 0, 4, 8
SEND, ARM = 1 << 30, 1 << 30
RESET = 2


@pytest.fixture
def daemon(start_daemon):
    return start_daemon(settings=",uar=mapped")


@pytest.fixture
def guest(client):
    made = Guest(client)
    yield made
    made.close()


@pytest.fixture
def uar(client):
    fd = client.region_fd(v.BAR_UAR)
    with mmap.mmap(fd, UAR_SIZE) as pages:
        os.close(fd)
        yield pages


def ring(pages, offset, value):
    struct.pack_into("<I", pages, offset, value)


def word(pages, offset):
    return struct.unpack_from("<I", pages, offset)[0]


def counters(daemon):
    return {name: int(value) for name, value in
            (line.split() for line in daemon.ctl("stats", "node1").stdout.splitlines()[1:]) if value.isdigit()}


def doorbells(daemon):
    found = counters(daemon)
    return found["doorbells"], found["doorbells_ignored"]


def test_doorbell_bar_can_be_mapped(client):
    assert client.region_info(v.BAR_UAR)[1] & MAPPABLE
    assert client.region_info(v.BAR_UAR)[4] == UAR_SIZE
    fd = client.region_fd(v.BAR_UAR)
    assert os.fstat(fd).st_size == UAR_SIZE
    os.close(fd)
    for index in (v.BAR_MSIX, v.BAR_REGS, v.CONFIG):
        assert not client.region_info(index)[1] & MAPPABLE
        assert client.region_fd(index) is None


def test_with_a_trapped_uar_it_cannot(start_daemon):
    with Client(start_daemon().socket(1)) as client:
        client.negotiate()
        assert not client.region_info(v.BAR_UAR)[1] & MAPPABLE
        assert client.region_fd(v.BAR_UAR) is None


def test_client_cannot_change_its_size(client):
    fd = client.region_fd(v.BAR_UAR)
    for size in (0, UAR_SIZE - PAGE, 2 * UAR_SIZE):
        with pytest.raises(PermissionError):
            os.ftruncate(fd, size)
    os.close(fd)


def test_stores_are_doorbells(daemon, guest, uar):
    assert guest.start() == 0
    assert doorbells(daemon) == (0, 0)
    ring(uar, QP, SEND | 5)
    wait_until(lambda: word(uar, QP) == 0, "the doorbell to be taken")
    assert doorbells(daemon) == (1, 1), "there is no such QP"
    ring(uar, CQ, ARM | 7)
    ring(uar, SRQ, SEND | 9)
    wait_until(lambda: doorbells(daemon) == (3, 3), "both doorbells")


def test_trapped_writes_are_doorbells_too(daemon, client, guest):
    assert guest.start() == 0
    client.write(v.BAR_UAR, QP, struct.pack("<I", SEND | 5))
    client.write(v.BAR_UAR, CQ, struct.pack("<I", SEND | 5), posted=True)
    wait_until(lambda: doorbells(daemon) == (2, 2), "both doorbells")


def test_other_places_are_memory(daemon, guest, uar):
    assert guest.start() == 0
    uar[12:] = b"\xff" * (UAR_SIZE - 12)
    ring(uar, QP, SEND | 5)
    wait_until(lambda: word(uar, QP) == 0, "the doorbell to be taken")
    assert doorbells(daemon)[0] == 1
    assert uar[12:PAGE] == b"\xff" * (PAGE - 12)


def test_reset_forgets_doorbells(daemon, client, guest, uar):
    assert guest.start() == 0
    client.write_reg(0x0C, RESET)
    ring(uar, QP, SEND | 5)
    client.call(v.RESET)
    assert word(uar, QP) == 0
    ring(uar, QP, SEND | 5)
    assert guest.start() == 0
    assert word(uar, QP) == 0 and doorbells(daemon) == (0, 0)


def test_next_vm_gets_memory_of_its_own(daemon):
    with Client(daemon.socket(1)) as first:
        first.negotiate()
        fd = first.region_fd(v.BAR_UAR)
        old = mmap.mmap(fd, UAR_SIZE)
        os.close(fd)
        ring(old, QP, SEND | 5)
    wait_until(lambda: "pvrdma-uar" not in daemon.maps(), "the first VM's pages to be unmapped")
    with Client(daemon.socket(1)) as second:
        second.negotiate()
        guest = Guest(second)
        assert guest.start() == 0
        fd = second.region_fd(v.BAR_UAR)
        with mmap.mmap(fd, UAR_SIZE) as pages:
            os.close(fd)
            assert word(pages, QP) == 0
            ring(old, QP, SEND | 6)
            ring(pages, CQ, ARM | 1)
            wait_until(lambda: word(pages, CQ) == 0, "the doorbell to be taken")
        assert doorbells(daemon) == (1, 1)
        guest.close()
    old.close()


def test_nothing_stays_of_many_vms(daemon):
    def once():
        with Client(daemon.socket(1)) as client:
            client.negotiate()
            os.close(client.region_fd(v.BAR_UAR))
        wait_until(lambda: "pvrdma-uar" not in daemon.maps(), "the VM to leave")

    once()
    before = daemon.open_files()
    for _ in range(20):
        once()
    wait_until(lambda: daemon.open_files() == before, "no descriptor is left")


def test_random_stores_while_the_neighbour_is_served(guest, uar, neighbour):
    assert guest.start() == 0
    for number in range(200):
        for page in range(0, UAR_SIZE, 64 * PAGE):
            uar[page:page + 12] = os.urandom(12)
        if number % 50 == 0:
            neighbour()


def test_sleeps_while_there_is_no_driver(daemon, client, guest):
    assert_idle(daemon)
    assert guest.start() == 0
    before = cpu(daemon)
    wait_until(lambda: cpu(daemon) > before + 5, "the daemon polls")
    client.write_reg(0x0C, RESET)
    assert_idle(daemon)


def test_settings(daemon):
    heads, values = (line.split() for line in daemon.ctl("adapters").stdout.splitlines()[:2])
    assert dict(zip(heads, values))["UAR"] == "mapped"
    for number, setting in ((7, "mapped"), (8, "trapped")):
        done = daemon.ctl("add-adapter", f"name=x{number},socket={daemon.folder}/x{number},mac={mac(number)},"
                                         f"uar={setting}")
        assert done.returncode == 0, done.stderr
    rows = {line.split()[0]: line.split()[5] for line in daemon.ctl("adapters").stdout.splitlines()}
    assert (rows["x7"], rows["x8"]) == ("mapped", "trapped")
    done = daemon.ctl("add-adapter", f"name=y,socket={daemon.folder}/y,mac={mac(9)},uar=maybe")
    assert done.returncode == 2 and "uar 'maybe' is neither mapped nor trapped" in done.stderr


def on_one_cpu(start_daemon, **kwargs):
    """A daemon that may use one CPU."""
    allowed = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {min(allowed)})
    try:
        return start_daemon(args=("--workers", "2"), **kwargs)
    finally:
        os.sched_setaffinity(0, allowed)


def test_more_polling_workers_than_cpus(start_daemon):
    assert "uar=mapped" not in on_one_cpu(start_daemon).log()
    running = on_one_cpu(start_daemon, settings=",uar=mapped")
    assert running.log().count("2 workers have adapters with uar=mapped, and this process may use 1 CPUs: these workers "
                               "wait for each other") == 1
    for number in (1, 2):
        with Client(running.socket(number)) as client:
            client.negotiate()
            guest = Guest(client)
            assert guest.start() == 0
            assert guest.query_port()[0] == 0, "they get through all the same"
            guest.close()


def test_in_a_configuration_file(start_daemon, tmp_path):
    path = tmp_path / "conf"
    path.write_text(f"[adapter a]\nsocket = {tmp_path}/a\nmac = {mac(9)}\nuar = mapped\n")
    running = start_daemon(adapters=0, args=("--config", str(path)))
    assert running.ctl("adapters").stdout.splitlines()[1].split()[5] == "mapped"
