# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
"""Parsers of the measuring programs' output, in bytes and seconds."""

import dataclasses
import re

MIB = 1 << 20


class Unreadable(Exception):
    """The program's output has no result."""


@dataclasses.dataclass(frozen=True)
class Figures:
    """iterations: None if the program ran by time."""

    seconds: float | None = None        # latency, or an iteration's
    rate: float | None = None           # messages per second
    bandwidth: float | None = None      # bytes per second
    iterations: int | None = None


def _columns(text):
    """The row below perftest's heading: {"#bytes": "8", "BW average[MB/sec]": "0.83", ...}."""
    found = re.search(r"^ *(#bytes.*)\n *(\d.*)$", text, re.MULTILINE)
    if not found:
        raise Unreadable("perftest printed no row of results")
    # Titles have single spaces in them, but for those where a comma or another title follows.
    titles = re.findall(r"#\w+|BW \w+\[[^]]*\]|MsgRate\[[^]]*\]|[\w.%]+(?: percentile)?\[[^]]*\]", found[1])
    values = found[2].split()
    if len(titles) != len(values):
        raise Unreadable(f"perftest printed {len(values)} values below {len(titles)} titles")
    return dict(zip(titles, values))


def perftest_bandwidth(text):
    row = _columns(text)
    rate = float(row["MsgRate[Mpps]"]) * 1e6
    bandwidth = float(row["BW average[MB/sec]"]) * MIB
    # Each of the two has the digits that the other lacks: 0.08 MB/s of small messages, 0.000024 M/s of large ones.
    size = int(row["#bytes"])
    if rate >= 1000 or not bandwidth:
        bandwidth = rate * size
    else:
        rate = bandwidth / size
    if rate <= 0:
        raise Unreadable("perftest says that nothing moved")
    return Figures(rate=rate, bandwidth=bandwidth, iterations=int(row["#iterations"]))


def perftest_latency(text):
    row = _columns(text)
    return Figures(seconds=float(row["t_typical[usec]"]) * 1e-6, iterations=int(row["#iterations"]))


def pingpong(text):
    found = re.search(r"^(\d+) iters in [\d.]+ seconds = ([\d.]+) usec/iter$", text, re.MULTILINE)
    if not found:
        raise Unreadable("ibv_rc_pingpong printed no time per iteration")
    return Figures(seconds=float(found[2]) * 1e-6, iterations=int(found[1]))


def qperf(text):
    """Of qperf -uu."""
    found = re.search(r"^ *(bw|latency) *= *([\d.]+) (bytes/sec|ns)$", text, re.MULTILINE)
    if not found:
        raise Unreadable("qperf printed no result")
    value = float(found[2])
    return Figures(bandwidth=value) if found[1] == "bw" else Figures(seconds=value * 1e-9)


def parse(program, text):
    if program == "qperf":
        return qperf(text)
    if program == "ibv_rc_pingpong":
        return pingpong(text)
    return perftest_latency(text) if program.endswith("_lat") else perftest_bandwidth(text)
