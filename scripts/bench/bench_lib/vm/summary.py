# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
"""From a row's runs to what vm.json says of it."""

import statistics

from .rows import PEER_NAMES, PVRDMA, RXE, TCP

MESSAGES = 1e6      # CPU time of small messages is per so many
CPU_DIGITS = 4


def _cpu(used, starts, work):
    """Seconds per unit of work, of all runs together, as the single ones are short for a guest's clock tick. The
    programs' starts do not count: a median of them is taken from each run."""
    start = statistics.median(starts) if starts else 0
    return round(max(0, sum(used) - len(used) * start) / work, CPU_DIGITS)


def _device(row, runs, starts):
    """The results of a device's runs; starts: runs with almost no traffic."""
    values = [run.value for run in runs]
    work = sum(run.work for run in runs) / (1 if row.kind.by_bytes else MESSAGES)
    return {"value": statistics.median(values), "min": min(values), "max": max(values), "runs": len(values),
            "host_cpu": _cpu([run.host for run in runs], [start.host for start in starts], work),
            "guest_cpu": _cpu([run.guest for run in runs], [start.guest for start in starts], work)}


def row_entry(row, runs, starts):
    """runs, starts: {device: [Run, ...]}. The peer is Soft-RoCE; what TCP does is in "tcp", null where it has no such thing."""
    ours, rxe = (_device(row, runs[device], starts[device]) for device in (PVRDMA, RXE))
    return {
        "name": row.name, "value": ours["value"], "unit": row.kind.unit,
        "peer": PEER_NAMES[RXE], "peer_value": rxe["value"], "ratio": ours["value"] / rxe["value"],
        "min": ours["min"], "max": ours["max"], "runs": ours["runs"],
        "cpu_unit": "s/GB" if row.kind.by_bytes else "s/Mmsg",
        "host_cpu": ours["host_cpu"], "guest_cpu": ours["guest_cpu"],
        **{f"peer_{key}": rxe[key] for key in ("min", "max", "runs", "host_cpu", "guest_cpu")},
        "tcp": _device(row, runs[TCP], []) if TCP in runs else None,
    }
