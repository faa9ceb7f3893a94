# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
"""Write docs/performance.md, the charts in docs/performance/, and the figures of README.md.

All are written from docs/performance/measured.json. Files of build/bench/ replace the parts of it that they measured:
native.json (of `make bench`), vm.json and machine.json (of `make bench-vm`), guest.json (of
`make bench-guest`), hosts.json (of `make bench-hosts`), wire.json (of `make bench-wire`) and directory.json (of
`make bench-directory`). docs/performance/notes.md is written by hand: the limit of each row that
misses its target, and the measurement that shows it.
"""

import argparse
import pathlib
import sys

from . import charts, inputs, measured, page, readme

ROOT = pathlib.Path(__file__).resolve().parents[4]


def main(argv):
    parser = argparse.ArgumentParser(prog="bench/report", description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--figures", type=pathlib.Path, default=ROOT / "build" / "bench", metavar="DIR",
                        help="the folder of the JSON files (default build/bench)")
    parser.add_argument("--again", action="store_true", help="use measured.json alone, as after a change of notes.md")
    parser.add_argument("--docs", type=pathlib.Path, default=ROOT / "docs", metavar="DIR",
                        help="the folder of performance.md (default docs); README.md is in the folder above, if at all")
    options = parser.parse_args(argv)
    try:
        write(None if options.again else options.figures, options.docs)
    except inputs.InputError as error:
        print(f"bench/report: {error}", file=sys.stderr)
        return 1
    except ImportError as error:
        print(f"bench/report: {error}: install the Debian package python3-matplotlib", file=sys.stderr)
        return 1
    return 0


def page_of(figures, notes):
    """Return: the text of performance.md, and its charts. figures: a Measured."""
    drawn = charts.all_charts(figures.parts["native"].rows, figures.parts["vm"].rows)
    across = [*page.any_hypervisor(figures, notes), *page.across(figures, notes)]
    return page.compose(figures.rows("native"), figures.rows("vm"), across, figures.machine, notes, drawn), drawn


def write(figures, docs):
    folder = docs / "performance"
    found = measured.load(folder)
    if figures:
        measured.take(found, figures)
    notes = inputs.notes(folder / "notes.md", found.names())
    text, drawn = page_of(found, notes)
    folder.mkdir(parents=True, exist_ok=True)
    for chart in drawn:
        charts.draw(chart, folder)
    measured.save(found, folder)
    (docs / "performance.md").write_text(text)
    print(docs / "performance.md")
    write_readme(found, docs.parent / "README.md", folder)


def write_readme(found, path, folder):
    block = readme.block(found)
    if path.exists() and block:
        path.write_text(readme.insert(path.read_text(), block))
        (folder / readme.CHART).write_text(readme.chart(found))
        print(path)
