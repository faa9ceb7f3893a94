# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
"""RAM in huge pages of the host. Their files are mapped in whole pages, and regions of guest RAM are not."""

import contextlib
import ctypes
import os
import struct

import pytest

import guest as driver
import vfio_user as v
from daemon_process import wait_until
from guest import Guest
from huge_pages import SIZE, free_pages, huge_memfd, huge_pages
from pipe_peer import Closed
from vfio_user import attach

MIB = 1 << 20
PAGE = 4096
MNT_DETACH = 2
# As QEMU announces them: below the VGA memory, shadowed ROM, and the rest. One file backs them.
REGIONS = [(0, 0xA0000), (0xC0000, 0x8000), (0xE8000, 0x18000), (MIB, driver.RAM_SIZE - MIB)]
libc = ctypes.CDLL(None, use_errno=True)


def hugetlbfs_file(tmp_path, size):
    if os.geteuid():
        pytest.skip("needs root to mount a hugetlbfs")
    folder = tmp_path / "huge"
    folder.mkdir(exist_ok=True)
    if libc.mount(b"test", str(folder).encode(), b"hugetlbfs", 0, b"pagesize=2M") < 0:
        pytest.skip(f"cannot mount a hugetlbfs: {os.strerror(ctypes.get_errno())}")
    try:
        fd = os.open(folder / "ram", os.O_RDWR | os.O_CREAT)
        os.ftruncate(fd, size)
    finally:
        libc.umount2(str(folder).encode(), MNT_DETACH)
    return fd


@pytest.fixture(params=["memfd", "hugetlbfs"])
def make_file(request, tmp_path):
    """A function that makes a file of huge pages with that size."""
    return huge_memfd if request.param == "memfd" else lambda size: hugetlbfs_file(tmp_path, size)


@pytest.fixture
def pages():
    with huge_pages(driver.RAM_SIZE // SIZE):
        yield


@pytest.fixture
def no_pages():
    with huge_pages(0):
        yield


@pytest.fixture
def high_rings(monkeypatch):
    """The DSR and the slots lie in the last region."""
    for name in ("DSR", "CMD", "RESP"):
        monkeypatch.setattr(driver, name, getattr(driver, name) + 3 * MIB)


def mapped_bytes(daemon):
    """Bytes of huge pages that the daemon maps."""
    lines = [line.split() for line in daemon.maps().splitlines() if "huge" in line or line.endswith("/ram")]
    bounds = [[int(number, 16) for number in line[0].split("-")] for line in lines]
    return sum(end - begin for begin, end in bounds)


def touch(client, address):
    """The device reads a DSR."""
    client.write_config(4, 6, 2)
    with contextlib.suppress(Closed):
        client.write_reg(driver.DSRLOW, address & 0xFFFFFFFF)
        client.write_reg(driver.DSRHIGH, address >> 32)
        client.read_reg(0)


@pytest.mark.usefixtures("pages", "high_rings")
def test_guest_with_the_regions_of_qemu_works(daemon, client, neighbour, make_file):
    guest = Guest(client, fd=make_file(driver.RAM_SIZE), regions=REGIONS)
    guest.start()
    assert guest.query_port()[0] == 0
    row = daemon.query("adapters")["adapters"][0]
    assert row["ram_bytes"] == sum(size for _, size in REGIONS)
    assert row["ram_counted_bytes"] == driver.RAM_SIZE
    neighbour.check()
    guest.close()


@pytest.mark.usefixtures("pages", "high_rings")
def test_guest_with_the_regions_of_qemu_works_after_an_upgrade(daemon, client, make_file):
    guest = Guest(client, fd=make_file(driver.RAM_SIZE), regions=REGIONS)
    guest.start()
    daemon.upgrade()
    assert guest.query_port()[0] == 0
    guest.close()


@pytest.mark.usefixtures("pages")
def test_pages_are_free_after_the_vm(daemon, make_file):
    for _ in range(2):
        before = free_pages()
        with attach(daemon.socket(1)) as client:
            guest = Guest(client, fd=make_file(driver.RAM_SIZE), regions=REGIONS)
            guest.start()
            assert free_pages() < before
            guest.close()
        wait_until(lambda: free_pages() == before, "the pages of the VM are free")


@pytest.mark.usefixtures("pages")
def test_removed_regions_are_unmapped(daemon, client, make_file):
    fd = make_file(2 * SIZE)
    for offset, size in [(0, PAGE), (SIZE - PAGE, PAGE), (PAGE, SIZE), (MIB, 2 * MIB)] * 20:
        client.map(0x10000000, size, [fd], offset=offset)
        client.unmap(0x10000000, size)
    wait_until(lambda: not mapped_bytes(daemon), "nothing of the file is mapped")
    os.close(fd)


@pytest.mark.usefixtures("no_pages")
@pytest.mark.parametrize("offset, size", [(0, PAGE), (PAGE, PAGE), (SIZE - PAGE, 2 * PAGE), (0, 2 * SIZE)])
def test_too_few_pages_end_only_that_vm(daemon, client, neighbour, make_file, offset, size):
    fd = make_file(2 * SIZE)
    client.map(0x10000000, size, [fd], offset=offset)
    touch(client, 0x10000000 + size - PAGE)
    assert client.ends()
    daemon.wait_for_log("there are too few huge pages")
    neighbour.check()
    wait_until(lambda: not mapped_bytes(daemon), "nothing of the file is mapped")
    os.close(fd)


@pytest.mark.usefixtures("pages")
def test_truncated_file_ends_only_that_vm(daemon, client, neighbour, make_file):
    guest = Guest(client, fd=make_file(driver.RAM_SIZE), regions=REGIONS)
    guest.start()
    os.ftruncate(guest.fd, 0)
    client.write(v.BAR_REGS, driver.REQUEST, struct.pack("<I", 0), posted=True)
    assert client.ends()
    daemon.wait_for_log("its RAM was truncated")
    neighbour.check()
    guest.close()
    wait_until(lambda: not mapped_bytes(daemon), "nothing of the file is mapped")
