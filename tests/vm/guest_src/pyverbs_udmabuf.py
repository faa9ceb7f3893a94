#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
"""Usage: pyverbs_udmabuf.py [OPTION...]

Runs rdma-core's test-suite in the folder tests/ with the options of its run_tests.py. Its tests of dma-buf allocate memory of
a GPU, for which Debian 12's pyverbs has no code. Here the dma-bufs are those of /dev/udmabuf. Without that device the suite
runs as it is.
"""

import fcntl
import os
import runpy
import struct
import sys

import pyverbs.dmabuf
import pyverbs.mr

UDMABUF = "/dev/udmabuf"
UDMABUF_CREATE = 0x40187542      # _IOW('u', 0x42, struct udmabuf_create)
F_ADD_SEALS, F_SEAL_SHRINK = 1033, 2
PAGE = os.sysconf("SC_PAGESIZE")


class DmaBuf(int):
    """The descriptor of a dma-buf. DmaBufMR takes any integer, but then uses two members and a method of its own DmaBuf."""

    map_offset = 0      # of the memory in drm_fd, which DmaBufMR maps

    def __new__(cls, size, gpu=0, gtt=0):
        memory = os.memfd_create("dmabuf", os.MFD_ALLOW_SEALING)
        size = -(-size // PAGE) * PAGE
        os.ftruncate(memory, size)
        fcntl.fcntl(memory, F_ADD_SEALS, F_SEAL_SHRINK)
        # ioctl() returns its result for an argument that can change only, else the argument.
        create = bytearray(struct.pack("IIQQ", memory, 0, 0, size))
        with open(UDMABUF, "r+b", buffering=0) as device:
            self = super().__new__(cls, fcntl.ioctl(device, UDMABUF_CREATE, create))
        self.drm_fd = memory
        return self

    def add_ref(self, region):
        """The region holds this object."""

    def __del__(self):
        os.close(self.drm_fd)
        os.close(self)


class DmaBufMR(pyverbs.mr.DmaBufMR):
    """A region of a dma-buf of its own."""

    def __init__(self, pd, length, access=0, dmabuf=None, offset=0, gpu=0, gtt=0):
        super().__init__(pd, length, access, DmaBuf(length + offset) if dmabuf is None else dmabuf, offset)


if os.path.exists(UDMABUF):
    pyverbs.dmabuf.DmaBuf = DmaBuf
    pyverbs.mr.DmaBufMR = DmaBufMR
sys.path.insert(0, "tests")
sys.argv[0] = "tests/run_tests.py"
runpy.run_path(sys.argv[0], run_name="__main__")
