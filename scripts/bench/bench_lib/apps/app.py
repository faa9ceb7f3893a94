# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
"""An application of the benchmark: a bash function for the VMs, and the rows that its output gives."""

import dataclasses
import math
import typing

from bench_lib.vm.rows import PVRDMA, RXE, TCP  # noqa: F401 (the applications' devices)


@dataclasses.dataclass(frozen=True)
class Row:
    """unit: of the value, B/s, 1/s or s. what: for people."""

    name: str
    unit: str
    what: str


@dataclasses.dataclass(frozen=True)
class App:
    """name: of the function in scripts/guest/bench-apps.sh, called with the device's name on all nodes. devices: PVRDMA,
    RXE and perhaps TCP. read: from what node 2 prints to {row's name: value}; raises output.Unreadable. seconds: the
    deadline of one run. files: a function that gives what $SHARE must have besides. rounds: at most, where one is long. nodes:
    VMs; applications with the same number share a boot."""

    name: str
    devices: tuple
    rows: tuple
    read: typing.Callable
    seconds: int = 60
    files: typing.Callable = list
    rounds: float = math.inf
    nodes: int = 2
