# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
"""Faults of --fault FILE: lines of `pvrdmactl fault load`, for one pvrdmad or for that of each host."""

import re
import subprocess

from .errors import LabError

TIMEOUT = 10
_NODE = re.compile(r"node(\d+)(-\d+)?")
_HOST = re.compile(r"host(\d+)")


def _control(binaries, control, *words):
    """pvrdmactl fault WORDS. Raises LabError with its message."""
    argv = [str(binaries / "pvrdmactl"), "--control", str(control), "fault", *map(str, words)]
    try:
        done = subprocess.run(argv, capture_output=True, text=True, timeout=TIMEOUT, stdin=subprocess.DEVNULL, check=False)
    except (OSError, subprocess.TimeoutExpired) as err:
        raise LabError(f"pvrdmactl fault {words[0]} failed: {err}") from err
    if done.returncode != 0:
        raise LabError(done.stderr.strip().removeprefix("pvrdmactl: ") or f"pvrdmactl fault {words[0]} failed")


def load(options, run_dir, path):
    """Add the faults of the file to the daemons of the lab."""
    try:
        lines = path.read_text().splitlines()
        for number, (control, mine) in enumerate(zip(options.controls, distribute(lines, options.nodes, options.hosts)), 1):
            if not any(_words(line) for line in mine) and options.hosts > 1:
                continue
            copy = run_dir / f"faults{number}"
            copy.write_text("".join(f"{line}\n" for line in mine))
            _control(options.binaries, control, "load", copy)
    except OSError as err:
        raise LabError(f"--fault {path}: {err.strerror}") from err
    except UnicodeDecodeError as err:
        raise LabError(f"--fault {path}: is no text") from err
    except LabError as err:
        raise LabError(f"--fault {path}: {err}") from err


def clear(options):
    for control in options.controls:
        _control(options.binaries, control, "clear")


def _words(line):
    return line.partition("#")[0].split()


def distribute(lines, nodes, hosts):
    """The lines for each host. pvrdmad knows adapters of its own host, and of others the host only: a line acts at
    the host of its "from", or at each, and "to" a node of another host becomes "to" that host."""
    if hosts == 1:
        return [lines]
    return [[_for_host(line, host, number, nodes, hosts) for number, line in enumerate(lines, 1)]
            for host in range(1, hosts + 1)]


def _for_host(line, host, number, nodes, hosts):
    """The line as `host` has it; empty if it does not act there."""
    words = _words(line)
    for n, word in enumerate(words):
        key, _, name = word.partition("=")
        if key not in ("from", "to"):
            continue
        at = _host_of(name, number, nodes, hosts)
        if key == "from" and at != host or key == "to" and at == host and _HOST.fullmatch(name):
            return ""
        if key == "to" and at != host:
            _check_alone(name, at, number, nodes, hosts)
            words[n] = f"to=host{at}"
    return " ".join(words)


def _host_of(name, number, nodes, hosts):
    node, host = _NODE.fullmatch(name), _HOST.fullmatch(name)
    if node and 1 <= int(node[1]) <= nodes:
        return (int(node[1]) - 1) % hosts + 1
    if host and 1 <= int(host[1]) <= hosts:
        return int(host[1])
    raise LabError(f"line {number}: there is no '{name}', only node1 to node{nodes} and host1 to host{hosts}")


def _check_alone(name, host, number, nodes, hosts):
    if not _HOST.fullmatch(name) and len(range(host, nodes + 1, hosts)) > 1:
        raise LabError(f"line {number}: {name} shares host{host}, and a fault acts on all messages from another host: "
                       f"say to=host{host}")
