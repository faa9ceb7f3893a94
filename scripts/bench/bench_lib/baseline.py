# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
"""The committed counts of instructions, and what has changed since."""

import json

TOLERANCE = 0.10
SHOWN = 5  # functions that have risen most
LEAST = 1  # instructions per operation of a function: with fewer it explains no rise, and is left out


class Baseline:
    """tests/bench/instructions.json: key -> case -> total, device, functions."""

    def __init__(self, path):
        self.path = path
        self.keys = json.loads(path.read_text()) if path.exists() else {}

    def renew(self, key, counts):
        self.keys[key] = {case: as_json(count) for case, count in sorted(counts.items())}
        self.path.write_text(json.dumps(self.keys, indent=1, sort_keys=True) + "\n")


def as_json(counts):
    return {"total": round(counts.total, 1), "device": round(counts.device, 1),
            "functions": {name: round(cost, 1) for name, cost in sorted(counts.functions.items()) if cost >= LEAST}}


class Finding:
    """The result of a case: a word, and the reasons."""

    def __init__(self, case, passed, text, reasons=()):
        self.case, self.passed, self.text, self.reasons = case, passed, text, list(reasons)


def risen(before, after):
    """The functions that cost most more than they did, with both counts."""
    names = sorted(set(before) | set(after), key=lambda name: before.get(name, 0) - after.get(name, 0))
    return [f"{name}: {before.get(name, 0):.1f} -> {after.get(name, 0):.1f}" for name in names[:SHOWN]
            if after.get(name, 0) - before.get(name, 0) >= 0.5]


def compare_case(case, before, after):
    if before is None:
        return Finding(case, False, f"{after.total:.1f} instructions, no baseline", ["not in the baseline: run make bench-baseline"])
    if after is None:
        return Finding(case, False, "not counted", ["no longer counted: run make bench-baseline"])
    after = as_json(after)
    text = f"{after['total']:.1f} instructions, baseline {before['total']:.1f}"
    for what in ("total", "device"):
        change = f"{what}: {before[what]:.1f} -> {after[what]:.1f}"
        if after[what] > before[what] * (1 + TOLERANCE):
            return Finding(case, False, text, [f"{change}, more than {TOLERANCE:.0%} up; these have risen:",
                                               *risen(before["functions"], after["functions"]),
                                               "if that is meant to be so: make bench-baseline"])
    if after["device"] < before["device"] * (1 - TOLERANCE):
        return Finding(case, True, text, [f"{change}, more than {TOLERANCE:.0%} down: "
                                          "make bench-baseline keeps what was gained"])
    return Finding(case, True, text)


def compare(before, after):
    """A Finding per case. BEFORE: of Baseline.keys; AFTER: case -> Counts."""
    return [compare_case(case, before.get(case), after.get(case)) for case in sorted(set(before) | set(after))]
