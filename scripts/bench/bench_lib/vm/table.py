# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
"""The entries of vm.json for people."""

from bench_lib.table import plain, verdict

LAYOUT = "{:26} {:>11} {:>11} {:>9}  {:9} {:7} {:>11}   {:>15} {:>15} {:>15}  {}"
HEAD = LAYOUT.format("row", "pvrdma", "Soft-RoCE", "ratio", "target", "", "TCP",
                     "CPU pvrdma", "CPU Soft-RoCE", "CPU TCP", "s per")


def ratio(value):
    """As people say it: 650 x, or 1/21."""
    return f"{value:.0f} x" if value >= 10 else f"{value:.2f} x" if value >= 1 else f"1/{1 / value:.1f}"


def cpu(host, guest):
    return f"{host:.3g} / {guest:.3g}"


def line(entry):
    tcp = entry["tcp"]
    per = {"s/GB": "GB", "s/Mmsg": "million messages"}[entry["cpu_unit"]]
    return LAYOUT.format(
        entry["name"], plain(entry["value"], entry["unit"]), plain(entry["peer_value"], entry["unit"]),
        ratio(entry["ratio"]), *verdict(entry), plain(tcp["value"], entry["unit"]) if tcp else "",
        cpu(entry["host_cpu"], entry["guest_cpu"]), cpu(entry["peer_host_cpu"], entry["peer_guest_cpu"]),
        cpu(tcp["host_cpu"], tcp["guest_cpu"]) if tcp else "", per).rstrip()


NOTE = """CPU: seconds of the host (both QEMUs with what their guests do, and pvrdmad) / of both guests as they count
themselves, without the programs' start and end."""
