# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
"""`pvrdma-lab run`, as developers of RDMA programs use it in CI: faults."""

import subprocess

import pytest
from vmlab_run import Result

pytestmark = [pytest.mark.slow, pytest.mark.long]

PINGPONG = """
    barrier up
    if [ $NODE = 1 ]; then
        timeout 30 ibv_rc_pingpong -d $RDMA_DEV -g $GID_INDEX -n 10 || true
    else
        sleep 1
        ibv_rc_pingpong -d $RDMA_DEV -g $GID_INDEX -n 10 $PEER_IP 2>&1 || echo "client: $?"
    fi"""


def run(vmlab, script, *args, **options):
    """Run `vmlab run OPTIONS SCRIPT`."""
    options.setdefault("timeout", 180)
    command = vmlab.command(script, *args, **options)
    at = command.index("--run")
    command = [command[0], "run", *command[1:at], command[at + 1]]
    done = subprocess.run(command, capture_output=True, text=True, stdin=subprocess.DEVNULL, check=False)
    return Result(done.returncode, done.stdout, done.stderr, vmlab.logs, vmlab.share)


@pytest.mark.parametrize("hosts", [1, 2])
def test_faults_of_a_file_act_from_the_first_message(vmlab, tmp_path, hosts):
    """All messages of node 2 are lost. On two hosts the daemon of host 2 has the fault, for messages to host 1."""
    fault = tmp_path / "faults"
    fault.write_text("# of the client\nfrom=node2 to=node1 drop=100%\n")
    result = run(vmlab, PINGPONG, fault=fault, hosts=hosts).check()
    assert "Failed status transport retry counter exceeded (12)" in result.text(2)
    assert "client: 1" in result.text(2)
    assert f"with the faults of {fault}" in result.stderr
    assert "(kernel 6.1, driver pvrdma, virtio-net-pci, " in result.stderr
    assert ", KVM)" in result.stderr or ", TCG: " in result.stderr
