# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
"""The longest commands of a hostile VM beside another VM of the same worker, whose queue pair is served in time."""

import os
import select
import struct
import subprocess

import pytest

import vfio_user as v
from daemon_process import PVRDMACTL, wait_until
from delay import sender_delay
from foreign_fds import MNT_DETACH, libc
from guest import CMD, DSRHIGH, DSRLOW, PAGE, REQUEST, Guest
from sender import CQ_RING, CQES, CREATE_PD, CREATE_QP, QP_RINGS, UD, WQES, create_ud_qp
from vfio_user import Refused, attach

CREATE_MR, CREATE_CQ, RESIZE_CQ = 4, 6, 7
EXT_MR_LAYOUT, EXT_RESIZE = 1 << 3, 1 << 5
DMA, FAST, LAYOUT = 1, 2, 4
TOP, DIRECTORY, TABLE = (number * PAGE for number in (128, 129, 130))
SPARSE, SPARSE_SIZE = 1 << 40, 16 << 30  # RAM without pages: the budget of translations grows with it
ENTRIES = 512
PAGES = ENTRIES ** 2  # of a directory of two levels
PAGES3 = 8 * PAGES


@pytest.fixture
def delay(daemon):
    """Of a VM that sends datagrams."""
    with attach(daemon.socket(2)) as client:
        sender, made = sender_delay(daemon, client)
        made.sample()
        yield made
        made.check()
        sender.close()


class Hostile(Guest):
    """A driver whose directories have scattered pages: each entry is a run of its own."""

    def __init__(self, client):
        super().__init__(client)
        self.sparse = v.memfd(SPARSE_SIZE)
        client.map(SPARSE, SPARSE_SIZE, [self.sparse])
        self.start(EXT_MR_LAYOUT | EXT_RESIZE)
        self.pd = self.command(CREATE_PD, "II", 0, 0)[0]
        for number in range(ENTRIES):
            self.put(TOP + 8 * number, "Q", DIRECTORY)
            self.put(DIRECTORY + 8 * number, "Q", TABLE)
            self.put(TABLE + 8 * number, "Q", (number % 2) * PAGE)

    def lay_out_ring(self, number, pages):
        """A ring of pages without memory yet. Return: addresses of its directory and of its header page."""
        base = number << 30
        tables = -(-pages // ENTRIES)
        first = SPARSE + base + (1 + tables) * PAGE
        os.pwrite(self.sparse, struct.pack(f"<{tables}Q", *(SPARSE + base + (1 + n) * PAGE for n in range(tables))), base)
        os.pwrite(self.sparse, struct.pack(f"<{pages}Q", *(first + n * PAGE for n in range(pages))), base + PAGE)
        return SPARSE + base, first

    def put_index(self, header, offset, value):
        os.pwrite(self.sparse, struct.pack("<I", value), header - SPARSE + offset)

    def put_create_mr(self, pages, levels=2):
        root = TOP if levels == 3 else DIRECTORY
        self.put(CMD, "QIIQQQIIIIQIIII", 0x1234, CREATE_MR, 0, 0, pages * PAGE, root, self.pd, 1, LAYOUT, pages, 0, 12,
                 levels, 0, 0)

    def put_create_fast(self):
        self.put(CMD, "QIIQQQIIIIQIIII", 0x1234, CREATE_MR, 0, 0, 0, 0, self.pd, 1, FAST, 1, 0, 0, 0, 0, 0)

    def put_create_qp(self, pd, cq):
        self.put(CMD, "QIIQ11I3H6B", 0x1234, CREATE_QP, 0, QP_RINGS, pd, cq, cq, 0, WQES, 16, 1, 1, 0, 0, 0, 3, 1, 0, 0,
                 UD, 0, 0, 0, 0)

    def request(self, times=1):
        """Post the command so many times: no reply is waited for."""
        body = struct.pack("<QIII", REQUEST, v.BAR_REGS, 4, 0)
        self.client.send_raw(self.client.message(v.REGION_WRITE, body, flags=v.NO_REPLY) * times)

    def has_reply(self):
        return bool(select.select([self.client.sock], [], [], 0)[0])

    def call_beside(self, delay, command, body=b"", posted=0):
        """After so many posted REQUESTs, a request whose reply is awaited while the other VM is served."""

        def send():
            self.request(posted)
            self.client.send_raw(self.client.message(command, body))

        delay.sample_while(lambda: not self.has_reply(), send)
        return self.client.reply()


@pytest.fixture
def hostile(client):
    made = Hostile(client)
    yield made
    made.close()


def test_posted_requests_of_long_registrations(daemon, hostile, delay):
    hostile.put_create_mr(PAGES)
    hostile.call_beside(delay, v.REGION_READ, struct.pack("<QII", 0, v.BAR_REGS, 4), posted=64)
    assert daemon.counters()["mrs"] >= 60


def test_client_leaves_in_the_middle_of_a_long_registration(daemon, hostile, delay):
    hostile.put_create_mr(PAGES3, levels=3)
    delay.sample(hostile.request)
    delay.sample_while(lambda: "has disconnected" not in daemon.log(), hostile.client.close)
    for _ in range(20):
        delay.sample()
    with attach(daemon.socket(1)) as other:
        assert other.read_reg(0) == 20
    assert daemon.counters()["mrs"] == 0


def repeat(hostile, times):
    for _ in range(times // 1000):
        hostile.request(1000)
    assert hostile.client.read_reg(0) == 20


def many_regions(daemon, hostile, number):
    hostile.put_create_fast()
    repeat(hostile, number)
    assert daemon.counters()["mrs"] == number


def many_queues(daemon, hostile, number):
    """So many QPs and CQs, all with the same rings."""
    hostile.put_create_qp(*create_ud_qp(hostile)[:2])
    repeat(hostile, number)
    hostile.put(CMD, "QIIQIIII", 0x1234, CREATE_CQ, 0, CQ_RING, 0, CQES, 2, 0)
    repeat(hostile, number)
    assert daemon.counters()["qps"] == daemon.counters()["cqs"] == number + 1


def test_reset_with_many_regions(daemon, hostile, delay):
    many_regions(daemon, hostile, 200000)
    hostile.call_beside(delay, v.RESET)
    assert daemon.counters()["mrs"] == 0


def test_adapter_with_many_objects_is_removed(daemon, hostile, delay):
    many_queues(daemon, hostile, 32000)
    many_regions(daemon, hostile, 260000)
    argv = [PVRDMACTL, "--control", daemon.control, "remove-adapter", "node1"]
    with delay.count_first_thread(), subprocess.Popen(argv) as child:
        delay.sample_while(lambda: child.poll() is None)
    assert child.returncode == 0
    assert [row["name"] for row in daemon.query("adapters")["adapters"]] == ["node2"]
    assert hostile.client.ends()


def test_ram_removed_under_long_regions(daemon, hostile, delay):
    hostile.put_create_mr(PAGES3, levels=3)
    hostile.request(12)
    assert hostile.client.read_reg(0) == 20
    assert daemon.counters()["mrs"] == 12
    hostile.call_beside(delay, v.DMA_UNMAP, struct.pack("<IIQQ", 24, 0, SPARSE, SPARSE_SIZE))


def test_largest_cq_is_resized(hostile, delay):
    """All entries are unread, as the guest says."""
    cqes, pages = 1 << 18, 1 + (1 << 12)
    (old, header), (new, _) = hostile.lay_out_ring(0, pages), hostile.lay_out_ring(1, pages)
    cq = hostile.command(CREATE_CQ, "QIIII", old, 0, cqes, pages, 0)[0]
    hostile.put_index(header, 12, cqes)
    hostile.put(CMD, "QIIIIQII", 0x1234, RESIZE_CQ, 0, cq, cqes, new, pages, 0)
    hostile.call_beside(delay, v.REGION_READ, struct.pack("<QII", 0xc, v.BAR_REGS, 4), posted=1)


def test_long_write_to_dsrhigh_resets_nothing(hostile):
    """Only an access of the register's size has an effect."""
    hostile.client.write(v.BAR_REGS, 8, bytes(8))
    assert hostile.client.read_reg(0) == 20
    assert hostile.query_port()[0] == 0


# -------------------------------------------------------------- RAM that is given back


LARGE = 512 << 20
ADDRESS = 2 << 40


def large_file():
    """With all pages: the kernel needs tens of milliseconds to free them."""
    fd = v.memfd(LARGE)
    os.posix_fallocate(fd, 0, LARGE)
    return fd


def map_large(hostile):
    """The mapping is then the only reference to the file."""
    fd = large_file()
    hostile.client.map(ADDRESS, LARGE, [fd])
    os.close(fd)


def mappings_end(daemon, before):
    wait_until(lambda: daemon.mappings() <= before, "RAM of the hostile VM unmapped")


def test_large_ram_removed(daemon, hostile, delay):
    before = daemon.mappings()
    map_large(hostile)
    hostile.call_beside(delay, v.DMA_UNMAP, struct.pack("<IIQQ", 24, 0, ADDRESS, LARGE))
    mappings_end(daemon, before)


def test_client_with_large_ram_leaves(daemon, hostile, delay):
    before = daemon.mappings()
    map_large(hostile)
    delay.sample_while(lambda: "has disconnected" not in daemon.log(), hostile.client.close)
    delay.sample()
    mappings_end(daemon, before)


def test_large_ram_refused(hostile, delay):
    """The descriptor is the only reference to the file."""
    fd = large_file()

    def send():
        body = struct.pack("<IIQQQ", 32, 3, 0, SPARSE, LARGE)
        hostile.client.send_raw(hostile.client.message(v.DMA_MAP, body), [fd])
        os.close(fd)

    delay.sample_while(lambda: not hostile.has_reply(), send)
    with pytest.raises(Refused):
        hostile.client.reply()


@pytest.fixture
def full_file(tmp_path):
    """A file whose first page is a hole, in a file system without space for it. The caller has the only reference."""
    if os.geteuid():
        pytest.skip("needs root to mount a file system")
    folder = tmp_path / "full"
    folder.mkdir()
    if libc.mount(b"test", str(folder).encode(), b"tmpfs", 0, f"size={LARGE}".encode()) < 0:
        pytest.skip("cannot mount a file system")
    try:
        fd = os.open(folder / "ram", os.O_RDWR | os.O_CREAT)
        os.posix_fallocate(fd, PAGE, LARGE - PAGE)
        with open(folder / "rest", "wb") as rest:
            os.posix_fallocate(rest.fileno(), 0, PAGE)
    finally:
        libc.umount2(str(folder).encode(), MNT_DETACH)
    return fd


def test_ram_without_space(daemon, client, delay, full_file):
    """The device reads the hole. What replaces the memory there does not free the rest of the file."""
    client.map(0, LARGE, [full_file])
    os.close(full_file)
    client.write_config(4, 6, 2)
    client.write_reg(DSRLOW, 0)
    body = struct.pack("<QIII", DSRHIGH, v.BAR_REGS, 4, 0)
    delay.sample_while(lambda: "is disconnected" not in daemon.log(),
                       lambda: client.send_raw(client.message(v.REGION_WRITE, body, flags=v.NO_REPLY)))
    daemon.wait_for_log("its RAM was truncated, or its file system is full")
