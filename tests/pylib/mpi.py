# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
"""Open MPI in VMs: the commands of docs/applications.md, as an ordinary user after a login, and the bytes that they moved."""

import re
import shlex

import applications
from steps import Step, guest_programs, path_from
from vmlab_run import ROOT

# A login has the limits of /etc/security, and so has ssh's. The counters of all nodes, before and after node 1's command.
SHELL = """
    as_login() { exec su user -c "cd; $1"; }
    device_bytes() {
        [ -e "/sys/class/infiniband/$RDMA_DEV" ] || { echo 0; return; }
        sleep 0.1
        rdma statistic show link $RDMA_DEV/1 | grep -o ' tx_bytes [0-9]*' | cut -d ' ' -f 3
    }
    count() { echo "@$1 $(device_bytes) $(cat /sys/class/net/$NETDEV/statistics/tx_bytes)"; }
    # run COMMAND: on node 1
    run() {
        count before
        if [ $NODE = 1 ]; then (as_login "$1"); status=$?; raise over; else await over; status=0; fi
        count after
        return $status
    }
"""
OPENIB = "mpirun --host node1,node2 --mca btl openib,self"
RING = "$SHARE/pvr_mpi ring"


def run(name, text, seconds=240):
    return Step(name, f"{SHELL}\n run {shlex.quote(text)}", seconds)


def documented(heading, seconds=240):
    """The example's only command must succeed."""
    command, = applications.example(heading).commands
    return run(applications.name_of(heading), command.text, seconds)


def failing(name, text, seconds):
    """The command must fail, in time and not by timeout."""
    return run(name, f"timeout {seconds} {text}; status=$?; echo \"status $status\"; "
                     "[ $status != 0 ] && [ $status != 124 ]", 2 * seconds)


# As Debian has it: an ordinary user may lock 8 MiB.
LIMIT = Step("limit", 'echo "* - memlock 8192" >/etc/security/limits.d/00-default.conf')
# Below these headings all nodes run all commands.
PREPARED, RAISED = (Step(applications.name_of(heading), applications.script(heading))
                    for heading in ("Preparing the VMs", "Locked memory for MPI"))


def files():
    """Those that the document requires in $SHARE, and the programs."""
    folders = (ROOT / "packaging" / "openmpi", path_from("fetch/openmpi") / "openib")
    return [*guest_programs(), *(path for folder in folders for path in folder.iterdir())]


def _grown(outcomes, column):
    """The increase of the nodes' counters, in sum."""
    total = 0
    for outcome in outcomes:
        seen = {found[0]: int(found[column]) for found in
                re.findall(r"^@(\w+) (\d+) (\d+)$", outcome.text, re.MULTILINE)}
        total += seen["after"] - seen["before"]
    return total


def sent(text):
    """Bytes that the programs report as sent between the nodes, a lower bound."""
    ours = re.search(r"between nodes: (\d+) bytes", text)
    if ours:
        return int(ours[1])
    netpipe = re.findall(r"^ *\d+: +(\d+) bytes +(\d+) times -->", text, re.MULTILINE)
    return sum(2 * int(size) * int(times) for size, times in netpipe)


def check_bytes(outcomes, least):
    """The device has moved the bytes of the program; the NICs only a fraction, at its start and end."""
    wanted = sent(outcomes[0].text)
    assert wanted > least
    assert _grown(outcomes, 1) >= wanted
    assert _grown(outcomes, 2) < wanted / 10


def check_silence(text):
    """With the entry for the adapter, openib warns of nothing."""
    assert "WARNING" not in text and "-----" not in text, text
