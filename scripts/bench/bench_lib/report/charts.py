# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
"""The charts: SVG files that are the same whenever the figures are."""

import dataclasses
import hashlib
import json
import re

COLOURS = {"pvrdma": "#c23b22", "Soft-RoCE": "#3b6ea5", "TCP": "#7a7a7a", "memcpy": "#2e8b57",
           "pvrdma, no VM": "#e59c24"}


@dataclasses.dataclass(frozen=True)
class Chart:
    """curves: {name: [(x, y), ...]}. An empty curve is left out, and a chart without any."""

    file: str
    title: str
    x_label: str
    y_label: str
    curves: dict
    log_y: bool = True
    sizes: bool = True      # x is a message size

    def stamp(self):
        """A comment at the end of the file, by which a test finds a chart of other figures."""
        digest = hashlib.sha256(json.dumps(dataclasses.asdict(self), sort_keys=True).encode()).hexdigest()
        return f"<!-- figures: {digest[:16]} -->"


def series(rows, pattern, value):
    """[(number in the name, value(row)), ...] of the rows whose name fits."""
    points = []
    for name, row in rows.items():
        found = re.fullmatch(pattern, name)
        if found and value(row) is not None:
            points.append((int(found[1]), value(row)))
    return sorted(points)


def _value(factor=1.0):
    return lambda row: row["value"] * factor


def _peer(factor=1.0):
    return lambda row: None if row["peer_value"] is None else row["peer_value"] * factor


def _tcp(factor=1.0):
    return lambda row: row["tcp"]["value"] * factor if row.get("tcp") else None


def all_charts(native, vm):
    """Every chart that the figures are enough for."""
    latency = {name: series(vm, r"vm\.write_lat\.(\d+)", of(1e6))
               for name, of in (("pvrdma", _value), ("Soft-RoCE", _peer), ("TCP", _tcp))}
    # Messages of 8 bytes are measured as a rate.
    bandwidth = {name: series(vm, r"vm\.write_rate\.(8)", of(8e-9)) + series(vm, r"vm\.write_bw\.(\d+)", of(1e-9))
                 for name, of in (("pvrdma", _value), ("Soft-RoCE", _peer), ("TCP", _tcp))}
    copies = {name: series(native, r"write_bw\.(\d+)", of(1e-9)) for name, of in (("pvrdma, no VM", _value), ("memcpy", _peer))}
    rate = {}
    for name, of in (("pvrdma", _value), ("Soft-RoCE", _peer)):
        one = [(1, y) for _, y in series(vm, r"vm\.write_rate\.(8)", of(1e-6))]
        rate[name] = one + series(vm, r"vm\.write_rate_qps\.(\d+)", of(1e-6))
    wanted = [
        Chart("vm-latency.svg", "RDMA WRITE between two VMs: latency", "message size", "µs, one way", latency),
        Chart("vm-bandwidth.svg", "RDMA WRITE between two VMs: bandwidth", "message size", "GB/s",
              {**bandwidth, "memcpy": copies["memcpy"]}),
        Chart("vm-rate.svg", "8-byte RDMA WRITE between two VMs: rate over queue pairs", "queue pairs",
              "million messages/s", rate, sizes=False),
        Chart("native-bandwidth.svg", "RDMA WRITE without VMs: bandwidth", "message size", "GB/s", copies, log_y=False),
        Chart("native-rate.svg", "8-byte RDMA WRITE without VMs: rate over queue pairs", "queue pairs",
              "million messages/s", {"pvrdma, no VM": series(native, r"write_rate_qps\.(\d+)", _value(1e-6))},
              sizes=False, log_y=False),
    ]
    return [chart for chart in wanted if any(chart.curves.values())]


def size_text(number, _position=None):
    for shift, unit in ((20, "MiB"), (10, "KiB")):
        if number >= 1 << shift:
            return f"{number / (1 << shift):g} {unit}"
    return f"{number:g} B"


def without_trailing_space(file):
    """As all that is committed; a path's lines end with a space each."""
    file.write_text("".join(f"{line.rstrip()}\n" for line in file.read_text().splitlines()))


def draw(chart, folder):
    """Write the chart's file."""
    import matplotlib
    matplotlib.use("svg")
    import matplotlib.pyplot as plt
    from matplotlib.ticker import FuncFormatter, NullFormatter

    # Neither ids nor a date that change from run to run; text stays text.
    settings = {"svg.hashsalt": chart.file, "svg.fonttype": "none", "font.family": "sans-serif", "font.size": 10}
    with plt.rc_context(settings):
        figure, axes = plt.subplots(figsize=(7.2, 4.2))
        for name, points in chart.curves.items():
            if points:
                axes.plot(*zip(*points), marker="o", markersize=4, label=name, color=COLOURS[name])
        axes.set_xscale("log", base=2)
        ticks = sorted({x for points in chart.curves.values() for x, _ in points})
        axes.set_xticks(ticks)
        axes.xaxis.set_major_formatter(FuncFormatter(size_text if chart.sizes else lambda x, _: f"{x:g}"))
        axes.xaxis.set_minor_formatter(NullFormatter())
        if chart.sizes:
            axes.tick_params(axis="x", rotation=45)
        if chart.log_y:
            axes.set_yscale("log")
        else:
            axes.set_ylim(bottom=0)
        axes.yaxis.set_major_formatter(FuncFormatter(lambda y, _: f"{y:g}"))
        axes.set(title=chart.title, xlabel=chart.x_label, ylabel=chart.y_label)
        axes.grid(True, which="major", color="#dddddd", linewidth=0.6)
        axes.legend(frameon=False)
        figure.tight_layout()
        figure.savefig(folder / chart.file, metadata={"Date": None, "Creator": None})
        without_trailing_space(folder / chart.file)
        with open(folder / chart.file, "a") as file:
            file.write(f"{chart.stamp()}\n")
        plt.close(figure)
