# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
"""One run of a program between the two VMs: its figures, and the CPU time that it took."""

import dataclasses
import re

from . import output
from .rows import TCP

TICKS = 100         # of /proc/stat, per second
QPERF_SECONDS = 1


@dataclasses.dataclass(frozen=True)
class Run:
    """value: in the row's unit. host, guest: CPU seconds in all, of QEMU and pvrdmad, of both guests as they see it.
    work: GB moved or messages, of which these are spent."""

    value: float
    host: float
    guest: float
    work: float


@dataclasses.dataclass
class _Part:
    status: int | None
    text: str
    host: list      # before and after: {process: nanoseconds}
    guest: list


def _parts(text):
    """The output of a node, by device."""
    parts = {}
    for chunk in re.split(r"^(?=@run )", text, flags=re.MULTILINE):
        name = re.match(r"@run (\w+)\n", chunk)
        if not name:
            continue
        end = re.search(r"^@end (\d+)$", chunk, re.MULTILINE)
        host = [dict(word.split("=") for word in line.split())
                for line in re.findall(r"^@host (.*)$", chunk, re.MULTILINE)]
        guest = [int(ticks) for ticks in re.findall(r"^@guest (\d+)$", chunk, re.MULTILINE)]
        parts[name[1]] = _Part(int(end[1]) if end else None, chunk, host, guest)
    return parts


def value_of(row, device, figures):
    """The figure that the row is about."""
    if row.kind.unit == "s":
        return figures.seconds * (row.kind.tcp_factor if device == TCP else 1)
    if row.kind.unit == "B/s":
        return figures.bandwidth
    return figures.rate or figures.bandwidth / row.size


def work_of(row, figures):
    """GB or messages of a whole run of the program."""
    if row.kind.by_bytes:
        moved = figures.bandwidth * QPERF_SECONDS if figures.iterations is None else figures.iterations * row.size
        return moved / 1e9
    if figures.iterations is not None:
        return figures.iterations * row.kind.messages
    return QPERF_SECONDS / figures.seconds if figures.seconds else QPERF_SECONDS * figures.bandwidth / row.size


def figures(row, device, text):
    return output.parse("qperf" if device == TCP else row.kind.program, text)


def pilot(row, device, text):
    """The Figures of a device in what a client printed."""
    part = _parts(text).get(device)
    if part is None or part.status != 0:
        raise output.Unreadable(f"the first {row.name} on {device} failed")
    return figures(row, device, part.text)


def read(row, texts, devices=None):
    """{device: Run} of what server and client printed in a step. Raises output.Unreadable, naming the device."""
    server, client = (_parts(text) for text in texts)
    runs = {}
    for device in devices or row.devices:
        both = [server.get(device), client.get(device)]
        if None in both or any(part.status != 0 for part in both):
            raise output.Unreadable(f"{row.name} on {device} failed")
        try:
            found = figures(row, device, both[1].text)
        except output.Unreadable as why:
            raise output.Unreadable(f"{row.name} on {device}: {why}") from why
        before, after = both[1].host
        runs[device] = Run(
            value=value_of(row, device, found),
            host=sum(int(after[name]) - int(before[name]) for name in after) / 1e9,
            guest=sum(part.guest[1] - part.guest[0] for part in both) / TICKS,
            work=work_of(row, found))
    return runs
