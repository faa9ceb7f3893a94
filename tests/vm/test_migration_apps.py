# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
"""Applications go on while the VMs of both of their ends move among three hosts: NVMe over fabrics, Open MPI, rdma_cm, datagrams."""

import re
import shlex

import applications
import mpi
import pytest
import storage
from boots import APPS_PACKAGES
from steps import guest_programs

pytestmark = [pytest.mark.slow, pytest.mark.long]

BEGIN = """#!/bin/bash
set -e
. /vmlab/guest/steps.sh
. /vmlab/guest/moving.sh
barrier begin
"""
MOVE = """
barrier running
if [ $NODE = {node} ]; then
{moves}
fi
barrier moved 600
end_programs 400
"""


def to_and_fro(node, *pairs):
    """Moves of one VM to a host, or of two at once, which that node asks for."""
    lines = [f"move {pair[0]} {pair[1]}" if len(pair) == 2 else
             "move {} {} & a=$!; move {} {} & b=$!; wait $a; wait $b".format(*pair) for pair in pairs]
    return MOVE.format(node=node, moves="\n".join(lines))


MOVES = 20  # of one VM, in each test


def check_moves(result, moves):
    made = re.findall(r"@move node\d host\d (\d+) \d+$", result.stdout, re.MULTILINE)
    assert len(made) == moves, result.stdout
    print("downtimes", made)


def check_rounds(result, name, least):
    rounds, = re.findall(rf"@rounds {name} (\d+)$", result.stdout, re.MULTILINE)
    print(name, rounds)
    assert int(rounds) >= least


FIO = applications.example("fio").commands[0].text
STORAGE = BEGIN + f"""
[ $NODE != 1 ] || {storage.script("NVMe target")}
barrier target
if [ $NODE = 2 ]; then
    {storage.script("NVMe host")}
    again_and_again fio {FIO}
    until [ "$(awk '{{ print $7 }}' /sys/class/nvme/nvme0/nvme0c0n1/stat)" -gt 1000 ]; do sleep 0.1; done
fi
""" + to_and_fro(3, *[(1, 2), (2, 1), (1, 3), (2, 3), (1, 1, 2, 2), (1, 2, 2, 1), (1, 1), (2, 2)] * 2) + f"""
if [ $NODE = 2 ]; then
    dmesg | grep -i nvme | sed 's/^/@log /'
    {storage.script("NVMe disconnect")}
fi
barrier disconnected
[ $NODE != 1 ] || {storage.script("NVMe target's end")}
"""


def test_nvme_over_fabrics(vmlab):
    """Both the target and the initiator move; fio compares what it reads. No request times out, no queue connects again."""
    result = vmlab(STORAGE, "--migratable", hosts=3, nodes=3, packages=APPS_PACKAGES, memory="768M", timeout=900).check()
    check_moves(result, MOVES)
    check_rounds(result, "fio", 2)
    log = re.findall("@log .*", result.text(2))
    assert log and not [line for line in log if re.search("timeout|reconnect|error|fail", line, re.IGNORECASE)], log


PROGRAM = applications.example("An MPI program in four VMs").commands[0].text
MPI = BEGIN + f"""
{applications.script("Preparing the VMs")}
{applications.script("Locked memory for MPI")}
barrier prepared
if [ $NODE = 4 ]; then
    again_and_again mpi su user -c {shlex.quote("cd; " + PROGRAM)}
fi
""" + to_and_fro(4, *[(1, 2), (2, 1), (4, 3), (1, 3, 2, 2), (3, 1), (1, 1, 4, 1), (3, 3)] * 2, (2, 1), (2, 2))


def test_open_mpi_of_four_ranks(vmlab):
    """Each of its VMs moves, that of mpirun, too; pvr_mpi compares every byte."""
    vmlab.put(*mpi.files())
    # Two CPUs: with one, QEMU makes the guests' atomics of several steps.
    result = vmlab(MPI, "--migratable", hosts=3, nodes=4, smp=2, packages=APPS_PACKAGES, memory="768M", timeout=900).check()
    check_moves(result, MOVES)
    check_rounds(result, "mpi", 2)


CONNECTIONS = BEGIN + """
case $NODE in
1 | 3)
    rping -s -P >/dev/null 2>&1 & servers+=($!)
    until rdma resource show cm_id | grep -q "state LISTEN"; do sleep 0.1; done
    ;;
esac
barrier servers
case $NODE in
1) again_and_again from-node1 rping -c -a node3 -V -C 50 ;;
2) again_and_again to-node1 rping -c -a node1 -V -C 50 ;;
esac
stream 18801 2 -u
stream 18802 4 -u
""" + to_and_fro(4, *((1, host) for host in (2, 3, 1) * 3), *[(1, 2, 2, 1), (1, 1, 2, 2), (2, 3)] * 2, (2, 2))


def test_rdma_cm_and_datagrams(vmlab):
    """rping connects and disconnects through all moves. Datagrams may be lost in a move, none is wrong or comes twice."""
    vmlab.put(*(path for path in guest_programs() if path.name == "pvr_stream"))
    result = vmlab(CONNECTIONS, "--migratable", hosts=3, nodes=4, memory="512M", timeout=900).check()
    check_moves(result, MOVES)
    check_rounds(result, "from-node1", 5)
    check_rounds(result, "to-node1", 5)
    rows = re.findall(r"datagrams: (\d+) messages, (\d+) wrong, (\d+) lost, (\d+) duplicated", result.stdout)
    print("datagrams: messages, wrong, lost, duplicated", rows)
    assert len(rows) == 2 and all(int(row[0]) > 1000 and row[1] == row[3] == "0" for row in rows), rows
