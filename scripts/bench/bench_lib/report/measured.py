# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
"""docs/performance/measured.json: the measured figures from which README.md and performance.md are written."""

import dataclasses
import datetime
import json

from . import inputs

NAME = "measured.json"
PARTS = ("native", "vm", "guest", "hosts", "wire", "directory")


@dataclasses.dataclass
class Part:
    """The rows of one `make bench` target. date: "2026-11-21", UTC; empty if nothing was measured."""

    date: str = ""
    rows: dict = dataclasses.field(default_factory=dict)    # name -> row


@dataclasses.dataclass
class Measured:
    """machine: {property: text}; parts: name of PARTS -> Part."""

    machine: dict
    parts: dict

    def rows(self, part):
        return list(self.parts[part].rows.values())

    def names(self):
        return [name for part in PARTS for name in self.parts[part].rows]

    def row(self, name):
        """KeyError: not measured."""
        return next(self.parts[part].rows[name] for part in PARTS if name in self.parts[part].rows)


def load(folder):
    """The rows of FOLDER/measured.json; no rows without the file."""
    path = folder / NAME
    found = json.loads(path.read_text()) if path.exists() else {}
    parts = {}
    for name in PARTS:
        part = found.get(name, {"date": "", "rows": []})
        parts[name] = Part(part["date"], {row["name"]: row for row in part["rows"]})
    return Measured(found.get("machine", {}), parts)


def take(measured, figures):
    """Replace each part that FIGURES has a file of. InputError: a part that is not optional is in neither place."""
    for name in PARTS:
        path = figures / f"{name}.json"
        if path.exists() or not (measured.parts[name].rows or path.name in inputs.OPTIONAL):
            rows = inputs.entries(figures, path.name)
            date = datetime.datetime.fromtimestamp(path.stat().st_mtime, datetime.timezone.utc)
            measured.parts[name] = Part(date.strftime("%Y-%m-%d"), rows)
    if (figures / "machine.json").exists() or not measured.machine:
        measured.machine = inputs.machine_of(figures)


def text_of(measured):
    """The file's text: one line per row, so that a diff shows rows."""
    parts = ['{\n "machine": ' + json.dumps(measured.machine, ensure_ascii=False, indent=1).replace("\n", "\n ")]
    for name in filter(measured.rows, PARTS):
        rows = ",\n  ".join(json.dumps(row, ensure_ascii=False) for row in measured.rows(name))
        parts.append(f'"{name}": {{"date": "{measured.parts[name].date}", "rows": [\n  {rows}\n ]}}')
    return ",\n ".join(parts) + "\n}\n"


def save(measured, folder):
    (folder / NAME).write_text(text_of(measured))
