# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
"""docs/performance.md."""

from bench_lib.table import plain, verdict
from bench_lib.vm.table import cpu, ratio

TITLE = """\
<!-- SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB -->
# Performance
"""

HEAD = """\
`make bench-report` writes this page and the figures of README.md from
[performance/measured.json](performance/measured.json): the rows of `make bench`, `make bench-vm`,
`make bench-guest`, `make bench-hosts`, `make bench-wire` and `make bench-directory`. The
explanations come from [performance/notes.md](performance/notes.md). [testing.md](testing.md)
describes the measurements.

Each comparison is from one run on one machine. The competitors take turns, and each figure is the
median of several runs. Absolute figures hold for this machine only.
"""

EMULATED = """\
**QEMU emulated the guests' CPUs (TCG, no KVM), and that favors pvrdma.** Soft-RoCE suffers most,
because each of its packets passes through emulated guest kernels. `pvrdmad` copies at native speed.
The ratios between VMs are larger than those to be expected with KVM, which were not measured.

`make bench-vm` uses KVM where `/dev/kvm` works. The folder `build/bench` then has `vm.json` and
`machine.json`: send both with a report of your machine.
"""


def head(machine):
    emulated = machine.get("VMs under", "").startswith("TCG")
    return "\n".join([TITLE, *([EMULATED] if emulated else []), HEAD])


def table(head, rows):
    return "\n".join(["| " + " | ".join(head) + " |", "|" + "---|" * len(head),
                      *("| " + " | ".join(row) + " |" for row in rows)]) + "\n"


def machine_table(machine):
    return table(("the machine", ""), machine.items())


def verdict_text(row):
    """The target, and whether it is met."""
    target, met = verdict(row)
    return target, f"**{met}**" if met == "MISSED" else met


def shown(value, unit):
    return plain(value, unit).replace(" us", " µs")


def spread(row, unit):
    return f"{shown(row['min'], unit)} … {shown(row['max'], unit)}" if row["runs"] > 1 else ""


def native_table(rows):
    lines = []
    for row in rows:
        peer = f"{row['peer']}: {shown(row['peer_value'], row['unit'])}" if row["peer"] else ""
        share = f"{row['ratio']:.2f} ×" if row["ratio"] is not None else ""
        lines.append((f"`{row['name']}`", shown(row["value"], row["unit"]), spread(row, row["unit"]), peer, share,
                      *verdict_text(row)))
    return table(("row", "median", "min … max", "against", "ratio", "target", ""), lines)


PER = {"s/GB": "GB", "s/Mmsg": "million messages"}


def vm_table(rows):
    """CPU time stands beside the figures that it made possible."""
    lines = []
    for row in rows:
        tcp = row["tcp"]
        lines.append((f"`{row['name']}`", shown(row["value"], row["unit"]), spread(row, row["unit"]),
                      shown(row["peer_value"], row["unit"]), ratio(row["ratio"]).replace(" x", " ×"), *verdict_text(row),
                      shown(tcp["value"], row["unit"]) if tcp else "", PER[row["cpu_unit"]],
                      cpu(row["host_cpu"], row["guest_cpu"]), cpu(row["peer_host_cpu"], row["peer_guest_cpu"]),
                      cpu(tcp["host_cpu"], tcp["guest_cpu"]) if tcp else ""))
    return table(("row", "pvrdma", "min … max", "Soft-RoCE", "ratio", "target", "", "TCP", "CPU s per", "pvrdma", "Soft-RoCE",
                  "TCP"), lines)


def split(rows):
    """Those with a target, those without."""
    return [row for row in rows if verdict(row)[0]], [row for row in rows if not verdict(row)[0]]


def score(rows):
    verdicts = [verdict(row)[1] for row in rows]
    return f"{verdicts.count('met')} of {len(verdicts)} targets are met."


def notes_text(rows, notes):
    """The limit of each missed row, one paragraph for rows that share it; then the notes on other rows."""
    missed = [row["name"] for row in rows if verdict(row)[1] == "MISSED"]
    groups = {}
    for name in missed + [row["name"] for row in rows if row["name"] not in missed]:
        text = notes.rows.get(name, "No explanation yet." if name in missed else None)
        if text:
            groups.setdefault(text, ([], []))[name not in missed].append(name)
    parts = []
    for text, (failed, others) in groups.items():
        listed = [", ".join(f"`{name}`" for name in names) for names in (failed, others)]
        listed[0] += ": missed" if failed else ""
        parts.append(f"**{'; '.join(part for part in listed if part)}.** {text}\n")
    return "\n".join(parts)


def picture(chart):
    return f"![{chart.title}](performance/{chart.file})\n"


def any_hypervisor(measured, notes):
    """The section on counts of guests; none if nothing was counted."""
    rows = measured.rows("guest")
    if not rows:
        return
    main, more = split(rows)
    yield "## On any hypervisor\n"
    yield ("What both guests execute for a message of 8 bytes, and the system calls of `pvrdmad` and both QEMUs. These counts "
           "do not depend on the CPU, and hardly on the hypervisor. "
           f"Counted on {measured.parts['guest'].date}, in one boot. {score(main)}\n")
    yield native_table(main)
    yield native_table(more) if more else ""
    yield notes_text(rows, notes)


WITH_RXE = ("Those with `rxe` are of VMs on a bridge: from an adapter to Soft-RoCE (`out`) and back (`in`), against Soft-RoCE in "
            "both VMs. ")


def across(measured, notes):
    """The sections on several hosts; none if nothing was measured."""
    hosts, wire, directory = (measured.rows(part) for part in ("hosts", "wire", "directory"))
    if hosts:
        main, more = split(hosts)
        yield "## Across hosts\n"
        yield ("Two network namespaces of this machine, joined by a bridge, are the hosts. Each has its own `pvrdmad` and a fake "
               "guest. The column \"against\" has the same two hosts without pvrdma. "
               f"Measured on {measured.parts['hosts'].date}, in one run. {score(main)}\n")
        yield native_table(main)
        yield native_table(more) if more else ""
        yield notes_text(hosts, notes)
    if wire:
        main, more = split(wire)
        yield "## RoCEv2 on an Ethernet segment\n"
        yield ("The same two hosts, whose adapters speak RoCEv2 on the bridge (`wire=eth:`). The column \"against\" has UDP packets "
               "of the same length between them, or the TCP connection of two `pvrdmad`s. Rows with `no_gso` have `wire-gso=off`; "
               "those with `4096` have that path MTU, the others 1024. "
               f"{WITH_RXE if any(row['name'].startswith('wire.rxe_') for row in wire) else ''}"
               f"Measured on {measured.parts['wire'].date}, in one run. {score(main)}\n")
        yield native_table(main)
        yield native_table(more) if more else ""
        yield notes_text(wire, notes)
    if directory:
        yield "## Many hosts\n"
        yield ("`directory.*`: a directory in etcd with a million GIDs on 10,000 hosts, and one host that resolves some of them. "
               "`peers.*`: one daemon and 200 peers; each of them dials the other. "
               f"Measured on {measured.parts['directory'].date}.\n")
        yield native_table(directory)
        yield notes_text(directory, notes)


def compose(native, vm, across, machine, notes, charts):
    """The page's text. native, vm: lists of rows; across: parts of its own."""
    native_main, native_more = split(native)
    vm_main, vm_more = split(vm)
    parts = [
        head(machine), machine_table(machine),
        "## Two VMs\n",
        "pvrdma against Soft-RoCE and TCP over virtio-net, between the same two VMs in one boot. " + score(vm_main) + "\n",
        vm_table(vm_main),
        "CPU time is in seconds of the host / of both guests, per GB moved or per million messages. The host's time is that of "
        "both QEMU processes, guests included, and of `pvrdmad`. The guests' time is their own count. The start and end of the "
        "programs are left out.\n",
        *(picture(chart) for chart in charts if chart.file.startswith("vm-")),
        "The other points of the curves:\n", vm_table(vm_more),
        notes_text(vm_main, notes),
        "## The device alone\n",
        "One process contains the device library and fake guests. Their rings are filled outside the measured time. Bandwidth "
        "is compared with `memcpy` between the same buffers. " + score(native_main) + "\n",
        native_table(native_main),
        *(picture(chart) for chart in charts if chart.file.startswith("native-")),
        "Other rows:\n" if native_more else "", native_table(native_more) if native_more else "",
        notes_text(native_main, notes),
        *across,
        *(f"## {title}\n\n{text}\n" for title, text in notes.sections),
    ]
    return "\n".join(part for part in parts if part)
