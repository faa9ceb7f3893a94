# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
"""CPU time and sleeps of a daemon."""

import os
import re
import time
from pathlib import Path

from daemon_process import PATIENCE

QUIET = 2  # seconds


def cpu(daemon):
    """CPU time so far, in clock ticks."""
    fields = Path(f"/proc/{daemon.child.pid}/stat").read_text(encoding="ascii").rsplit(")", 1)[1].split()
    return int(fields[11]) + int(fields[12])


def cpu_seconds(daemon):
    return cpu(daemon) / os.sysconf("SC_CLK_TCK")


def sleeps(daemon, threads=""):
    """How often the daemon's threads whose names begin so have slept so far.

    Only voluntary context switches count: the others depend on the load of the machine.
    """
    texts = [path.read_text() for path in Path(f"/proc/{daemon.child.pid}/task").glob("*/status")]
    texts = [text for text in texts if text.startswith(f"Name:\tpvrdmad{threads}")]
    assert texts
    return sum(int(re.search(r"\nvoluntary_ctxt_switches:\s*(\d+)", text)[1]) for text in texts)


def sample(daemon):
    """(CPU ticks, voluntary context switches) so far."""
    return cpu(daemon), sleeps(daemon)


def wait_quiet(read, seconds, what):
    """Until `read()` returns the same for that long: work from before may still end on a busy machine."""
    end = time.monotonic() + PATIENCE
    value, since = read(), time.monotonic()
    while time.monotonic() - since < seconds:
        assert time.monotonic() < end, f"not quiet for {seconds} s within {PATIENCE} s: {what}"
        time.sleep(0.1)
        now = read()
        if now != value:
            value, since = now, time.monotonic()


def assert_idle(daemon):
    """The daemon becomes idle: it uses no CPU and none of its threads wakes up."""
    wait_quiet(lambda: sample(daemon), QUIET, "CPU ticks, context switches")
