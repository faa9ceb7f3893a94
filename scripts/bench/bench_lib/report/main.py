# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
"""Write docs/performance.md and the charts in docs/performance/.

Reads build/bench/native.json (of `make bench`), build/bench/vm.json and machine.json (of `make bench-vm`), hosts.json
(of `make bench-hosts`) and directory.json (of `make bench-directory`) if they are there, and docs/performance/notes.md,
which people write: what limits a row that misses its target, and the measurement that shows it.
"""

import argparse
import pathlib
import sys

from . import charts, inputs, page

ROOT = pathlib.Path(__file__).resolve().parents[4]


def main(argv):
    parser = argparse.ArgumentParser(prog="bench/report", description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--figures", type=pathlib.Path, default=ROOT / "build" / "bench", metavar="DIR",
                        help="where the JSON files are (default build/bench)")
    parser.add_argument("--docs", type=pathlib.Path, default=ROOT / "docs", metavar="DIR",
                        help="where performance.md goes (default docs)")
    options = parser.parse_args(argv)
    try:
        write(options.figures, options.docs)
    except inputs.InputError as error:
        print(f"bench/report: {error}", file=sys.stderr)
        return 1
    except ImportError as error:
        print(f"bench/report: {error}: install the Debian package python3-matplotlib", file=sys.stderr)
        return 1
    return 0


def write(figures, docs):
    native, vm, hosts, directory = (inputs.entries(figures, name)
                                    for name in ("native.json", "vm.json", "hosts.json", "directory.json"))
    folder = docs / "performance"
    notes = inputs.notes(folder / "notes.md", [*native, *vm, *hosts, *directory])
    folder.mkdir(parents=True, exist_ok=True)
    drawn = charts.all_charts(native, vm)
    for chart in drawn:
        charts.draw(chart, folder)
    across = page.across(list(hosts.values()), list(directory.values()), notes)
    text = page.compose(list(native.values()), list(vm.values()), across, inputs.machine_of(figures), notes, drawn)
    (docs / "performance.md").write_text(text)
    print(docs / "performance.md")
