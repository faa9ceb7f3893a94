# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
"""Frequency of this machine's time stamp counter. It is the guests', too, where QEMU translates their code.

A kernel that boots finds it out by an emulated timer. If other processes have the CPU meanwhile, it may find a
fraction, and then its seconds are that much too short as long as it lives. So guests are told.
"""

import ctypes
import mmap
import platform
import time

_RDTSC = bytes.fromhex("0f31 48c1e220 4809d0 c3")  # rdtsc; shl $32, %rdx; or %rdx, %rax; ret
_TRIES = 50


class _Counter:
    """Reads it, by instructions of our own, as Python has no other way."""

    def __init__(self):
        self._code = mmap.mmap(-1, mmap.PAGESIZE, prot=mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC)
        self._code.write(_RDTSC)
        self._address = ctypes.c_char.from_buffer(self._code)
        self.read = ctypes.CFUNCTYPE(ctypes.c_uint64)(ctypes.addressof(self._address))

    def sample(self):
        """(nanoseconds, ticks) of one moment: of some tries that which was over first."""
        tries = []
        for _ in range(_TRIES):
            before, ticks = time.monotonic_ns(), self.read()
            tries.append((time.monotonic_ns() - before, before, ticks))
        return min(tries)[1:]


def khz(seconds=0.05):
    """Its frequency, or None where there is none or it may not be read."""
    if platform.machine() != "x86_64":
        return None
    try:
        counter = _Counter()
    except OSError:
        return None  # no memory that is written and executed, by some security policy
    began, first = counter.sample()
    time.sleep(seconds)
    ended, last = counter.sample()
    return round((last - first) * 1_000_000 / (ended - began))
