# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
"""Wireshark's view of programs in VMs, by pvrdmactl capture at both adapters."""

import signal
import subprocess

import pytest
from daemon_process import PATIENCE, PVRDMACTL, Daemon, wait_until
from steps import Step, run_steps

pytestmark = [pytest.mark.slow, pytest.mark.long]

NODES = (1, 2)
MESSAGES = 50
STEPS = [
    Step("rc", f"pingpong 18515 1 2 -c -s 5000 -n {MESSAGES}"),
    Step("ud", f"talk 18516 1 2 ibv_ud_pingpong -d $RDMA_DEV -g $GID_INDEX -s 1024 -n {MESSAGES}"),
    Step("rping", "talk 7174 1 2 rping_end"),
    Step("read", "perftest 18517 1 2 ib_read_lat -s 3000 -n 100"),
    Step("atomic", "perftest 18518 1 2 ib_atomic_lat -n 100"),
]
CONNECT_REQUEST, CONNECT_REPLY = "0x0010", "0x0013"


class OwnDaemon(Daemon):
    """With the MACs of vmlab's NICs."""

    def __init__(self, folder):
        self.folder, self.control, self.log_path = folder, folder / "control", folder / "pvrdmad.log"
        self.start([f"--adapter=name=node{node},socket={self.socket(node)},mac=52:54:00:77:00:{node:02x}" for node in NODES])

    def capture(self, node, path):
        child = subprocess.Popen([PVRDMACTL, "--control", self.control, "capture", "--payload", f"node{node}", path])
        wait_until(lambda: f"node{node}: capture of headers and payload begins" in self.log(), "capture")
        return child


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    """{node: the packets of its adapter}, after the programs."""
    folder = tmp_path_factory.mktemp("capture")
    (folder / "run").mkdir()
    daemon = OwnDaemon(folder)
    paths = {node: folder / f"node{node}.pcapng" for node in NODES}
    try:
        children = [daemon.capture(node, path) for node, path in paths.items()]
        run = run_steps(folder / "run", STEPS, pvrdmad_control=daemon.control,
                        adapter_socket=[daemon.socket(node) for node in NODES])
        for child in children:
            child.send_signal(signal.SIGINT)
            assert child.wait(PATIENCE) == 0
    finally:
        daemon.stop()
    for step in STEPS:
        run.check(step)
    run.check_end()
    return paths


def tshark(path, condition, *fields):
    """These fields of the packets that match."""
    # These two dissectors guess that some payload is theirs.
    guesses = [word for name in ("infiniband.eoib", "rpcordma") for word in ("--disable-protocol", name)]
    done = subprocess.run(["tshark", "-n", *guesses, "-r", path, "-Y", condition, "-T", "fields",
                           *(word for field in fields for word in ("-e", field))], stdout=subprocess.PIPE, text=True, check=True)
    return [line.split("\t") for line in done.stdout.splitlines()]


@pytest.mark.parametrize("node", NODES)
def test_no_packet_is_malformed(files, node):
    assert tshark(files[node], "_ws.malformed || !infiniband", "frame.number") == []


def test_both_adapters_have_the_packets_of_the_other(files):
    """A local path loses none, and each packet is at both ends."""
    fields = ["ip.src", "ip.dst", "ipv6.src", "ipv6.dst", "infiniband.bth.opcode", "infiniband.bth.destqp", "infiniband.bth.psn",
              "frame.len"]
    connected = "infiniband.bth.opcode < 32"
    first, second = (tshark(files[node], connected, *fields) for node in NODES)
    assert sorted(first) == sorted(second) and first


def test_messages_of_the_pingpong_are_cut_by_the_path_mtu(files):
    """ibv_rc_pingpong: 5,000 bytes are SEND FIRST, 3 MIDDLE, LAST with an MTU of 1,024."""
    opcodes = [int(opcode) for opcode, in tshark(files[1], "infiniband.bth.opcode < 3", "infiniband.bth.opcode")]
    assert [opcodes.count(opcode) for opcode in (0, 1, 2)] == [2 * MESSAGES, 6 * MESSAGES, 2 * MESSAGES]


def test_messages_of_rdma_cm_are_readable(files):
    found = {attribute for attribute, in tshark(files[1], "infiniband.mad", "infiniband.mad.attributeid")}
    assert {CONNECT_REQUEST, CONNECT_REPLY} <= found


def test_reads_and_atomics_have_responses(files):
    for request, responses in ((12, {13, 14, 15, 16}), (20, {18})):
        sent = tshark(files[1], f"infiniband.bth.opcode == {request}", "infiniband.bth.psn")
        answered = [opcode for opcode, in tshark(files[1], "infiniband.aeth", "infiniband.bth.opcode") if int(opcode) in responses]
        assert len(sent) >= 100 and len(answered) >= len(sent)
