# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
"""The commands of documents: indented lines, outside fences."""

import contextlib
import json
import os
import re
import shlex
import subprocess

from vmlab_lib.process import wait_for
from vmlab_run import ROOT

BIN = ROOT / "build" / "host"


class Document:
    """path: in the source tree."""

    def __init__(self, path):
        self.path = path
        self.text = (ROOT / path).read_text()

    def commands(self):
        """{"make demo", ...}"""
        text = re.sub(r"^```.*?^```$", "", self.text, flags=re.M | re.S)
        return {line.strip() for line in re.findall(r"^ {4,}(\S.*)$", text, flags=re.M)}

    def starting_with(self, word):
        found = [command for command in self.commands() if command.startswith(word)]
        assert len(found) == 1, f"expected one command {word}... in {self.path}, found {found}"
        return found[0]

    def qemu_options(self):
        return {command for command in self.commands() if command.startswith("-")}

    @contextlib.contextmanager
    def daemon(self, folder):
        """Run pvrdmad as the document says, but for where its sockets are."""
        words = shlex.split(self.starting_with("pvrdmad ").replace("/run/pvrdma", str(folder)))
        with open(folder / "log", "w") as log:
            child = subprocess.Popen([BIN / words[0], "--control", folder / "control", *words[1:]],
                                     stdin=subprocess.DEVNULL, stdout=log, stderr=log)
        try:
            wait_for((folder / "vm1.sock").exists, 10)
            wait_for((folder / "control").exists, 10)
            yield
        finally:
            child.terminate()
            child.wait(timeout=20)

    def pvrdmactl(self, folder, command):
        """The output of the document's only command that begins so, for that daemon."""
        argv = [BIN / "pvrdmactl", "--control", folder / "control", *self.starting_with(command).split()[1:]]
        return subprocess.run(argv, check=True, capture_output=True, text=True).stdout

    def check_qemu(self, cmdline):
        """Each of its options of QEMU is in the text of that file, which has a word in each line."""
        line = cmdline.splitlines()
        used = {_alike(*pair) for pair in zip(line, line[1:]) if pair[0].startswith("-")}
        for option in self.qemu_options():
            want = _alike(*option.split(" ", 1))
            assert any(want <= have for have in used), f"{option} is not how the VM was started"


def last_line_of_make(target):
    # As in a user's shell: under another make, this make would print folders.
    env = {name: value for name, value in os.environ.items() if not name.startswith("MAKE")}
    run = subprocess.run(["make", target], cwd=ROOT, env=env, capture_output=True, text=True, timeout=600,
                         stdin=subprocess.DEVNULL, check=False)
    assert run.returncode == 0, run.stdout[-3000:] + run.stderr[-3000:]
    return run.stdout.splitlines()[-1]


# What differs from VM to VM.
_OWN = ("mac", "netdev", "path", "size")


def _flat(value, prefix=""):
    """QEMU's JSON as its words are: "addr.path=..."."""
    for key, inner in value.items():
        if isinstance(inner, dict):
            yield from _flat(inner, f"{prefix}{key}.")
        elif isinstance(inner, bool):
            yield f"{prefix}{key}={'on' if inner else 'off'}"
        elif not prefix and key in ("driver", "type"):
            yield str(inner)
        else:
            yield f"{prefix}{key}={inner}"


def _alike(option, value):
    """An option and its words, in any order, and without values that differ from VM to VM."""
    value = value.strip("'")
    words = _flat(json.loads(value)) if value.startswith("{") else value.split(",")
    return frozenset({option, *(word.split("=")[0] if word.split("=")[0].rpartition(".")[2] in _OWN else word for word in words)})
