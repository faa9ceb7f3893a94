# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
"""The PCI device as a well-behaved QEMU sees it."""

import os
import select
import struct
from pathlib import Path

import pytest

import vfio_user as v
from daemon_idle import assert_idle
from vfio_user import Client, attach

COMMAND, BAR0, BAR1, BAR2, BAR3, CAPS = 0x04, 0x10, 0x14, 0x18, 0x1C, 0x34
MEMORY, MASTER, INTX_OFF = 2, 4, 0x400


def test_negotiates_version_0_1(daemon):
    with Client(daemon.socket()) as client:
        version, text = client.negotiate()
        assert version == (0, 1)
        assert text["capabilities"]["max_msg_fds"] >= 1


def test_identity(client):
    assert client.read_config(0, 4) == 0x082015AD
    assert client.read_config(0x08, 4) == 0x02800000
    assert client.read_config(0x2C, 4) == 0x082015AD
    assert client.read_config(0x3D, 1) == 1


def test_whole_config_space_at_once(client):
    assert len(client.read(v.CONFIG, 0, 256)) == 256


def test_regions(client):
    sizes = {index: client.region_info(index)[4] for index in range(9)}
    assert sizes == {0: 16384, 1: 4096, 2: 4 << 20, 3: 0, 4: 0, 5: 0, 6: 0, 7: 256, 8: 0}
    for index in (0, 1, 2):
        assert client.region_info(index)[1] & 3 == 3, "readable and writable, not mappable"


@pytest.mark.parametrize("offset, size", [(BAR0, 16384), (BAR1, 4096), (BAR2, 4 << 20)])
def test_bar_sizing(client, offset, size):
    client.write_config(offset, 0xFFFFFFFF)
    assert client.read_config(offset) == 0x100000000 - size
    client.write_config(offset, 0xFE800000)
    assert client.read_config(offset) == 0xFE800000


@pytest.mark.parametrize("offset", range(BAR3, 0x28, 4))
def test_absent_bar_is_zero(client, offset):
    client.write_config(offset, 0xFFFFFFFF)
    assert client.read_config(offset) == 0


def test_command_register_bits(client):
    client.write_config(COMMAND, 0xFFFF, 2)
    assert client.read_config(COMMAND, 2) == 0x0546
    client.write_config(COMMAND, MASTER, 1)
    assert client.read_config(COMMAND, 2) == 0x0504, "a byte written leaves the other alone"


def test_identity_is_read_only(client):
    before = client.read(v.CONFIG, 0, 256)
    for offset in (0, 2, 8, 0x2C, 0x34, 0x3D):
        client.write_config(offset, 0xFFFF, 2)
    after = bytearray(client.read(v.CONFIG, 0, 256))
    after[0x3C] = before[0x3C]
    assert bytes(after) == before


def test_msix_capability(client):
    assert client.read_config(0x06, 2) & 0x10
    pos = client.read_config(CAPS, 1)
    assert client.read_config(pos, 1) == 0x11
    assert client.read_config(pos + 2, 2) == 65, "66 vectors"
    assert client.read_config(pos + 4) == 0x0000, "table in BAR0 at 0"
    assert client.read_config(pos + 8) == 0x2000, "pending bits in BAR0 at 0x2000"
    # Of the control word, enable and mask are writable.
    client.write_config(pos, 0xFFFFFFFF)
    assert client.read_config(pos) == 0xC0410011
    client.write_config(pos + 2, 0, 2)
    assert client.read_config(pos + 2, 2) == 65


def test_irq_counts(client):
    assert [client.irq_info(index)[3] for index in range(5)] == [1, 0, 66, 1, 1]


def test_uar_reads_all_ones(client):
    assert client.read(v.BAR_UAR, 0, 4) == b"\xff" * 4
    assert client.read(v.BAR_UAR, (4 << 20) - 8, 8) == b"\xff" * 8


def test_msix_bar_reads_zero(client):
    client.write(v.BAR_MSIX, 0, b"\xff" * 4)
    assert client.read(v.BAR_MSIX, 0, 16) == bytes(16)


def test_posted_writes_keep_their_order(client):
    for value in range(300):
        client.write(v.BAR_REGS, 0x1C, struct.pack("<I", value), posted=True)
    assert client.read_reg(0x1C) == 299


def test_reset_turns_bus_master_off(client):
    client.write_config(COMMAND, MEMORY | MASTER | INTX_OFF, 2)
    client.write_config(BAR1, 0xFE000000)
    client.call(v.RESET)
    assert client.read_config(COMMAND, 2) == 0
    assert client.read_config(BAR1) == 0
    assert client.read_config(0) == 0x082015AD


def ram_of(daemon):
    return daemon.query("adapters")["adapters"][0]["ram_bytes"]


def test_next_vm_finds_a_fresh_device(daemon):
    with attach(daemon.socket()) as first:
        first.map(0, 1 << 20, [v.memfd(1 << 20)])
        first.write_config(COMMAND, MASTER, 2)
        first.write_reg(0x1C, 0xFFFFFFFF)
        fresh = first.read_reg(0x1C)
    with attach(daemon.socket()) as second:
        assert second.read_config(COMMAND, 2) == 0
        assert second.read_reg(0x1C) != fresh or fresh == 0
        second.map(0, 1 << 20, [v.memfd(1 << 20)])
        assert second.read_reg(0) == 20
    daemon.wait_for_log("has disconnected")


def test_eventfds_are_accepted_and_not_signaled(client):
    fds = [os.eventfd(0, os.EFD_NONBLOCK) for _ in range(3)]
    client.set_irqs(v.MSIX, 0, 3, fds)
    client.set_irqs(v.MSIX, 0, 0, flags=v.TRIGGER | v.NONE)
    client.set_irqs(v.MSIX, 1, 1, fds[:1])
    client.set_irqs(v.INTX, 0, 1, flags=v.UNMASK | v.NONE)
    assert not select.select(fds, [], [], 0)[0]
    for fd in fds:
        os.close(fd)


def test_ram_is_mapped_and_unmapped(daemon, client):
    fd = v.memfd(64 << 20)
    client.map(0, 640 << 10, [fd])
    client.map(1 << 20, 63 << 20, [fd], offset=1 << 20)
    assert ram_of(daemon) == (63 << 20) + (640 << 10)
    client.unmap(0, 640 << 10)
    assert ram_of(daemon) == 63 << 20
    assert " 63.0 MiB " in daemon.must("adapters")
    client.unmap(0, 0, flags=2)
    assert ram_of(daemon) == 0
    os.close(fd)


def test_half_message_costs_no_cpu(daemon, client):
    client.send_raw(client.message(v.GET_INFO, bytes(16))[:20])
    assert_idle(daemon)


def test_second_qemu_is_refused(daemon, client):
    with Client(daemon.socket()) as second:
        assert second.ends()
    daemon.wait_for_log(f"process {os.getpid()} is refused: QEMU (process {os.getpid()}) is attached; give every VM")
    assert client.read_reg(0) == 20


def test_unshared_ram_names_the_option(daemon, client):
    client.map(0, 512 << 20)
    client.call(v.RESET)
    daemon.wait_for_log("is not shared, so its device cannot work: start QEMU with "
                        "-object memory-backend-memfd,id=mem,size=...,share=on -machine memory-backend=mem")
    client.write_reg(0x08, 0)
    assert daemon.log().count("is not shared") == 1


def test_unshared_video_memory_is_normal(daemon, client):
    client.map(0xFD000000, 16 << 20)
    client.map(0, 64 << 20, [v.memfd(64 << 20)])
    client.call(v.RESET)
    client.write_reg(0x08, 0)
    assert "not shared" not in daemon.log()


def test_file_on_disk_is_not_mapped(daemon, client):
    path = daemon.folder / "disk"
    path.write_bytes(bytes(1 << 20))
    mounts = [line.split() for line in Path("/proc/mounts").read_text().splitlines()]
    if "tmpfs" in [kind for _, place, kind, *_ in mounts if str(path).startswith(place + "/")]:
        pytest.skip("the folder for temporary files is no disk")
    fd = os.open(path, os.O_RDWR)
    client.map(0, 1 << 20, [fd])
    assert ram_of(daemon) == 0
    client.unmap(0, 1 << 20)
    os.close(fd)


def test_client_that_leaves_gives_everything_back(daemon):
    files, maps = daemon.open_files(), daemon.mappings()
    with attach(daemon.socket()) as client:
        fd = v.memfd(8 << 20)
        for number in range(8):
            client.map(number << 20, 1 << 20, [fd], offset=number << 20)
        client.set_irqs(v.MSIX, 0, 3, [os.eventfd(0) for _ in range(3)])
        assert daemon.open_files() > files
        assert daemon.mappings() >= 1
    daemon.wait_for_files(files)
    assert (maps, daemon.mappings()) == (0, 0)
