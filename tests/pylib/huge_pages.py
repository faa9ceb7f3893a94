# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
"""Huge pages of this host for a test: it sets their number, and restores it."""

import contextlib
import fcntl
import os
import re
from pathlib import Path

import pytest

POOL = Path("/proc/sys/vm/nr_hugepages")
SIZE = 2 << 20
MFD_HUGETLB, MFD_HUGE_2MB = 4, 21 << 26


def meminfo(name):
    return int(re.search(rf"^{name}:\s*(\d+)", Path("/proc/meminfo").read_text(), re.M)[1])


def free_pages():
    """Pages that no file holds."""
    return meminfo("HugePages_Free")


@contextlib.contextmanager
def huge_pages(count):
    """Exactly `count` pages can be had. One test of the host at a time."""
    with open(POOL, encoding="ascii") as pool:
        fcntl.flock(pool, fcntl.LOCK_EX)
        before = int(pool.read())
        if meminfo("Hugepagesize") << 10 != SIZE:
            pytest.skip(f"the huge pages of this host have {meminfo('Hugepagesize')} KiB, needed: 2048 KiB")
        used = meminfo("HugePages_Total") - free_pages() + meminfo("HugePages_Rsvd")
        try:
            POOL.write_text(f"{used + count}\n", encoding="ascii")
        except OSError as error:
            pytest.skip(f"cannot set {POOL}: {error}")
        try:
            if free_pages() - meminfo("HugePages_Rsvd") < count:
                pytest.skip(f"the host has {free_pages()} free huge pages, needed: {count}")
            yield
        finally:
            POOL.write_text(f"{before}\n", encoding="ascii")


def huge_memfd(size):
    fd = os.memfd_create("huge", MFD_HUGETLB | MFD_HUGE_2MB)
    os.ftruncate(fd, size)
    return fd
