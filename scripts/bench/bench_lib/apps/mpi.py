# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
"""NetPIPE over Open MPI: the time of a small message, and the most bytes per second that any size has."""

import re

from bench_lib.scripts import path_from
from bench_lib.vm.output import Unreadable

from .app import PVRDMA, RXE, TCP, App, Row

LATENCY = Row("apps.netpipe_lat", "s", "NetPIPE over Open MPI, 8 bytes or less: one way")
PEAK = Row("apps.netpipe_peak", "B/s", "NetPIPE over Open MPI, 64 KiB to 1 MiB: the fastest size")
LINE = re.compile(r"^ *\d+: +(\d+) bytes +\d+ times --> +([\d.]+) Mbps in +([\d.]+) usec$", re.MULTILINE)
SMALL, LARGE = 8, 65536
MEGABIT = (1 << 20) / 8  # as NetPIPE counts


def read_netpipe(text):
    found = [(int(size), float(rate), float(usec)) for size, rate, usec in LINE.findall(text)]
    small = [usec for size, _, usec in found if size <= SMALL]
    large = [rate for size, rate, _ in found if size >= LARGE]
    if not small or not large:
        raise Unreadable("NetPIPE printed no times")
    return {LATENCY.name: min(small) * 1e-6, PEAK.name: max(large) * MEGABIT}


def openib():
    """openib with rdma_cm, for the guests."""
    return list((path_from("fetch/openmpi") / "openib").iterdir())


APPS = (App("netpipe", (PVRDMA, RXE, TCP), (LATENCY, PEAK), read_netpipe, 260, openib, rounds=1),)
