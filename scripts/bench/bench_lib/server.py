# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
"""Servers on a host of a bench, to which its other host connects."""

import contextlib
import re
import subprocess
import sys
import time

PORT = 7999
PATIENCE = 60  # seconds; an idle machine needs milliseconds
TABLES = [f"/proc/self/net/{name}" for name in ("tcp", "tcp6", "udp", "udp6")]


def _is_bound(hosts, number):
    """Whether a socket listens at PORT, or receives datagrams there."""
    return re.search(rf":{PORT:04X} 0+:0000 0[A7] ", hosts.run(number, "cat", *TABLES))


@contextlib.contextmanager
def running(hosts, number, command, stdout=subprocess.DEVNULL):
    """The child that runs the command on host `number`, as soon as it serves PORT; it is killed at the end."""
    # Some end with their input, which therefore does not.
    child = subprocess.Popen([*hosts.enter(number), *map(str, command)], stdin=subprocess.PIPE, stdout=stdout,
                             stderr=subprocess.DEVNULL, text=True)
    try:
        end = time.monotonic() + PATIENCE
        while not _is_bound(hosts, number):
            if child.poll() is not None or time.monotonic() > end:
                sys.exit(f"{command[0]} does not serve port {PORT} on host {number}, status {child.poll()}")
            time.sleep(0.05)
        yield child
    finally:
        child.kill()
        child.wait()
