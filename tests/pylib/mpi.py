# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
"""Open MPI in VMs: the commands of docs/applications.md, as an ordinary user after a login, and the bytes that they moved."""

import json
import re
import shlex
import subprocess

import applications
from pvrdmactl import pvrdmactl
from steps import Step
from vmlab_run import ROOT

# A login has the limits of /etc/security, and so has ssh's. The counters of all nodes, before and after node 1's command.
SHELL = """
    as_login() { exec su user -c "$1"; }
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


def name_of(heading):
    return re.sub(r"[^a-z0-9]+", "-", heading.lower())


def documented(heading, seconds=240):
    """The example's only command must succeed."""
    command, = applications.example(heading).commands
    return run(name_of(heading), command.text, seconds)


def set_up(heading):
    """Below these headings all nodes run all commands."""
    return Step(name_of(heading),
                " &&\n".join(f"({command.shell()})" for command in applications.example(heading).commands))


def failing(name, text, seconds):
    """The command must fail, in time and not by timeout."""
    return run(name, f"timeout {seconds} {text}; status=$?; echo \"status $status\"; "
                     "[ $status != 0 ] && [ $status != 124 ]", 2 * seconds)


def documented_failure(heading, seconds=120):
    command, = applications.example(heading).commands
    return failing(name_of(heading), command.text, seconds)


# As Debian has it: an ordinary user may lock 8 MiB.
LIMIT = Step("limit", 'echo "* - memlock 8192" >/etc/security/limits.d/00-default.conf')
PREPARED = set_up("Preparing the VMs")
RAISED = set_up("Locked memory for MPI")
COMPLAINTS = Step("complaints", "! complaints")


def noted(name):
    """The objects in the daemon: a watcher is called for them. The kernels' own objects, those of QP1, are always there."""
    return Step(name, "[ $NODE != 1 ] || { raise now; await now.seen; }")


def nothing_left(name, watched=True):
    """Check that no guest has more objects than those; nor the daemon, if a watcher waits for it."""
    look = "[ $NODE != 1 ] || { raise now; await now.seen; }" if watched else ""
    return Step(name, f"""
        gone() {{ [ ! -e "/sys/class/infiniband/$RDMA_DEV" ] || rdma resource | grep -q "qp 1 cm_id 0 mr 0 ctx 0"; }}
        until_true 100 gone
        status=$?
        rdma resource; rdma resource show qp
        {look}
        exit $status""")


def watched(*steps):
    """For run_steps: the watchers of the daemon in these steps."""
    return {f"{step.name}.now": pvrdmactl("--json", "stats") for step in steps}


def objects(seen, step, what):
    """How many of them each adapter has in the daemon: {name: number}."""
    adapters = json.loads(seen[f"{step.name}.now"][1])["adapters"]
    return {adapter["name"]: adapter[what] for adapter in adapters}


OBJECTS = ("contexts", "pds", "mrs", "cqs", "qps", "srqs")


def openib_files():
    """The files that the document requires in $SHARE."""
    fetched = subprocess.run([ROOT / "scripts" / "fetch/openmpi"], stdout=subprocess.PIPE, text=True, check=True,
                             stdin=subprocess.DEVNULL)
    folders = (ROOT / "packaging" / "openmpi", f"{fetched.stdout.strip()}/openib")
    return [path for folder in folders for path in type(ROOT)(folder).iterdir()]


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
