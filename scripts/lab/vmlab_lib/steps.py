# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
"""Many steps in one run, as VMs are slow to boot: files for scripts/guest/run-steps, and what it left of each."""

import collections
import dataclasses
import pathlib
import re
import shutil
import subprocess
import threading
import time

from .initramfs import GUEST_SCRIPTS

RUN_STEPS = GUEST_SCRIPTS / "run-steps"
TAIL = 40
LAST_WORDS = 4


@dataclasses.dataclass(frozen=True)
class Step:
    """Bash that runs on all nodes at the same time, with guest/steps.sh at hand."""

    name: str
    script: str
    seconds: int = 60


@dataclasses.dataclass
class Outcome:
    """The result of a step on one node. status None: the step did not run."""

    node: int
    status: int | None
    milliseconds: int
    text: str

    def _end(self):
        status = "did not run" if self.status is None else f"status {self.status}"
        return f"node{self.node}: {status}, {self.milliseconds / 1000:.1f} s"

    def tail(self):
        lines = self.text.splitlines()
        left_out = [f"... {len(lines) - TAIL} lines before"] if len(lines) > TAIL else []
        return "\n".join([self._end(), *(f"  {line}" for line in left_out + lines[-TAIL:])])

    def blame(self):
        """One line: how it ended, and its own last words, those that are repeated only once."""
        lines = [line.strip() for line in self.text.splitlines() if line.strip() and not line.startswith("dmesg: ")]
        last = list(dict.fromkeys(reversed(lines)))[:LAST_WORDS]
        return ": ".join([self._end(), " | ".join(line[:100] for line in reversed(last))])


def put(share, steps):
    """Fill the share for run-steps."""
    shutil.copy(GUEST_SCRIPTS / "steps.sh", share)
    for folder in ("flags", "steps"):
        (share / folder).mkdir()
    for number, step in enumerate(steps):
        (share / "steps" / f"{number:03d}-{step.name}").write_text(f"# {step.seconds}\n{step.script}\n")


def seconds(steps):
    """Seconds that all of it may take, including the boot."""
    return 60 + sum(step.seconds for step in steps)


def outcome(share, node, name):
    folder = pathlib.Path(share) / "results" / f"node{node}"
    rc, out = folder / f"{name}.rc", folder / f"{name}.out"
    if not rc.exists():
        return Outcome(node, None, 0, "")
    status, milliseconds = map(int, rc.read_text().split())
    return Outcome(node, status, milliseconds, out.read_text(errors="replace"))


def when_over(steps, take, nodes=2):
    """An on_line for run(): calls take(name) when all nodes are through with a step that is one of `steps`."""
    reported = collections.Counter()

    def on_line(line):
        step = re.match(r"node\d+\| step (\S+): status", line)
        if not step:
            return
        reported[step[1]] += 1
        if reported[step[1]] == nodes and step[1] in steps:
            take(step[1])

    return on_line


def run(command, share, watch=None, on_line=None):
    """Run vmlab, as `command` says, to its end. Returns its status, stdout, stderr and what the watchers returned.

    watch: {flag: function(vmlab's pid)}; when a step on some node raises the flag (named STEP.FLAG), the
    function runs here, and then the flag STEP.FLAG.seen is raised. on_line: called with each line of stdout as
    it comes.
    """
    seen, stdout, stderr = {}, [], []
    with subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, text=True, errors="replace") as child:
        threads = [threading.Thread(target=_watch, args=(child, share / "flags", dict(watch or {}), seen)),
                   threading.Thread(target=stderr.extend, args=(child.stderr,))]
        for thread in threads:
            thread.start()
        try:
            for line in child.stdout:
                stdout.append(line)
                if on_line:
                    on_line(line)
            child.wait()
        except BaseException:
            child.terminate()
            raise
        finally:
            for thread in threads:
                thread.join()
    return child.returncode, "".join(stdout), "".join(stderr), seen


def _watch(child, flags, watch, seen):
    while child.poll() is None:
        for flag in [name for name in watch if (flags / name).exists()]:
            seen[flag] = watch.pop(flag)(child.pid)
            (flags / f"{flag}.seen").touch()
        if not watch:
            return
        time.sleep(0.1)
