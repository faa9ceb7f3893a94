# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
"""Three VMs on a bridge: node 1 has an adapter with a wire, nodes 2 and 3 have Soft-RoCE. Node 2 talks to each of the others in turns."""

import re
import statistics
import subprocess

from bench_lib.scripts import SCRIPTS
from vmlab_lib import steps as vmlab_steps

# row -> whether node 2 is perftest's server; the client sends
ROWS = {"wire.rxe_write_bw_out.65536": True, "wire.rxe_write_bw_in.65536": False}
OTHERS = {"ours": 1, "peer": 3}
MARGIN = 1  # s, before and after what is counted
PEER = "Soft-RoCE with Soft-RoCE"
VMLAB_OPTIONS = ["--segment", "bridge", "--driver", "pvrdma,rxe,rxe", "--nodes", "3", "--quiet"]


def _nodes(name, other):
    """Of the server and of the client."""
    return (2, other) if ROWS[name] else (other, 2)


def _measured(other, seconds):
    """By duration: of a number of messages, perftest takes the time in CPU cycles, whose frequency it may not find in a busy VM."""
    port = 18515
    return "\n".join(f'echo "@{name}"; perftest {port + i} {server} {client} ib_write_bw -m 1024 -s 65536 -D {seconds + 2 * MARGIN} -f {MARGIN} || exit'
                     for i, (name, (server, client)) in enumerate((name, _nodes(name, other)) for name in ROWS))


def steps(rounds, seconds):
    return [vmlab_steps.Step(f"{kind}-{number}", _measured(other, seconds), 120) for number in range(rounds)
            for kind, other in OTHERS.items()]


def read(text, name):
    """Bytes per second of the row, from what the client's node printed."""
    part = re.search(rf"^@{re.escape(name)}\n(.*?)(?=^@|\Z)", text, re.MULTILINE | re.DOTALL)
    found = part and re.search(r"^ *65536 +\d+ +[\d.]+ +([\d.]+)", part[1], re.MULTILINE)
    if not found:
        raise RuntimeError(f"no bandwidth for {name} in:\n{text}")
    return float(found[1]) * 2 ** 20


def row(name, ours, peer):
    value, peer_value = statistics.median(ours), statistics.median(peer)
    return {"name": name, "value": value, "unit": "B/s", "peer": PEER, "peer_value": peer_value, "ratio": value / peer_value,
            "min": min(ours), "max": max(ours), "runs": len(ours)}


def measure(folder, rounds, seconds):
    """Boots the VMs, and returns a row for each of ROWS. RuntimeError says why there are none."""
    share = folder / "share"
    share.mkdir()
    plan = steps(rounds, seconds)
    vmlab_steps.put(share, plan)
    done = subprocess.run([SCRIPTS / "vmlab", *VMLAB_OPTIONS, "--timeout", str(vmlab_steps.seconds(plan)), "--share", share,
                           "--keep-logs", folder / "logs", "--run", vmlab_steps.RUN_STEPS],
                          capture_output=True, text=True, stdin=subprocess.DEVNULL, check=False)
    if done.returncode:
        raise RuntimeError(f"the VMs have failed:\n{done.stdout}{done.stderr}")
    found = {name: {kind: [_value(share, name, kind, number) for number in range(rounds)] for kind in OTHERS} for name in ROWS}
    return [row(name, values["ours"], values["peer"]) for name, values in found.items()]


def _value(share, name, kind, number):
    _, client = _nodes(name, OTHERS[kind])
    return read(vmlab_steps.outcome(share, client, f"{kind}-{number}").text, name)
