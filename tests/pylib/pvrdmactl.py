# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
"""Watchers for run_steps() that query the pvrdmad of a run of vmlab."""

import pathlib
import subprocess

from steps import pids_of
from vmlab_run import ROOT


def pvrdmactl(*words):
    """A watcher for run_steps: pvrdmactl WORDS at the daemon of that vmlab."""
    def run(vmlab_pid):
        daemon, = pids_of(vmlab_pid, "pvrdmad")
        argv = pathlib.Path(f"/proc/{daemon}/cmdline").read_text().split("\0")
        control = argv[argv.index("--control") + 1]
        done = subprocess.run([ROOT / "build" / "host" / "pvrdmactl", "--control", control, *words],
                              capture_output=True, text=True, timeout=20, check=False)
        return done.returncode, done.stdout + done.stderr
    return run
