# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
"""Connections per second through rdma_cm."""

import re

from bench_lib.vm.output import Unreadable

from . import examples
from .app import PVRDMA, RXE, TCP, App, Row

RPING = Row("apps.rping", "1/s", "`rping -C 1` one after another: start, connect, one ping, disconnect, end")
CMTIME = Row("apps.cmtime", "1/s", "`cmtime -c 500`: connections through all of its steps")
CMTIME_CONNECT = Row("apps.cmtime_connect", "1/s", "its step `connect`, all of them at once")


def read_rping(text):
    found = re.search(r"^@connections (\d+) (\d+)$", text, re.MULTILINE)
    if not found:
        raise Unreadable("no time for the connections")
    return {RPING.name: int(found[1]) / (int(found[2]) * 1e-9)}


def _steps(text):
    """{step: seconds}: what it took for all connections; steps follow each other. That of Debian 12 counts in ms; the later
    one, which can do TCP, in us, behind an average, and its first line is the sum of those to come."""
    found = re.findall(r"^([a-z ]+?) *: +([\d.]+) ", text, re.MULTILINE)
    if found:
        return {step: float(total) * 1e-3 for step, total in found}
    found = re.findall(r"^([a-z ]+?)  +\d+ +(\d+) +\d+ +\d+ +\d+ +\d+$", text, re.MULTILINE)
    return {step.removeprefix("cm "): int(total) * 1e-6 for step, total in found if step != "full connect"}


def read_cmtime(text):
    seconds = _steps(text)
    count = re.search(r"^@connections (\d+)$", text, re.MULTILINE)
    if not seconds.get("connect") or not count:
        raise Unreadable("cmtime printed no times")
    return {CMTIME.name: int(count[1]) / sum(seconds.values()),
            CMTIME_CONNECT.name: int(count[1]) / seconds["connect"]}


APPS = (App("rping", (PVRDMA, RXE), (RPING,), read_rping),
        App("cmtime", (PVRDMA, RXE, TCP), (CMTIME, CMTIME_CONNECT), read_cmtime, 60, lambda: [examples.build("cmtime")]))
