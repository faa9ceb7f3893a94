# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
"""The machine that figures are of."""

import datetime
import os
import platform
import re
import subprocess
from pathlib import Path


def _first_line(*command):
    try:
        done = subprocess.run(command, capture_output=True, text=True, stdin=subprocess.DEVNULL, check=True)
    except (OSError, subprocess.CalledProcessError):
        return None
    return (done.stdout.splitlines() or [None])[0]


def _cpu_model(cpuinfo):
    """The model, with family and number where its name says little."""
    fields = dict(re.findall(r"^([\w ]+?)\s*: (.*)$", cpuinfo.split("\n\n")[0], re.MULTILINE))
    name = fields.get("model name", platform.machine())
    numbers = [f"{what} {fields[key]}" for what, key in (("family", "cpu family"), ("model", "model")) if key in fields]
    return f"{name} ({', '.join(numbers)})" if numbers else name


def _caches(folder=Path("/sys/devices/system/cpu/cpu0/cache")):
    """The first CPU's: "L1d 48K, L2 1024K, L3 32768K"."""
    letters, found = {"Data": "d", "Instruction": "i"}, []
    for index in sorted(folder.glob("index*")):
        level, kind, size = ((index / name).read_text().strip() for name in ("level", "type", "size"))
        found.append(f"L{level}{letters.get(kind, '')} {size}")
    return ", ".join(found) or "unknown"


def _memory(meminfo):
    kib = int(re.search(r"^MemTotal: *(\d+) kB", meminfo, re.MULTILINE)[1])
    return f"{kib / (1 << 20):.0f} GiB"


def describe(accelerator=None, qemu=None):
    """{what: text}, in the order in which it is shown. accelerator: what the VMs ran under; qemu: the program."""
    cpuinfo = Path("/proc/cpuinfo").read_text()
    version = qemu and _first_line(str(qemu), "--version")
    found = {
        "CPU": _cpu_model(cpuinfo),
        "cores": str(len(os.sched_getaffinity(0))),
        "caches": _caches(),
        "RAM": _memory(Path("/proc/meminfo").read_text()),
        "virtual itself": "yes" if re.search(r"^flags\s*:.*\bhypervisor\b", cpuinfo, re.MULTILINE) else "no",
        "kernel": f"{platform.system()} {platform.release()}",
        "VMs under": accelerator,
        "QEMU": version and re.sub(r"^QEMU emulator version ", "", version),
        "compiler": _first_line(os.environ.get("CC", "gcc"), "--version"),
        "date": datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%d %H:%M UTC"),
    }
    return {what: text for what, text in found.items() if text}
