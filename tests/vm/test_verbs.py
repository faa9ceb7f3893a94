# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
"""The verbs pipe: two VMs as hosts, each with Soft-RoCE as its RDMA NIC, a pvrdmad and a fake guest; TLS beside it.

TCP goes by another NIC of each VM, so it stays when the RDMA NIC's port is down.
"""

import dataclasses
import json
import os
import pathlib
import sys

import pytest
import pyverbs
from bench_lib import verbs
from vmlab_run import ROOT, Vmlab

BUILD = pathlib.Path(os.environ.get("PVRDMAD", ROOT / "build/host/pvrdmad")).parent
NODES = (1, 2)
VERBS = {"path": "verbs", "reason": "both hosts have an RDMA NIC"}

BEGIN = r"""#!/bin/bash
. /vmlab/guest/verbs.sh
make_nic || exit

# With keys and without --rdma-unencrypted, NICs are not used.
start_daemon --tls-psk-file $dir/key || exit
barrier silent
until_path tcp silent || exit
sleep 2
echo "silent {$(path)}"
barrier seen
stop_daemon
barrier restart

start_daemon --tls-psk-file $dir/key --rdma-unencrypted || exit
barrier started
until_path verbs begin || exit
pair 7900 hosts_verify --linear --seconds 4 >$dir/quiet || echo "verify fails: $?"
echo "quiet $(cat $dir/quiet)"
echo "peers $(ctl peers | tr -d '\n')"

# Both nodes notice that a port is down.
pair 7900 hosts_verify --linear --seconds 120 --until $dir/over >$dir/faulty 2>$dir/faulty.err &
load=$!
until_true 200 grep -q begun $dir/faulty.err
refused() { cat $dir/log* | grep -c refused:; }
before=$(refused) # on a busy machine a handshake of the beginning may take too long
for round in $rounds; do
	barrier round$round
	[ $round != $NODE ] || ip link set $nic down
	until_path tcp down$round || exit
	barrier down$round
	sleep 1
	echo "still-down$round {$(path)}"
	barrier shown$round
	[ $round != $NODE ] || ip link set $nic up
	until_path verbs up$round || exit
	sleep 1
done
echo "refused $(($(refused) - before))"
"""
# The key is replaced. Removal of the old key ends its connections, also the one that guards the queue pair.
REKEY = r"""
old=$(cat $dir/key) new=$(printf '%064x' 4712) step=0
for keys in "$old $new" "$new $old" "$new"; do
	# shellcheck disable=SC2086 # two lines
	printf '%s\n' $keys >$dir/key
	for turn in 1 2; do
		barrier "rekey$((++step))"
		[ $turn != $NODE ] || echo "rekey$step $(ctl reload | tr -d '\n')"
	done
done
[ $NODE = 2 ] || until_true 100 grep -q 'by the RDMA NIC has ended: .*no longer valid' $dir/log2 || exit
barrier rekeyed
until_path verbs rekeyed || exit
"""
END = r"""
kill -0 $load && echo "under-load yes"
barrier loaded
: >$dir/over
wait $load
echo "faulty-status $?"
echo "faulty $(cat $dir/faulty)"
cat $dir/faulty.err
echo "paths $(ctl paths | tr -d '\n')"
"""
STOP = r"""
barrier over
stop_daemon
cat $dir/log*
"""
BANDWIDTHS = r"""
bandwidths 1 || exit
echo "moved $(ctl paths | tr -d '\n')"
"""
OTHER_DAEMONS = r"""
# A hostile peer: hostile.py has the text of HOSTILE below.
barrier ended
if [ $NODE = 1 ]; then
	start_daemon --insecure || exit
	PYTHONPATH=$SHARE python3 "$SHARE/hostile.py"
	echo "hostile-status $?"
	stop_daemon
fi

# Without keys and without --rdma-device: the NIC with the address of the TCP connection is used.
barrier hostile
MY_IP=10.78.0.$NODE PEER_IP=10.78.0.$other device=auto start_daemon --insecure || exit
barrier auto
until_path verbs auto || exit
# Node 2 reads the exposed payload of node 1 into scattered pages.
[ $NODE = 2 ] || linear=--linear
pair 7902 hosts_verify $linear --seconds 1 >$dir/auto || echo "verify fails: $?"
echo "auto $(cat $dir/auto)"
measure scattered $linear || exit
echo "peers-auto $(ctl peers | tr -d '\n')"
barrier auto-over
stop_daemon

# Node 2 exposes nothing, so node 1 exposes nothing either.
barrier all-over
[ $NODE = 1 ] || zerocopy="--rdma-zerocopy off"
start_daemon --insecure $zerocopy || exit
barrier copied
until_path verbs copied || exit
pair 7903 hosts_verify --linear --seconds 1 >$dir/copied || echo "verify fails: $?"
echo "copied $(cat $dir/copied)"
measure copied --linear || exit
echo "peers-copied $(ctl peers | tr -d '\n')"
barrier copied-over
stop_daemon
"""


@dataclasses.dataclass(frozen=True)
class Kind:
    """rounds: nodes whose port goes down in turn. daemons: how many each node starts."""

    script: str
    rounds: tuple
    daemons: dict

    def text(self):
        return self.script.replace("$rounds", " ".join(map(str, self.rounds))) + "exit 0\n"


SHORT = Kind(BEGIN + END + STOP, rounds=(1,), daemons={1: 2, 2: 2})
FULL = Kind(BEGIN + REKEY + END + BANDWIDTHS + STOP + OTHER_DAEMONS, rounds=(1, 2), daemons={1: 5, 2: 4})

# Queue pairs without a peer: the daemon tries to connect each for a while, and then pauses for longer.
HOSTILE = r"""
import json, os, struct, time
import pipe_peer as p

HERE = os.environ["MY_IP"]
RDMA, VERBS = 1, 2

def queue_pair(*ip, **fields):
    values = {"qpn": 17, "psn": 1, "mtu": 3, "buffers": 16, "size": 65536} | fields
    gid = bytes(10) + b"\xff\xff" + bytes(ip)
    return p.frame(p.VERBS_QP, struct.pack("<16sIIHBBIII", gid, values["qpn"], values["psn"], 0, values["mtu"], 0,
                                             values["buffers"], values["size"], 0))

def try_one(name, *ip):
    begin = time.monotonic()
    with p.Conn.dial(HERE) as conn:
        conn.send(p.hello(name, features=RDMA | VERBS) + queue_pair(*ip))
        reason, text = conn.close_frame()
    return {"reason": reason, "text": text, "seconds": time.monotonic() - begin}

def is_well():
    with p.Conn.dial(HERE) as conn:
        conn.greet("honest", features=RDMA)
        conn.send(p.frame(p.PING, b"12345678"))
        assert conn.frame() == (p.PONG, b"12345678")

tries = [try_one("rogue", 10, 78, 0, 99) for _ in range(20)]
print("nowhere", json.dumps(tries))
is_well()
"""


def run_in_vms(kind, folder):
    lab = Vmlab(folder)
    verbs.fill_share(lab.share, BUILD)
    lab.put(ROOT / "tests/daemon/pipe_peer.py")
    (lab.share / "hostile.py").write_text(HOSTILE)
    result = lab(kind.text(), *verbs.VMLAB_OPTIONS, timeout=240, packages=pyverbs.PACKAGES).check()
    for node in NODES:
        sys.stdout.write(f"--- node {node}\n{result.text(node)}\n")
    return Run(kind, result.nodes)


@dataclasses.dataclass(frozen=True)
class Run:
    """lines: all that the VMs print, {node: [line, ...]}."""

    kind: Kind
    lines: dict


@pytest.fixture(scope="module")
def short(tmp_path_factory):
    return run_in_vms(SHORT, tmp_path_factory.mktemp("verbs"))


@pytest.fixture(scope="module")
def full(tmp_path_factory):
    return run_in_vms(FULL, tmp_path_factory.mktemp("verbs-long"))


@pytest.fixture(scope="module", params=["short", pytest.param("full", marks=pytest.mark.long)])
def run(request):
    return request.getfixturevalue(request.param)


@pytest.fixture(params=NODES)
def node(request):
    return request.param


def printed(run, node, word):
    lines = [line.removeprefix(f"{word} ") for line in run.lines[node] if line.startswith(f"{word} ")]
    assert lines, f"no {word}: " + "\n".join(run.lines[node])
    return lines[-1]


def facts(run, node, word):
    return json.loads(printed(run, node, word))


def peer(run, node, word="peers"):
    """The only one."""
    return facts(run, node, word)["peers"][0]


def assert_right(found, least=1):
    """By hosts_verify: some data was checked, and all of it is as it was sent."""
    assert found["steps"] >= least and found["wrong"] == 0, found
    assert not found["failed"], found


def test_tls_is_not_evaded(run, node):
    path = facts(run, node, "silent")
    assert path == {"path": "tcp", "reason": "TLS is on, RDMA NICs do not encrypt, and --rdma-unencrypted was not given"}


def test_verbs_is_chosen(run, node):
    assert facts(run, node, "path-begin") == VERBS
    found = peer(run, node)
    assert found["verbs"] == "rxe0" and found["verbs_in"] == 1 and found["verbs_error"] == ""
    assert found["tls"].startswith("TLSv1.3")


def test_data(run, node):
    assert_right(facts(run, node, "quiet"), least=51)


def test_port_down_and_up_under_load(run, node):
    assert printed(run, node, "under-load") == "yes"
    for number in run.kind.rounds:
        down = facts(run, node, f"path-down{number}")
        assert down["path"] == "tcp" and down["reason"] not in ("", VERBS["reason"], "not connected yet"), down
        assert facts(run, node, f"path-up{number}") == VERBS
    assert printed(run, node, "faulty-status") == "0"
    assert_right(facts(run, node, "faulty"), least=51)


def test_reason_names_the_port(run):
    for node in run.kind.rounds:
        path = facts(run, node, f"still-down{node}")
        assert path == {"path": "tcp", "reason": "the port of this host's RDMA NIC is down"}
        path = facts(run, 3 - node, f"still-down{node}")
        assert path["path"] == "tcp" and path["reason"] != VERBS["reason"], path


@pytest.mark.long
def test_key_is_replaced_under_load(full, node):
    """The NIC's queue pair ends with the key of its connection, and is created again."""
    replies = [facts(full, node, f"rekey{step}") for step in range(node, 7, 2)]
    assert all(reply["ok"] and reply["read"] for reply in replies), replies
    assert [[row["host"] for row in reply["disconnected"]] for reply in replies[:2]] == [[], []]
    assert replies[2]["disconnected"] or node == 2, replies
    assert facts(full, node, "path-rekeyed") == VERBS


def test_nothing_is_refused(run, node):
    """A host without a working NIC does not try to connect a queue pair."""
    assert printed(run, node, "refused") == "0"


def test_daemons_end_well(run, node):
    ends = [line for line in run.lines[node] if line.startswith("daemon-status ")]
    assert ends == ["daemon-status 0"] * run.kind.daemons[node]


@pytest.mark.long
def test_auto_goes_by_addresses(full, node):
    assert facts(full, node, "path-auto") == VERBS
    assert_right(facts(full, node, "auto"))


@pytest.mark.long
def test_scattered_pages(full):
    """Only the memory of one guest is scattered: its payload is copied. The payload of the other guest is exposed, and
    read through a buffer."""
    one, other = (peer(full, node, "peers-auto") for node in NODES)
    assert one["zerocopy_tx_bytes"] > 4 << 20 and one["zerocopy_rx_bytes"] == 0, one
    assert 4 << 20 < other["zerocopy_rx_bytes"] <= one["zerocopy_tx_bytes"] and other["zerocopy_tx_bytes"] == 0, (one, other)


@pytest.mark.long
def test_queue_pairs_that_lead_nowhere(full):
    """Each attempt costs the daemon's first thread some time; the peer must wait ten times as long for the next attempt."""
    tries = facts(full, 1, "nowhere")
    assert all(one["reason"] == 6 for one in tries), tries
    assert "cannot connect a queue pair" in tries[0]["text"], tries[0]
    assert "took long" in tries[1]["text"], tries[1]
    took = [one for one in tries if "cannot connect" in one["text"]]
    assert len(took) < 5, tries
    assert printed(full, 1, "hostile-status") == "0"


@pytest.mark.long
def test_payload_is_exposed(full, node):
    """Both nodes expose payload in the data-integrity program; node 1 exposes most payload of the benchmark to node 2."""
    found = peer(full, node)
    assert found["zerocopy"] is True and found["zerocopy_error"] == ""
    assert found["zerocopy_tx_bytes"] > 0 and found["zerocopy_rx_bytes"] > 0, found
    before, after = (facts(full, node, word)["hosts"][0] for word in ("paths", "moved"))
    exposed, moved = (after[key] - before[key] for key in
                   (("zerocopy_tx_bytes", "tx_bytes") if node == 1 else ("zerocopy_rx_bytes", "rx_bytes")))
    assert after["zerocopy"] is True and moved > 4 << 20 and exposed > moved / 2, (before, after)


@pytest.mark.long
def test_payload_is_copied_if_one_host_exposes_nothing(full, node):
    assert facts(full, node, "path-copied") == VERBS
    assert_right(facts(full, node, "copied"))
    found = peer(full, node, "peers-copied")
    assert found["verbs"] == "rxe0" and found["zerocopy"] is False
    why = {1: "the other host does not expose memory to NICs", 2: "--rdma-zerocopy is off"}
    assert found["zerocopy_error"] == why[node]
    assert found["zerocopy_tx_bytes"] == found["zerocopy_rx_bytes"] == 0
    assert found["tx_bytes"] + found["rx_bytes"] > 8 << 20


@pytest.mark.long
def test_bandwidth(full, capsys):
    """For the record: bench/hosts has the row, and takes more rounds."""
    row = verbs.row(*verbs.bandwidths(full.lines[1]))
    scattered, copied = (facts(full, 1, word)["value"] for word in ("@scattered", "@copied"))
    with capsys.disabled():
        print(f"\nWRITE of 1 MiB over verbs: {row['value'] / 1e6:.1f} MB/s, ib_write_bw over the same devices: "
              f"{row['peer_value'] / 1e6:.1f} MB/s, {row['ratio']:.2f} x; to scattered pages {scattered / 1e6:.1f} MB/s, "
              f"with copies at both ends {copied / 1e6:.1f} MB/s ", end="")
    assert row["ratio"] > 0.3
