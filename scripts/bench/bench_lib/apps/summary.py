# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
"""From a row's values to what apps.json says of it, and the tables for people."""

import statistics

from bench_lib.table import plain, verdict
from bench_lib.vm.rows import PEER_NAMES
from bench_lib.vm.table import ratio

from .app import PVRDMA, RXE, TCP

LAYOUT = "{:28} {:>11} {:>11} {:>9}  {:9} {:7} {:>11}"
HEAD = LAYOUT.format("row", "pvrdma", "Soft-RoCE", "ratio", "target", "", "TCP")


def _device(values):
    return {"value": statistics.median(values), "min": min(values), "max": max(values), "runs": len(values)}


def entry(row, values):
    """values: {device: [value, ...]}, of all but perhaps TCP."""
    ours, rxe = _device(values[PVRDMA]), _device(values[RXE])
    return {"name": row.name, "value": ours["value"], "unit": row.unit, "peer": PEER_NAMES[RXE],
            "peer_value": rxe["value"], "ratio": ours["value"] / rxe["value"],
            "min": ours["min"], "max": ours["max"], "runs": ours["runs"],
            **{f"peer_{key}": rxe[key] for key in ("min", "max", "runs")},
            "tcp": _device(values[TCP]) if values.get(TCP) else None}


def _tcp(item):
    return plain(item["tcp"]["value"], item["unit"]) if item["tcp"] else ""


def line(item):
    return LAYOUT.format(item["name"], plain(item["value"], item["unit"]), plain(item["peer_value"], item["unit"]),
                         ratio(item["ratio"]), *verdict(item), _tcp(item)).rstrip()


def markdown(entries, rows):
    """The table of docs/applications.md."""
    what = {row.name: row.what for row in rows}
    lines = ["| | our device | Soft-RoCE | TCP | ratio | target | |", "|---|---|---|---|---|---|---|"]
    for item in entries:
        target, met = verdict(item)
        lines.append(f"| {what[item['name']]} | {plain(item['value'], item['unit'])} | "
                     f"{plain(item['peer_value'], item['unit'])} | {_tcp(item) or '–'} | {ratio(item['ratio'])} | "
                     f"{target or '–'} | {'**missed**' if met == 'MISSED' else met} |")
    return "\n".join(lines) + "\n"
