# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
"""The inputs of the report: figures, the machine, notes by hand."""

import dataclasses
import json
import re

from bench_lib import machine

MAKERS = {"native.json": "make bench", "vm.json": "make bench-vm", "hosts.json": "make bench-hosts",
          "guest.json": "make bench-guest", "wire.json": "make bench-wire", "directory.json": "make bench-directory"}
# Without them the page has less in it. What rows of each are called begins with:
OPTIONAL = {"guest.json": ("guest.",), "hosts.json": ("hosts.",), "wire.json": ("wire.",), "directory.json": ("directory.", "peers.")}
FIELDS = {"name", "value", "unit", "peer", "peer_value", "ratio", "min", "max", "runs"}


class InputError(Exception):
    """An error in an input, with the command that makes a correct one."""


def entries(folder, name):
    """{name: entry} of a file of `make bench` or one of its kind."""
    path = folder / name
    if name in OPTIONAL and not path.exists():
        return {}
    try:
        found = json.loads(path.read_text())
    except FileNotFoundError as err:
        raise InputError(f"there is no {path}: say `{MAKERS[name]}` first") from err
    except ValueError as err:
        raise InputError(f"{path} is no JSON ({err}): say `{MAKERS[name]}` again") from err
    if not isinstance(found, list) or not all(isinstance(row, dict) and FIELDS <= row.keys() for row in found):
        raise InputError(f"{path} lacks fields that a row has: say `{MAKERS[name]}` again")
    return {row["name"]: row for row in found}


def machine_of(folder):
    """The machine that bench/vm recorded, or else this machine."""
    path = folder / "machine.json"
    return json.loads(path.read_text()) if path.exists() else machine.describe()


@dataclasses.dataclass(frozen=True)
class Notes:
    """Notes by hand: about rows, and about other subjects, which have sections of their own."""

    rows: dict          # name -> text
    sections: list      # (title, text)


def _is_left_out(word, names):
    """Return: True if the row belongs to a file that does not exist."""
    for prefixes in OPTIONAL.values():
        if word.startswith(prefixes):
            return not any(name.startswith(prefixes) for name in names)
    return False


def notes(path, names):
    """A heading of the second level names rows, separated by commas, or is a section's title.

    A name with an asterisk stands for several rows. One that no row has is refused, so that notes do not outlive
    what they are about.
    """
    by_row, sections = {}, []
    if not path.exists():
        return Notes(by_row, sections)
    for chunk in re.split(r"^## ", path.read_text(), flags=re.MULTILINE)[1:]:
        title, _, text = chunk.partition("\n")
        wanted = [word.strip("` ") for word in title.split(",")]
        if not all(re.fullmatch(r"[a-z0-9_.*]*[._][a-z0-9_.*]*", word) for word in wanted):
            sections.append((title.strip(), text.strip()))
            continue
        for word in wanted:
            pattern = re.escape(word).replace(r"\*", ".*")
            about = [name for name in names if re.fullmatch(pattern, name)]
            if not about and not _is_left_out(word, names):
                raise InputError(f"{path}: a note on {word}, but no row is called that")
            by_row.update({name: text.strip() for name in about})
    return Notes(by_row, sections)
