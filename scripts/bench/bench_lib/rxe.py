# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
"""Two VMs: node 1 has an adapter with a wire and Soft-RoCE, in turns, and node 2 has Soft-RoCE."""

import re
import statistics
import subprocess

from bench_lib.scripts import SCRIPTS
from vmlab_lib import steps as vmlab_steps

# row -> nodes of perftest's server and of its client, which sends
ROWS = {"wire.rxe_write_bw_out.65536": (2, 1), "wire.rxe_write_bw_in.65536": (1, 2)}
PEER = "Soft-RoCE with Soft-RoCE"
VMLAB_OPTIONS = ["--driver", "pvrdma,rxe", "--quiet"]
ADDED = """
    if [ $NODE = 1 ]; then
        { modprobe rdma_rxe && rdma link add rxe0 type rxe netdev $NETDEV && until_true 100 has_ip_gid rxe0; } || exit
        RDMA_DEV=rxe0 GID_INDEX=$(gid_index_of rxe0)
    fi
"""
# While Soft-RoCE is absent, the VM's kernel does not handle the adapter's frames.
REMOVED = "[ $NODE != 1 ] || rdma link delete rxe0"


def _measured(messages):
    port = 18515
    return "\n".join(f'echo "@{name}"; perftest {port + i} {server} {client} ib_write_bw -m 1024 -s 65536 -n {messages} || exit'
                     for i, (name, (server, client)) in enumerate(ROWS.items()))


def steps(rounds, messages):
    return [vmlab_steps.Step(f"{kind}-{number}", f"{before}{_measured(messages)}\n{after}", 120) for number in range(rounds)
            for kind, before, after in (("ours", "", ""), ("peer", ADDED, REMOVED))]


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
    plan = steps(rounds, max(50, int(seconds * 300)))  # 20 MB/s and more
    vmlab_steps.put(share, plan)
    done = subprocess.run([SCRIPTS / "vmlab", *VMLAB_OPTIONS, "--timeout", str(vmlab_steps.seconds(plan)), "--share", share,
                           "--keep-logs", folder / "logs", "--run", vmlab_steps.RUN_STEPS],
                          capture_output=True, text=True, stdin=subprocess.DEVNULL, check=False)
    if done.returncode:
        raise RuntimeError(f"the VMs have failed:\n{done.stdout}{done.stderr}")
    found = {name: {kind: [read(vmlab_steps.outcome(share, client, f"{kind}-{number}").text, name) for number in range(rounds)]
                    for kind in ("ours", "peer")} for name, (_, client) in ROWS.items()}
    return [row(name, values["ours"], values["peer"]) for name, values in found.items()]
