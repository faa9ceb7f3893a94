# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
"""The figures and the chart of README.md."""

import math
import textwrap

from bench_lib.vm.table import ratio
from . import inputs
from .page import shown, table

BEGIN = "<!-- figures: begin; written by scripts/bench/report -->"
END = "<!-- figures: end -->"
CHART = "readme.svg"

ROWS = [
    ("vm.write_bw.65536", "`ib_write_bw`, 64 KiB"),
    ("vm.write_rate.8", "`ib_write_bw`, 8 B: messages"),
    ("vm.write_lat.8", "`ib_write_lat`, 8 B: one way"),
    ("vm.pingpong.4096", "`ibv_rc_pingpong`, 4 KiB: both ways"),
]
COMPETITORS = (("pvrdma", "#c23b22"), ("Soft-RoCE", "#3b6ea5"), ("TCP", "#7a7a7a"))


def rows_of(measured):
    """The rows that README.md shows, or [] if one is missing."""
    names = set(measured.names())
    return [(measured.row(name), title) for name, title in ROWS] if names >= {name for name, _ in ROWS} else []


def share(row):
    return ratio(row["ratio"]).replace(" x", " ×")


def filled(text):
    """A paragraph, wrapped as documents are."""
    return textwrap.fill(text, 100, break_long_words=False, break_on_hyphens=False) + "\n"


def conditions(machine):
    """The sentences that stand beside the figures, of the machine that they were measured on."""
    cores = f"{machine['cores']} cores" if machine.get("cores") else "one machine"
    if machine.get("VMs under", "").startswith("TCG"):
        return filled(f"Measured on {cores} **without KVM: QEMU emulates the guests' CPUs, which favors pvrdma, and Soft-RoCE "
                      "suffers most from it.** Each packet of Soft-RoCE passes through two emulated kernels, while `pvrdmad` "
                      "copies at native speed. Expect smaller ratios with KVM; they were not measured.")
    return f"Measured on {cores}, VMs under {machine.get('VMs under', 'an unknown accelerator')}.\n"


def block(measured):
    """The text between BEGIN and END; None if its rows were not measured."""
    rows = rows_of(measured)
    if not rows:
        return None
    lines = [(title, shown(row["value"], row["unit"]), shown(row["peer_value"], row["unit"]), share(row)) for row, title in rows]
    text = [conditions(measured.machine),
            table(("two VMs of one host", "pvrdma", "Soft-RoCE over virtio-net", "ratio"), lines),
            f"![pvrdma, Soft-RoCE and TCP between the same two VMs](docs/performance/{CHART})\n"]
    native = measured.parts["native"].rows
    if {"write_rate.8", "write_lat.8"} <= set(native):
        rate, latency = (shown(native[name]["value"], native[name]["unit"]) for name in ("write_rate.8", "write_lat.8"))
        text.append(filled(f"The device alone, without VMs: {rate.replace(' M/s', ' million')} RDMA WRITEs of 8 bytes per "
                           f"second and worker, {latency} from post to completion. "
                           "[docs/performance.md](docs/performance.md) has all figures and the limits."))
    return "\n".join(text)


def insert(text, new):
    """README.md's text with NEW between the markers."""
    before, begin, rest = text.partition(BEGIN)
    _, end, after = rest.partition(END)
    if not begin or not end:
        raise inputs.InputError(f"README.md lacks the lines '{BEGIN}' and '{END}'")
    return f"{before}{begin}\n{new}{end}{after}"


# ---------------------------------------------------------------- the chart

WIDTH, LEFT, RIGHT, BAR, GAP = 720, 190, 110, 16, 22


def panel(row, title):
    """(title, [(competitor, value), ...], unit): what a group of bars shows."""
    values = [("pvrdma", row["value"]), ("Soft-RoCE", row["peer_value"])]
    if row.get("tcp"):
        values.append(("TCP", row["tcp"]["value"]))
    return title.replace("`", ""), values, row["unit"]


def bar_widths(values):
    """Pixels on a logarithmic scale that begins a factor of 3 below the smallest value."""
    low = math.log10(min(value for _, value in values) / 3)
    high = math.log10(max(value for _, value in values))
    return [(math.log10(value) - low) / (high - low) * (WIDTH - LEFT - RIGHT) for _, value in values]


def chart(measured):
    """The chart as SVG: a group of bars per row of ROWS."""
    groups = [panel(row, title) for row, title in rows_of(measured)]
    colours, parts, y = dict(COMPETITORS), [], 34
    for title, values, unit in groups:
        better = "less is better" if unit == "s" else "more is better"
        parts.append(f'<text x="8" y="{y}" font-weight="bold">{title}</text>')
        parts.append(f'<text x="{WIDTH - 8}" y="{y}" text-anchor="end" fill="#666">{better}</text>')
        for (name, value), width in zip(values, bar_widths(values)):
            y += BAR + 4
            parts.append(f'<text x="{LEFT - 8}" y="{y}" text-anchor="end">{name}</text>')
            parts.append(f'<rect x="{LEFT}" y="{y - BAR + 4}" width="{width:.0f}" height="{BAR}" fill="{colours[name]}"/>')
            parts.append(f'<text x="{LEFT + width + 6:.0f}" y="{y}">{shown(value, unit)}</text>')
        y += BAR + GAP
    height = y
    accelerator = measured.machine.get("VMs under", "").partition(":")[0]
    head = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" width="{WIDTH}" height="{height}"'
            ' font-family="sans-serif" font-size="13">',
            f'<rect width="{WIDTH}" height="{height}" fill="#fff"/>',
            f'<text x="8" y="14" fill="#666">Two VMs of one host, {accelerator}; logarithmic scales; medians</text>']
    return "\n".join([*head, *parts, "</svg>"]) + "\n"
