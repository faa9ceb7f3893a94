# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
"""uar=mapped: doorbells are stores of the guest to memory of the daemon."""

import mmap
import os
import struct

import pytest

import vfio_user as v
from daemon_process import wait_until
from daemon_idle import assert_idle, cpu
from guest import Guest
from vfio_user import attach

UAR_SIZE = 4 << 20
PAGE = 4096
MAPPABLE = 4
QP, CQ, SRQ = 0, 4, 8
SEND, ARM = 1 << 30, 1 << 30
RESET = 2


@pytest.fixture
def daemon(start_daemon):
    return start_daemon(settings=",uar=mapped")


def map_uar(client):
    fd = client.region_fd(v.BAR_UAR)
    pages = mmap.mmap(fd, UAR_SIZE)
    os.close(fd)
    return pages


@pytest.fixture
def uar(client):
    with map_uar(client) as pages:
        yield pages


def ring(pages, offset, value):
    struct.pack_into("<I", pages, offset, value)


def word(pages, offset):
    return struct.unpack_from("<I", pages, offset)[0]


def doorbells(daemon):
    found = daemon.counters()
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
    with attach(start_daemon().socket()) as client:
        assert not client.region_info(v.BAR_UAR)[1] & MAPPABLE
        assert client.region_fd(v.BAR_UAR) is None


def test_client_cannot_change_its_size(client):
    fd = client.region_fd(v.BAR_UAR)
    for size in (0, UAR_SIZE - PAGE, 2 * UAR_SIZE):
        with pytest.raises(PermissionError):
            os.ftruncate(fd, size)
    os.close(fd)


def test_stores_are_doorbells(daemon, guest, uar):
    assert doorbells(daemon) == (0, 0)
    ring(uar, QP, SEND | 5)
    wait_until(lambda: word(uar, QP) == 0, "the doorbell to be taken")
    assert doorbells(daemon) == (1, 1), "there is no such QP"
    ring(uar, CQ, ARM | 7)
    ring(uar, SRQ, SEND | 9)
    wait_until(lambda: doorbells(daemon) == (3, 3), "both doorbells")


def test_next_vm_gets_memory_of_its_own(daemon):
    with attach(daemon.socket()) as first:
        old = map_uar(first)
        ring(old, QP, SEND | 5)
    wait_until(lambda: "pvrdma-uar" not in daemon.maps(), "the first VM's pages to be unmapped")
    with attach(daemon.socket()) as second:
        guest = Guest(second)
        guest.start()
        with map_uar(second) as pages:
            assert word(pages, QP) == 0
            ring(old, QP, SEND | 6)
            ring(pages, CQ, ARM | 1)
            wait_until(lambda: word(pages, CQ) == 0, "the doorbell to be taken")
        assert doorbells(daemon) == (1, 1)
        guest.close()
    old.close()


def test_nothing_stays_of_many_vms(daemon):
    def once():
        with attach(daemon.socket()) as client:
            map_uar(client).close()
        wait_until(lambda: "pvrdma-uar" not in daemon.maps(), "the VM to leave")

    once()
    before = daemon.open_files()
    for _ in range(20):
        once()
    daemon.wait_for_files(before)


def test_random_stores_while_the_neighbour_is_served(guest, uar, neighbour):
    for number in range(200):
        for page in range(0, UAR_SIZE, 64 * PAGE):
            uar[page:page + 12] = os.urandom(12)
        if number % 50 == 0:
            neighbour.check()


def test_sleeps_while_there_is_no_driver(daemon, client, new_guest):
    assert_idle(daemon)
    new_guest.start()
    before = cpu(daemon)
    wait_until(lambda: cpu(daemon) > before + 5, "the daemon polls")
    client.write_reg(0x0C, RESET)
    assert_idle(daemon)


def test_settings(daemon):
    assert daemon.table("adapters")[0]["UAR"] == "mapped"
    for number, setting in ((7, "mapped"), (8, "trapped")):
        daemon.add_adapter(f"x{number}", number, uar=setting)
    assert [row["UAR"] for row in daemon.table("adapters")[-2:]] == ["mapped", "trapped"]


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
        with attach(running.socket(number)) as client:
            guest = Guest(client)
            guest.start()
            assert guest.query_port()[0] == 0, "its commands run all the same"
            guest.close()
