# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
"""Counts of the system calls of other processes, by perf_event_open(2)."""

import ctypes
import os
import pathlib
import struct
import subprocess

TRACING = pathlib.Path("/sys/kernel/tracing")
EVENT = "events/raw_syscalls/sys_enter/id"
PERF_EVENT_OPEN = 298       # its number on x86-64
TYPE_TRACEPOINT = 2
ATTR_BYTES = 112            # PERF_ATTR_SIZE_VER5
CLOEXEC = 8


class CannotCount(Exception):
    """A reason, for people."""


def _event_id():
    if not (TRACING / EVENT).exists():
        subprocess.run(["mount", "-t", "tracefs", "tracefs", TRACING], stderr=subprocess.DEVNULL, check=False)
    try:
        return int((TRACING / EVENT).read_text())
    except OSError as error:
        raise CannotCount(f"this kernel has no tracepoint raw_syscalls:sys_enter, or {TRACING} cannot be read "
                          f"({error.strerror}): root can, on a kernel with CONFIG_FTRACE_SYSCALLS") from error


def _open(event, thread):
    libc = ctypes.CDLL(None, use_errno=True)
    attr = struct.pack("IIQ", TYPE_TRACEPOINT, ATTR_BYTES, event).ljust(ATTR_BYTES, b"\0")
    found = libc.syscall(PERF_EVENT_OPEN, ctypes.create_string_buffer(attr, ATTR_BYTES), thread, -1, -1, CLOEXEC)
    if found < 0:
        raise CannotCount(f"perf_event_open of thread {thread}: {os.strerror(ctypes.get_errno())}")
    return found


class Counter:
    """System calls of all threads that these processes have now. groups: {process: its group}."""

    def __init__(self, groups):
        event = _event_id()
        self._fds = {group: [] for group in groups.values()}
        for process, group in groups.items():
            for thread in pathlib.Path(f"/proc/{process}/task").iterdir():
                self._fds[group].append(_open(event, int(thread.name)))

    def read(self):
        """{group: system calls}."""
        return {group: sum(struct.unpack("Q", os.read(fd, 8))[0] for fd in fds) for group, fds in self._fds.items()}

    def close(self):
        for fds in self._fds.values():
            for fd in fds:
                os.close(fd)
        self._fds = {}
