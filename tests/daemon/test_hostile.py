# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
"""QEMUs that a guest has taken over: they get an error or are disconnected, and their neighbours are served."""

import contextlib
import errno
import fcntl
import os
import random
import resource
import socket
import struct
import tempfile
import time

import pytest

import vfio_user as v
from daemon_idle import cpu, wait_quiet
from daemon_process import PATIENCE, ROOT, stopped, wait_until
from guest import Guest
from pipe_peer import Closed
from sender import CREATE_PD
from vfio_user import Client, Refused, attach

PIECES, PAGE = 128, 4096  # regions of a VM, at most


@pytest.fixture(autouse=True)
def always_with_a_neighbour(neighbour):
    """Each test begins and ends with a check of the other VM."""
    return neighbour


@pytest.fixture
def nothing_stays(daemon, client):
    """At the end the daemon has as many descriptors and mappings as before."""
    before = daemon.open_files(), daemon.mappings()
    yield
    wait_until(lambda: (daemon.open_files(), daemon.mappings()) == before, f"descriptors, mappings: {before}")


def refused(error, function, *args, **kwargs):
    with pytest.raises(Refused) as info:
        function(*args, **kwargs)
    assert info.value.args[0] == error, os.strerror(info.value.args[0])


# ------------------------------------------------------------------- headers


@pytest.mark.parametrize("fields, why", [
    *(({"size": size}, f"message size {size} (command 4), expected 16 to 4096")
      for size in (0, 1, 15, 4097, 1 << 20, 0x7FFFFFFF, 0xFFFFFFFF)),
    ({"flags": v.REPLY}, "message type 1, expected a command (0)"),
], ids=str)
def test_impossible_header(daemon, client, fields, why):
    client.send_raw(client.message(v.GET_INFO, bytes(16), **fields))
    assert client.ends()
    daemon.wait_for_log(f"is disconnected: {why}")


@pytest.mark.parametrize("command", [0, 15, 19, 255, 65535, v.VERSION, v.DMA_READ, v.DMA_WRITE, v.DIRTY_PAGES,
                                     v.GET_REGION_IO_FDS])
def test_command_that_is_not_supported(client, command):
    refused(errno.EOPNOTSUPP, client.call, command, bytes(64))
    assert client.read_reg(0) == 20


@pytest.mark.parametrize("command", range(1, 15))
@pytest.mark.parametrize("size", [0, 1, 3, 15])
def test_body_too_short(client, command, size):
    if command != v.RESET:
        with pytest.raises(Refused):
            client.call(command, b"\x01" * size)
    assert client.read_reg(0) == 20


def test_reset_with_a_surplus_body(client):
    client.call(v.RESET, bytes(100))
    assert client.read_reg(0) == 20


@pytest.mark.parametrize("seed", range(10))
def test_garbage(daemon, seed, always_with_a_neighbour):
    data = random.Random(seed).randbytes(3000)
    for agreed in (False, True):
        with Client(daemon.socket()) as client:
            if agreed:
                client.negotiate()
            try:
                client.send_raw(data)
                client.sock.shutdown(socket.SHUT_WR)
                client.ends()
            except (Closed, OSError):
                pass
        always_with_a_neighbour.check()


@pytest.mark.parametrize("seed", range(5))
def test_valid_headers_with_garbage_bodies(daemon, seed):
    rng = random.Random(seed)
    with attach(daemon.socket()) as client:
        for _ in range(500):
            command = rng.choice([2, 3, 4, 5, 7, 8, 9, 10, 13])
            words = rng.choice([4, 5, 6, 8, 12])
            body = b"".join(struct.pack("<I", rng.choice([0, 1, 2, 3, 7, 16, 32, 64, 0xFFFFFFFF, rng.getrandbits(32)]))
                            for _ in range(words))
            try:
                client.call(command, body, flags=rng.choice([0, 0, 0, 0x40, 0x100]))
            except Refused:
                pass
        assert client.read_reg(0) == 20


# ------------------------------------------------- messages that come in pieces


def test_half_header_waits(client, always_with_a_neighbour):
    message = client.message(v.GET_INFO, struct.pack("<IIII", 16, 0, 0, 0))
    client.send_raw(message[:7])
    always_with_a_neighbour.check()
    client.send_raw(message[7:20])
    always_with_a_neighbour.check()
    client.send_raw(message[20:])
    assert client.reply()[1] == v.GET_INFO


@pytest.mark.parametrize("agreed, command, body, reply", [
    (False, v.VERSION, struct.pack("<HH", 0, 1), struct.pack("<HH", 0, 1)),
    (True, v.REGION_READ, struct.pack("<QII", 0, v.BAR_REGS, 4), struct.pack("<QIII", 0, v.BAR_REGS, 4, 20)),
], ids=["VERSION", "REGION_READ"])
def test_byte_by_byte(daemon, agreed, command, body, reply):
    with attach(daemon.socket()) if agreed else Client(daemon.socket()) as client:
        for byte in client.message(command, body):
            client.send_raw(bytes([byte]))
        _, replied, data = client.reply()
        assert replied == command and data.startswith(reply)


@pytest.mark.parametrize("before", [0, 1, 16, 20, 31])
def test_urgent_data_in_a_message(daemon, client, always_with_a_neighbour, before):
    """MSG_PEEK ends at such a byte. The worker neither spins nor executes what it has not seen."""
    message = client.message(v.GET_IRQ_INFO, struct.pack("<IIII", 16, 0, v.MSIX, 0))
    with contextlib.suppress(Closed):
        client.send_raw(message[:before])
        client.sock.send(b"\0", socket.MSG_OOB)
        client.send_raw(message[before:] + bytes(64))
    if before >= 16 or not before:
        assert client.ends()
        daemon.wait_for_log("is disconnected: urgent data in a message" if before else "is disconnected: message")
    always_with_a_neighbour.rest()
    wait_quiet(lambda: cpu(daemon), 0.5, "CPU ticks: the daemon waits without polling")


def test_leaves_in_the_middle_of_a_message(daemon, client):
    client.send_raw(client.message(v.GET_INFO, bytes(16))[:20])
    client.close()
    daemon.wait_for_log("has disconnected")


def test_silent_client_is_thrown_out(daemon):
    with Client(daemon.socket()) as silent:
        assert silent.ends()
    daemon.wait_for_log("is disconnected: no VERSION message within 5 s")
    attach(daemon.socket()).close()


@pytest.mark.parametrize("body", [b"", b"\0\0", struct.pack("<HH", 1, 0), struct.pack("<HH", 0, 1) + b"{",
                                  struct.pack("<HH", 0, 1) + b"garbage\0", struct.pack("<HH", 0, 1) + b"[" * 3000 + b"\0",
                                  struct.pack("<HH", 0, 1) + b'{"capabilities":{"max_msg_fds":99999}}\0'])
def test_no_agreement_on_the_version(daemon, body):
    with Client(daemon.socket()) as client:
        client.send_raw(client.message(v.VERSION, body))
        with pytest.raises((Closed, Refused)):
            client.reply()
        assert client.ends()
    daemon.wait_for_log("no agreement on the vfio-user version")


def test_first_message_is_no_version(daemon):
    with Client(daemon.socket()) as client:
        client.send_raw(client.message(v.GET_INFO, bytes(16)))
        assert client.ends()
    daemon.wait_for_log("its first message is command 4, expected a VERSION")


# ------------------------------------------------------------------------ RAM


def pipe_end():
    ends = os.pipe()
    os.close(ends[0])
    return ends[1]


@pytest.mark.parametrize("make", [pipe_end, lambda: os.open("/dev/null", os.O_RDWR),
                                  lambda: os.open("/dev/zero", os.O_RDWR), lambda: os.eventfd(0),
                                  lambda: os.open("/", os.O_RDONLY), lambda: socket.socket().detach()],
                         ids=["pipe", "null", "zero", "eventfd", "folder", "socket"])
@pytest.mark.usefixtures("nothing_stays")
def test_descriptor_that_is_no_memory(daemon, client, make):
    fd = make()
    refused(errno.EINVAL, client.map, 0, 4096, [fd])
    os.close(fd)
    daemon.wait_for_log("is refused: the descriptor for region 0x0+0x1000 is not memory")


def test_file_of_a_disk_as_ram(daemon, client):
    """Only tmpfs and hugetlbfs have memory. A page of any other file, such as one of NFS, can block its reader."""
    with tempfile.NamedTemporaryFile(dir=ROOT) as file:
        try:
            fcntl.fcntl(file, fcntl.F_GET_SEALS)
        except OSError:
            pass
        else:
            pytest.skip(f"{ROOT} is in memory")
        file.truncate(1 << 20)
        client.map(0, 1 << 20, [file.fileno()])
        assert client.read_reg(0) == 20
        assert file.name not in daemon.maps()
        client.unmap(0, 1 << 20)


@pytest.mark.parametrize("address, size, offset", [
    (0, 0, 0), (1 << 64 - 1, 1 << 63, 0), ((1 << 64) - 4096, 8192, 0), (0, 8192, 0), (0, 4096, 4096), (0, 4096, 1 << 63),
    (0, 4096, (1 << 64) - 4096), (0, 1 << 63, 0), (0, 100, 1), (1, 100, 0), (0, 4095, 4095)])
@pytest.mark.usefixtures("nothing_stays")
def test_impossible_region(client, address, size, offset):
    fd = v.memfd(4096)
    refused(errno.EINVAL, client.map, address & (1 << 64) - 1, size, [fd], offset=offset)
    os.close(fd)


def test_overlapping_regions(daemon, client):
    fd = v.memfd(1 << 20)
    client.map(0x10000, 0x10000, [fd])
    files, maps = daemon.open_files(), daemon.mappings()
    for address, size in ((0x10000, 0x10000), (0xF000, 0x2000), (0x1F000, 0x2000), (0, 0x100000), (0x11000, 0x1000)):
        refused(errno.EEXIST, client.map, address, size, [fd])
        refused(errno.EEXIST, client.map, address, size)
    os.close(fd)
    wait_until(lambda: (daemon.open_files(), daemon.mappings()) == (files, maps), "descriptors closed")


@pytest.mark.parametrize("command, body", [
    (v.DMA_UNMAP, struct.pack("<IIQQ", 24, 2, 0, 0)),
    (v.DEVICE_FEATURE, struct.pack("<IIIi", 16, v.SET | v.STATE, v.STOP, -1))], ids=["unmap", "state"])
@pytest.mark.parametrize("split", [16, 20])
def test_message_that_takes_long_is_split_by_a_descriptor(daemon, client, command, body, split):
    """The daemon prepares its execution in steps before it receives the message, so it must see all of it."""
    client.map(0, 1 << 20, [v.memfd(1 << 20)])
    message = client.message(command, body)
    with stopped(daemon):
        client.send_raw(message[:split], [v.memfd(4096)])
        client.send_raw(message[split:])
    assert client.ends()
    daemon.wait_for_log("is disconnected: descriptors in the middle of a message")


def test_unmap_what_is_not_mapped(client):
    client.map(0, 0x10000, [v.memfd(0x10000)])
    for address, size in ((0, 0x1000), (0x1000, 0x1000), (0x10000, 0x1000), (0, 0), (0, 1 << 63)):
        refused(errno.ENOENT, client.unmap, address, size)
    refused(errno.EOPNOTSUPP, client.unmap, 0, 0x10000, flags=1)
    refused(errno.EOPNOTSUPP, client.unmap, 0, 0x10000, flags=2)
    client.unmap(0, 0x10000)
    refused(errno.ENOENT, client.unmap, 0, 0x10000)


def test_too_many_regions(client):
    fd = v.memfd(4096)
    for number in range(128):
        client.map(number << 12, 4096, [fd])
    refused(errno.ENOSPC, client.map, 128 << 12, 4096, [fd])
    client.unmap(0, 4096)
    client.map(128 << 12, 4096, [fd])


def host_ram():
    return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")


def test_ram_larger_than_the_host(daemon, client):
    """A sparse file."""
    size = host_ram() & -(1 << 20)
    fd = v.memfd(size + (2 << 20))
    refused(errno.ENOSPC, client.map, 0, size + (2 << 20), [fd])
    daemon.wait_for_log("see memory=")
    client.map(0, size, [fd])
    refused(errno.ENOSPC, client.map, size, 2 << 20, [fd], offset=size)


def test_one_file_at_many_addresses(daemon, client):
    """Its pages count once, and it uses up little of the daemon's address space."""
    size = host_ram() & -(1 << 20)
    fd = v.memfd(size)
    client.map(0, size, [fd])
    client.map(1 << 44, size // 2 & -(1 << 20), [fd])
    refused(errno.ENOSPC, client.map, 1 << 45, size, [fd])
    daemon.wait_for_log("mapped in total")
    adapter = daemon.query("adapters")["adapters"][0]
    assert adapter["ram_counted_bytes"] == size
    assert adapter["ram_limit_bytes"] == host_ram()
    client.unmap(0, size)
    assert daemon.query("adapters")["adapters"][0]["ram_counted_bytes"] == size // 2 & -(1 << 20)


def test_limit_of_the_operator(daemon):
    path = daemon.add_adapter("small", 7, memory="16M")
    with attach(path) as client:
        fd = v.memfd(32 << 20)
        client.map(0, 12 << 20, [fd])
        client.map(1 << 30, 12 << 20, [fd], offset=4 << 20)
        refused(errno.ENOSPC, client.map, 2 << 30, 4 << 20, [fd], offset=16 << 20)
        daemon.wait_for_log("20.0 MiB of guest RAM, the limit of this adapter is 16.0 MiB: see memory=")
        row = daemon.query("adapters")["adapters"][-1]
        assert (row["ram_bytes"], row["ram_counted_bytes"], row["ram_limit_bytes"]) == (24 << 20, 16 << 20, 16 << 20)


def test_objects_beyond_the_limit_of_the_operator(daemon):
    path = daemon.add_adapter("few", 7, **{"object-memory": "8K"})
    with attach(path) as client:
        guest = Guest(client)
        guest.start()
        assert daemon.counters("few")["memory_budget"] == 8192
        created = 0
        while not (error := guest.try_command(CREATE_PD, "II", 0, 0)):
            created += 1
        assert error == errno.ENOMEM and 50 < created < 500
        daemon.wait_for_log("of at most 8 KiB")
        assert 8192 - 64 < daemon.counters("few")["memory"] <= 8192
        guest.close()


def test_sealed_against_writing(client):
    fd = os.memfd_create("ram", os.MFD_ALLOW_SEALING)
    os.ftruncate(fd, 1 << 20)
    fcntl.fcntl(fd, 1033, 8)  # F_ADD_SEALS, F_SEAL_WRITE
    refused(errno.EPERM, client.map, 0, 1 << 20, [fd])
    client.map(0, 1 << 20, [fd], flags=1)


@pytest.mark.usefixtures("nothing_stays")
def test_two_descriptors_for_one_region(client):
    refused(errno.EINVAL, client.map, 0, 4096, [v.memfd(4096), v.memfd(4096)])


@pytest.mark.parametrize("command, body, flags", [
    (v.GET_INFO, struct.pack("<IIII", 16, 0, 0, 0), 0),
    (v.REGION_WRITE, struct.pack("<QII", 0x1C, 1, 4) + bytes(4), v.NO_REPLY)], ids=["library", "posted"])
def test_descriptors_where_none_belong(daemon, client, command, body, flags):
    client.send_raw(client.message(command, body, flags=flags), [v.memfd(4096)] * 8)
    assert client.ends()
    daemon.wait_for_log("is disconnected: unexpected descriptors in a message")


@pytest.mark.parametrize("command", [v.DMA_MAP, v.SET_IRQS, v.GET_INFO, v.REGION_READ])
def test_too_many_descriptors(daemon, command):
    with attach(daemon.socket()) as client:
        files = daemon.open_files()
        client.send_raw(client.message(command, struct.pack("<IIIIII", 24, 0, 0, 1, 4, 0) + bytes(16)), [v.memfd(1)] * 100)
        assert client.ends()
    wait_until(lambda: daemon.open_files() < files, "its descriptors closed")


def test_descriptors_between_header_and_body(daemon, client):
    body = struct.pack("<IIQQQ", 32, 3, 0, 0, 4096)
    message, files = client.message(v.DMA_MAP, body), daemon.open_files()
    client.send_raw(message[:16], [v.memfd(4096)])
    client.send_raw(message[16:], [v.memfd(4096)] * 15)
    refused(errno.EINVAL, client.reply)
    client.send_raw(message[:16], [v.memfd(4096)])
    client.send_raw(message[16:], [v.memfd(4096)] * 16)
    assert client.ends()
    wait_until(lambda: daemon.open_files() < files, "its descriptors closed")


def test_descriptor_of_the_next_message_is_not_taken(daemon, client):
    """QEMU announces video memory, without a descriptor, right before RAM, with one."""
    first = client.message(v.DMA_MAP, struct.pack("<IIQQQ", 32, 3, 0, 0xFD000000, 16 << 20), flags=v.NO_REPLY)
    for _ in range(50):
        client.send_raw(first)
        client.map(0, 1 << 20, [v.memfd(1 << 20)])
        assert " 1.0 MiB " in daemon.must("adapters")
        client.unmap(0, 0, flags=2)


def test_ram_truncated_before_the_device_reads_it(daemon, client):
    fd = v.memfd(16 << 20)
    client.map(0, 16 << 20, [fd])
    client.write_config(4, 6, 2)
    os.ftruncate(fd, 0)
    client.write_reg(0x04, 0x100000)
    try:
        client.write_reg(0x08, 0)
        client.read_reg(0)
    except Closed:
        pass
    assert client.ends()
    daemon.wait_for_log("its RAM was truncated")
    with attach(daemon.socket()) as other:
        assert other.read_reg(0) == 20


def test_ram_in_as_many_pieces_as_possible(start_daemon):
    """33 VMs have all the regions that they can, and the last of them has a truncated RAM file."""
    daemon = start_daemon(adapters=33)
    fd = v.memfd(PIECES * PAGE)
    with contextlib.ExitStack() as stack:
        for number in range(1, 34):
            last = stack.enter_context(attach(daemon.socket(number)))
            for piece in range(PIECES):
                last.map(piece * PAGE, PAGE, [fd], offset=piece * PAGE)
            refused(errno.ENOSPC, last.map, PIECES * PAGE, PAGE, [fd])
        last.write_config(4, 6, 2)
        os.ftruncate(fd, 0)
        last.write_reg(0x04, 0)
        with contextlib.suppress(Closed):
            last.write_reg(0x08, 0)
        assert last.ends()
        daemon.wait_for_log("its RAM was truncated")
        with attach(daemon.socket(33)) as other:
            assert other.read_reg(0) == 20


def test_ram_truncated_and_never_touched(client):
    fd = v.memfd(16 << 20)
    client.map(0, 16 << 20, [fd])
    os.ftruncate(fd, 0)
    client.unmap(0, 16 << 20)
    assert client.read_reg(0) == 20


# ----------------------------------------------------------------- interrupts


@pytest.mark.parametrize("index, start, count", [
    (2, 0, 67), (2, 66, 1), (2, 1, 0xFFFFFFFF), (2, 0xFFFFFFFF, 1), (2, 0xFFFFFFFF, 0xFFFFFFFF), (0, 0, 2), (1, 0, 1),
    (5, 0, 1), (0xFFFFFFFF, 0, 1), (3, 0, 2), (4, 1, 1)])
@pytest.mark.parametrize("with_fds", [False, True])
def test_interrupt_out_of_range(client, index, start, count, with_fds):
    fds = [os.eventfd(0)] * min(count, 4) if with_fds else []
    refused(errno.EINVAL, client.set_irqs, index, start, count, fds)
    assert client.read_reg(0) == 20


@pytest.mark.usefixtures("nothing_stays")
@pytest.mark.parametrize("index, start", [(v.MSIX, 1), (v.MSIX, 10), (v.INTX, 1)])
@pytest.mark.parametrize("data", [v.NONE, v.EVENTFD])
def test_removal_of_all_interrupts_from_one_on(client, index, start, data):
    refused(errno.EINVAL, client.set_irqs, index, start, 0, flags=v.TRIGGER | data)
    assert client.read_reg(0) == 20


@pytest.mark.usefixtures("nothing_stays")
@pytest.mark.parametrize("make", [pipe_end, lambda: v.memfd(4096), lambda: os.open("/dev/null", os.O_RDWR)],
                         ids=["pipe", "memory", "null"])
def test_interrupt_descriptor_that_is_no_eventfd(client, make):
    fd = make()
    refused(errno.EINVAL, client.set_irqs, v.MSIX, 0, 1, [fd])
    os.close(fd)


@pytest.mark.usefixtures("nothing_stays")
def test_wrong_number_of_eventfds(client):
    fd = os.eventfd(0)
    refused(errno.EINVAL, client.set_irqs, v.MSIX, 0, 3, [fd, fd])
    refused(errno.EINVAL, client.set_irqs, v.MSIX, 0, 1, [fd, fd])
    refused(errno.EINVAL, client.set_irqs, v.MSIX, 0, 0, [fd])


@pytest.mark.parametrize("flags", [0, 0xFFFFFFFF, v.EVENTFD, v.TRIGGER, v.TRIGGER | v.BOOL, v.TRIGGER | v.NONE,
                                   v.TRIGGER | v.NONE | v.EVENTFD])
def test_interrupt_flags(client, flags):
    refused(errno.EINVAL, client.set_irqs, v.MSIX, 0, 1, flags=flags, data=b"\1")


def test_eventfds_set_many_times_are_closed(daemon, client):
    fds = [os.eventfd(0) for _ in range(3)]
    client.set_irqs(v.MSIX, 0, 3, fds)
    files = daemon.open_files()
    for _ in range(200):
        client.set_irqs(v.MSIX, 0, 3, fds)
    assert daemon.open_files() == files


# -------------------------------------------------------------------- regions


@pytest.mark.parametrize("region, size", [(0, 16384), (1, 4096), (2, 4 << 20), (7, 256)])
def test_accesses_at_the_edges(client, region, size):
    for width in (1, 2, 4, 8):
        for offset in (0, 1, 3, size - width):
            assert len(client.read(region, offset, width)) == width
            client.write(region, offset, bytes(width))
        for offset in (size - width + 1, size, 1 << 32, (1 << 64) - width, (1 << 64) - 1):
            refused(errno.EINVAL, client.read, region, offset, width)
            refused(errno.EINVAL, client.write, region, offset, bytes(width))
    assert client.read_reg(0) == 20


@pytest.mark.parametrize("region", [3, 4, 5, 6, 8, 9, 10, 255, 0xFFFFFFFF])
def test_region_that_does_not_exist(client, region):
    refused(errno.EINVAL, client.read, region, 0, 4)
    refused(errno.EINVAL, client.write, region, 0, bytes(4))
    client.write(region, 0, bytes(4), posted=True)
    assert client.read_reg(0) == 20


def test_read_of_a_megabyte(client):
    refused(errno.EINVAL, client.read, v.BAR_UAR, 0, 1 << 20)
    refused(errno.EINVAL, client.read, v.BAR_UAR, 0, 0xFFFFFFFF)
    assert client.read(v.BAR_UAR, 0, 4000) == b"\xff" * 4000


def test_access_of_no_bytes(client):
    client.call(v.REGION_READ, struct.pack("<QII", 0, 1, 0))
    client.call(v.REGION_WRITE, struct.pack("<QII", 0, 1, 0))
    client.write(v.BAR_REGS, 0, b"", posted=True)
    assert client.read_reg(0) == 20


@pytest.mark.parametrize("count", [0, 3, 5, 8, 0x10000])
def test_write_whose_count_lies(client, count):
    refused(errno.EINVAL, client.call, v.REGION_WRITE, struct.pack("<QII", 0, 1, count) + bytes(4))
    client.send_raw(client.message(v.REGION_WRITE, struct.pack("<QII", 0, 1, count) + bytes(4), flags=v.NO_REPLY))
    assert client.read_reg(0) == 20


def test_config_writes_of_every_size_and_offset(client):
    identity = client.read_config(0)
    for offset in range(256):
        for width in (1, 2, 3, 4, 8, 256 - offset):
            if offset + width <= 256:
                client.write(v.CONFIG, offset, b"\xff" * width)
    assert client.read_config(0) == identity
    assert client.read_reg(0) == 20


# ----------------------------------------------------------- too much, too often


def test_client_that_stops_reading(daemon, client, always_with_a_neighbour):
    message = client.message(v.REGION_READ, struct.pack("<QII", 0, 1, 4))
    client.sock.setblocking(False)
    sent, last, deadline = 0, time.monotonic(), time.monotonic() + PATIENCE
    while time.monotonic() < min(last + 0.5, deadline):
        try:
            sent += client.sock.send(message * 100)
            last = time.monotonic()
        except BlockingIOError:
            time.sleep(0.05)
    always_with_a_neighbour.rest()
    wait_quiet(lambda: cpu(daemon), 0.5, "CPU ticks: it waits for the client without polling")
    client.sock.settimeout(PATIENCE)
    for _ in range(sent // len(message)):
        assert len(client.receive(36)) == 36


def test_flood_of_doorbells_leaves_room(client, always_with_a_neighbour):
    burst = client.message(v.REGION_WRITE, struct.pack("<QII", 0, v.BAR_UAR, 4) + bytes(4), flags=v.NO_REPLY) * 100
    for _ in range(50):
        client.send_raw(burst)
        always_with_a_neighbour.check()


def test_a_thousand_connects(daemon):
    def visit():
        ram, event = v.memfd(1 << 20), os.eventfd(0)
        with attach(daemon.socket()) as visitor:
            visitor.map(0, 1 << 20, [ram])
            visitor.set_irqs(v.MSIX, 0, 1, [event])
        os.close(ram)
        os.close(event)

    for _ in range(20):
        visit()
    wait_until(lambda: daemon.table("adapters")[0]["QEMU"] == "none", "client gone")
    wait_quiet(daemon.open_files, 0.5, "descriptors")
    files, memory, begin = daemon.open_files(), daemon.resident(), time.monotonic()
    for _ in range(1000):
        visit()
    wait_until(lambda: daemon.open_files() <= files, "all descriptors closed")
    if "libasan" not in daemon.maps():  # it keeps freed memory for a while, and finds leaks by itself
        assert daemon.resident() - memory < 1024, "KiB"
    # 20 lines in 5 s for each adapter.
    assert daemon.log().count("\n") < 300 + 5 * (time.monotonic() - begin), "the log is flooded"


def test_connects_without_a_message(daemon):
    for _ in range(300):
        Client(daemon.socket()).close()
    attach(daemon.socket()).close()


def test_file_descriptors_run_out(start_daemon):
    """accept() fails: the daemon logs it, does not spin, and accepts again when it can."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    daemon = start_daemon(adapters=8)
    resource.prlimit(daemon.child.pid, resource.RLIMIT_NOFILE, (daemon.open_files() + 1, hard))
    clients = [Client(daemon.socket(number)) for number in range(1, 9)]
    daemon.wait_for_log("cannot accept a QEMU: Too many open files; trying again in 1 s")
    resource.prlimit(daemon.child.pid, resource.RLIMIT_NOFILE, (hard, hard))
    for client in clients[1:]:
        client.negotiate()
        client.close()
    clients[0].close()
