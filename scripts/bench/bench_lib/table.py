# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
"""Rows for people."""

from bench_lib.targets import target_of

# unit: (factor, what it is then called), from the smallest up.
SCALES = {
    "B/s": [(1e-6, "MB/s"), (1e-9, "GB/s")],
    "1/s": [(1, "/s"), (1e-3, "k/s"), (1e-6, "M/s")],
    "s": [(1e9, "ns"), (1e6, "us"), (1e3, "ms"), (1, "s")],
}
LAYOUT = "{:28} {:>12} {:>26} {:>8}  {:>23}  {:10} {}"
HEAD = LAYOUT.format("row", "median", "against", "ratio", "min .. max", "target", "")


def scaled(value, unit):
    """The value with the unit in which it has up to three places before the point."""
    if unit not in SCALES:
        return f"{value:.4g}" if value % 1 else f"{value:.0f}", unit
    factor, name = SCALES[unit][0]
    for bigger, bigger_name in SCALES[unit][1:]:
        if value * bigger >= 1:
            factor, name = bigger, bigger_name
    return f"{value * factor:.1f}", name


def plain(value, unit):
    return " ".join(scaled(value, unit))


def verdict(row):
    target = target_of(row["name"])
    if not target:
        return "", ""
    return target.text, "met" if target.met(row) else "MISSED"


def line(row):
    peer, ratio = "", ""
    if row["peer"]:
        peer = f"{row['peer']} {plain(row['peer_value'], row['unit'])}"
        ratio = "" if row["ratio"] is None else f"{row['ratio']:.2f} x"
    spread = f"{plain(row['min'], row['unit'])} .. {plain(row['max'], row['unit'])}" if row["runs"] > 1 else ""
    return LAYOUT.format(row["name"], plain(row["value"], row["unit"]), peer, ratio, spread, *verdict(row)).rstrip()
