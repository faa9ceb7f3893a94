# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
"""Two VMs that are hosts, whose RDMA NICs are Soft-RoCE: see scripts/guest/verbs.sh, which runs in them."""

import json
import re
import shutil
import statistics
import subprocess

PROGRAMS = ("pvrdmad", "pvrdmactl", "tests/hosts/hosts_verify", "tests/hosts/hosts_bench")
# A VM has its own libc, and its own libibverbs that fits its drivers.
OF_THE_VM = re.compile(r"/(ld-|libc\.|libm\.|libdl\.|libpthread\.|librt\.|libresolv\.|libibverbs|libnl-)")
VMLAB_OPTIONS = ["--driver", "none", "--nodes", "2", "--smp", "1"]
ROW = "hosts.verbs_write_bw.1048576"
BENCH = """#!/bin/bash
. /vmlab/guest/verbs.sh
make_nic && start_daemon --insecure || exit
barrier started
until_path verbs begin && bandwidths {rounds} && stop_daemon
"""


def _libraries(program):
    text = subprocess.run(["ldd", program], capture_output=True, text=True, check=True, stdin=subprocess.DEVNULL).stdout
    return {word for word in text.split() if word.startswith("/") and not OF_THE_VM.search(word)}


def fill_share(share, build, programs=PROGRAMS):
    """The files that a host needs, from the build folder."""
    (share / "lib").mkdir()
    for name in programs:
        shutil.copy(build / name, share)
        for library in _libraries(build / name):
            shutil.copy(library, share / "lib")


def bandwidths(lines):
    """Of what node 1 has said: bytes per second of ours, and of ib_write_bw."""
    ours = [json.loads(line[6:])["value"] for line in lines if line.startswith("@ours ")]
    raw = [float(line[5:]) * 2 ** 20 for line in lines if line.startswith("@raw ")]
    return ours, raw


def row(ours, raw):
    value, peer_value = statistics.median(ours), statistics.median(raw)
    return {"name": ROW, "value": value, "unit": "B/s", "peer": "ib_write_bw", "peer_value": peer_value,
            "ratio": value / peer_value, "min": min(ours), "max": max(ours), "runs": len(ours)}


def measure(root, build, folder, rounds):
    """Boots the VMs. RuntimeError says why there is no row."""
    share = folder / "share"
    share.mkdir()
    fill_share(share, build)
    script = folder / "script"
    script.write_text(BENCH.format(rounds=rounds))
    script.chmod(0o755)
    done = subprocess.run([root / "scripts" / "vmlab", *VMLAB_OPTIONS, "--quiet", "--timeout", str(90 + 40 * rounds),
                           "--share", share, "--keep-logs", folder / "logs", "--run", script],
                          capture_output=True, text=True, stdin=subprocess.DEVNULL, check=False)
    lines = [line.removeprefix("node1| ") for line in done.stdout.splitlines() if line.startswith("node1| ")]
    ours, raw = bandwidths(lines)
    if done.returncode or len(ours) != rounds or len(raw) != rounds:
        raise RuntimeError(f"the VMs have failed:\n{done.stdout}{done.stderr}")
    return row(ours, raw)
