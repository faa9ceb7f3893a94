# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
"""Open MPI: NetPIPE, and our pvr_mpi_speed over openib and UCX."""

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


# What pvr_mpi_speed measures, with the unit, and for people. Rates are sums of all pairs.
SPEEDS = {
    "latency": ("s", "8 bytes, one way"),
    "rate": ("1/s", "messages of 8 bytes, 64 at once"),
    "bandwidth": ("B/s", "messages of 1 MiB, 8 at once"),
    "both_ways": ("B/s", "the same both ways at once"),
    "allreduce": ("s", "`MPI_Allreduce` of 8 bytes"),
    "allreduce_large": ("s", "`MPI_Allreduce` of 1 MiB"),
    "alltoall": ("s", "`MPI_Alltoall` of 4 KiB for each rank"),
}


def _speed_app(name, devices, what, files, **others):
    """One rank in each VM; those of each two VMs are a pair."""
    rows = {test: Row(f"apps.mpi_{name}.{test}", unit, f"Open MPI over {what}: {text}") for test, (unit, text) in SPEEDS.items()}

    def read(text):
        found = dict(re.findall(r"^@(\w+) ([\d.e+-]+)$", text, re.MULTILINE))
        try:
            return {row.name: float(found[test]) for test, row in rows.items()}
        except KeyError as why:
            raise Unreadable(f"pvr_mpi_speed printed no {why}") from why

    return App(f"mpi_{name}", devices, tuple(rows.values()), read, 270, files, **others)


def speed_program():
    return [path_from("build/guest-tests") / "pvr_mpi_speed"]


def openib_and_program():
    return [*openib(), *speed_program()]


OPENIB = _speed_app("openib", (PVRDMA, RXE, TCP), "openib", openib_and_program)
UCX = _speed_app("ucx", (PVRDMA, RXE), "UCX", speed_program)
FOUR = (_speed_app("openib_4", (PVRDMA, RXE, TCP), "openib, four VMs", openib_and_program, nodes=4),
        _speed_app("ucx_4", (PVRDMA, RXE), "UCX, four VMs", speed_program, nodes=4))
APPS = (App("netpipe", (PVRDMA, RXE, TCP), (LATENCY, PEAK), read_netpipe, 260, openib, rounds=1), OPENIB, UCX, *FOUR)
