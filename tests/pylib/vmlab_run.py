# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
"""Runs scripts/vmlab for a test, and holds the result of the run."""

import collections
import dataclasses
import pathlib
import shutil
import subprocess

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
VMLAB = ROOT / "scripts" / "vmlab"


@dataclasses.dataclass
class Result:
    """The result of a run of vmlab."""

    status: int
    stdout: str
    stderr: str
    logs: pathlib.Path
    share: pathlib.Path

    @property
    def error(self):
        """The one line with the reason of the failure; empty on success."""
        lines = [line for line in self.stderr.splitlines() if line.startswith("vmlab: error: ")]
        return lines[-1].removeprefix("vmlab: error: ") if lines else ""

    @property
    def nodes(self):
        """The output of each node: {1: [line, ...], 2: ...}."""
        found = collections.defaultdict(list)
        for line in self.stdout.splitlines():
            name, bar, text = line.partition("| ")
            if bar and name.startswith("node"):
                found[int(name[4:])].append(text)
        return found

    def text(self, node):
        return "\n".join(self.nodes[node])

    def log(self, name):
        """A log file's text: "node1.console", "pvrdmad.log", "paths.txt"; empty if there is none."""
        path = self.logs / name
        return path.read_text(errors="replace") if path.exists() else ""

    def check(self):
        """Fail the test, showing everything, unless vmlab ended well. Returns the result."""
        assert self.status == 0, f"{self.error}\n{self.stdout}\n{self.stderr}"
        return self


class Vmlab:
    """Runs scripts/vmlab for one test; its logs and its share are in the test's own folder."""

    def __init__(self, folder):
        self.folder = folder
        self.share = folder / "share"
        self.logs = folder / "logs"
        self.share.mkdir()

    def put(self, *paths):
        """Copy files to the share, where nodes find them in $SHARE."""
        for path in paths:
            shutil.copy(path, self.share)

    def command(self, script, *args, **options):
        """The command line. `script` is a text or a path; options become --name value, once for each value of a list."""
        command = [str(VMLAB), "--share", str(self.share), "--keep-logs", str(self.logs)]
        for name, value in options.items():
            for one in value if isinstance(value, list) else [value]:
                command += [f"--{name.replace('_', '-')}", str(one)]
        return [*command, *map(str, args), "--run", str(self._script(script))]

    def __call__(self, script, *args, **options):
        """Run to the end: vmlab("echo hi", driver="rxe", nodes=3).check()."""
        options.setdefault("timeout", 180)
        done = subprocess.run(self.command(script, *args, **options), capture_output=True,
                              text=True, stdin=subprocess.DEVNULL, check=False)
        return Result(done.returncode, done.stdout, done.stderr, self.logs, self.share)

    def _script(self, script):
        if isinstance(script, pathlib.Path):
            return script
        path = self.folder / "script"
        if not script.startswith("#!"):
            script = "#!/bin/sh -e\n" + script
        path.write_text(script)
        path.chmod(0o755)
        return path
