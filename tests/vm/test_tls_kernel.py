# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
"""TLS records that the kernel makes: two VMs as hosts, each with a pvrdmad and a fake guest."""

import json
import os
import pathlib
import sys

import pytest
from bench_lib import verbs
from vmlab_run import ROOT, Vmlab

pytestmark = [pytest.mark.slow, pytest.mark.long]

BUILD = pathlib.Path(os.environ.get("PVRDMAD", ROOT / "build/host/pvrdmad")).parent
UNIT = "tests/unit/test_tls_kernel_real"
NODES = (1, 2)
# Each kernel has the module, but one cannot change keys.
KERNELS = {"6.12": "no", "7.2": "yes"}
SCRIPT = r"""#!/bin/bash
. /vmlab/guest/verbs.sh
[ $NODE = 2 ] || modprobe tls || exit
device=none
if [ $NODE = 1 ]; then
	PVRDMA_EXPECT_KTLS=$ktls ours test_tls_kernel_real || echo "unit-status $?"
	grep TlsTxSw /proc/net/tls_stat
fi
start_daemon --tls-psk-file $dir/key || exit
barrier started
until_path tcp begin || exit
pair 7900 hosts_verify --seconds 8 >$dir/verified || echo "verify fails: $?"
echo "verified $(cat $dir/verified)"
barrier verified
pair 7901 hosts_bench --what write_bw --size 1048576 --seconds 4 >$dir/ours && [ $NODE = 2 ] || echo "bandwidth $(cat $dir/ours)"
echo "peers $(ctl peers | tr -d '\n')"
grep -h TlsTxSw /proc/net/tls_stat
barrier over
stop_daemon
cat $dir/log*
"""


@pytest.fixture(scope="module", params=KERNELS)
def run(request, tmp_path_factory):
    """(whether the kernel makes records, {node: [line, ...]})."""
    expected = KERNELS[request.param]
    lab = Vmlab(tmp_path_factory.mktemp("ktls"))
    verbs.fill_share(lab.share, BUILD, (*verbs.PROGRAMS, UNIT))
    result = lab(SCRIPT.replace("$ktls", expected), driver="none", nodes=2, kernel=request.param, timeout=300).check()
    for node in NODES:
        sys.stdout.write(f"--- node {node}\n{result.text(node)}\n")
    return expected == "yes", result.nodes


def facts(run, node, word):
    lines = [line.removeprefix(f"{word} ") for line in run[1][node] if line.startswith(f"{word} ")]
    assert lines, f"no {word}: " + "\n".join(run[1][node])
    return json.loads(lines[-1])


def sessions(lines):
    """That the kernel has sent for, so far: one figure for each look."""
    return [int(line.split()[1]) for line in lines if line.startswith("TlsTxSw")]


def test_unit_tests_with_the_real_kernel(run):
    """Keys, nonces, long text and new keys, with OpenSSL at the other end of a TCP connection."""
    by_kernel, nodes = run
    text = "\n".join(nodes[1])
    assert "unit-status" not in text, text
    assert sessions(nodes[1])[0] >= (4 if by_kernel else 0)


def test_peers_say_how_records_are_made(run):
    by_kernel, _ = run
    found = {node: facts(run, node, "peers")["peers"][0]["tls"] for node in NODES}
    assert found[1].endswith("pre-shared key, sent by the kernel" if by_kernel else "pre-shared key"), found


def test_kernel_counts_the_sessions_of_pvrdmad(run):
    by_kernel, nodes = run
    before, after = sessions(nodes[1])
    assert after > before if by_kernel else after == before == 0, nodes[1]


@pytest.mark.parametrize("node", NODES)
def test_data(run, node):
    found = facts(run, node, "verified")
    assert found["steps"] > 50 and found["wrong"] == 0 and not found["failed"], found
    assert "daemon-status 0" in run[1][node]
