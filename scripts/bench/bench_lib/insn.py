# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
"""Instructions per operation: runs tests/bench/insn.c under callgrind and reads what that wrote."""

import os
import platform
import re
import shutil
import subprocess
import tempfile
from collections import defaultdict
from pathlib import Path

LIBC = "libc"
TRIGGER = re.compile(r"desc: Trigger: Client Request: (\S+) (\d+)$")
NAME = re.compile(r"\((\d+)\)(?: (.*))?$")
# The C library chooses its functions by what the CPU has: the same ones on all machines.
TUNABLES = "glibc.cpu.hwcaps=-AVX2,-AVX2_Usable,-AVX512F,-AVX512VL,-AVX_Fast_Unaligned_Load,-ERMS,-FSRM"


class CannotCount(Exception):
    """A reason, for people, why nothing was counted."""


class Counts:
    """Instructions per operation of a case, by function: "file.c:function", or LIBC."""

    def __init__(self, functions):
        self.functions = functions

    @property
    def total(self):
        return sum(self.functions.values())

    @property
    def device(self):
        """Instructions outside the C library."""
        return self.total - self.functions.get(LIBC, 0)


def parse(text):
    """(case, Counts) of a callgrind file: self cost, of all functions but the tests' own."""
    names, costs = {"ob": {}, "fl": {}, "fn": {}}, defaultdict(int)
    case, operations, now, skip = None, 0, {"ob": "", "fl": "", "fn": ""}, False
    for line in text.splitlines():
        trigger, (key, equals, value) = TRIGGER.match(line), line.partition("=")
        if trigger:
            case, operations = trigger[1], int(trigger[2])
        elif line.startswith("calls="):
            # The next line is the cost of the function called.
            skip = True
        elif equals and key in ("ob", "fl", "fn", "fi", "fe", "cob", "cfi", "cfl", "cfn"):
            kind = {"fi": "fl", "fe": "fl", "cob": "ob", "cfi": "fl", "cfl": "fl", "cfn": "fn"}.get(key, key)
            number, name = NAME.match(value).groups()
            name = names[kind].setdefault(number, name or "?")
            # fi and fe name the file that a line was inlined from, keys with c the called function.
            if key == kind:
                now[kind] = name
        elif line[:1] in "0123456789+-*" and line:
            if not skip:
                costs[tuple(now.values())] += int(line.split()[1])
            skip = False
    functions = defaultdict(int)
    for (ob, fl, fn), cost in costs.items():
        if "/libc.so" in ob or "/libc-" in ob:
            functions[LIBC] += cost
        elif "/tests/" not in fl:
            functions[f"{os.path.basename(fl)}:{fn}"] += cost
    return case, Counts({name: cost / operations for name, cost in functions.items() if cost})


def program(build):
    return build / "tests" / "bench" / "bench_insn"


def key(build):
    """The environment that the counts depend on: the compiler that BUILD was made with, and the architecture."""
    compiler = subprocess.run([program(build), "--compiler"], text=True, stdout=subprocess.PIPE, check=True)
    return f"{compiler.stdout.strip()} {platform.machine()}"


def measure(build):
    """The Counts of each case, by its name. Always the same of the same build."""
    if not shutil.which("valgrind"):
        raise CannotCount("valgrind is missing: run scripts/deps, or install the Debian package valgrind")
    with tempfile.TemporaryDirectory() as folder:
        run = subprocess.run(["valgrind", "--tool=callgrind", "--collect-atstart=no",
                              f"--callgrind-out-file={folder}/out", program(build)],
                             env={"GLIBC_TUNABLES": TUNABLES, "PATH": os.environ["PATH"]}, text=True,
                             stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False)
        if run.returncode == 77:
            raise CannotCount(run.stdout.strip().splitlines()[-1])
        if run.returncode:
            raise RuntimeError(f"bench_insn under valgrind: exit status {run.returncode}\n{run.stdout}")
        # The rest at the end goes into "out" itself.
        return dict(parse(path.read_text()) for path in sorted(Path(folder).glob("out.*")))
