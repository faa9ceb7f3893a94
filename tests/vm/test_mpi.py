# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
"""Open MPI over openib in two and in four VMs, as an ordinary user; that its bytes went through the device; what goes wrong."""

import json
import re
import subprocess

import applications
import apps
import pytest
from conftest import ROOT
from steps import Step, guest_programs, ids, run_steps
from test_vanish import pvrdmactl

pytestmark = pytest.mark.long

NODES = 4
# A login has the limits of /etc/security, and so has ssh's. The counters of all nodes, before and after node 1's command.
MPI = """
    as_login() { exec su user -c "$1"; }
    device_bytes() { sleep 0.1; rdma statistic show link $RDMA_DEV/1 | grep -o ' tx_bytes [0-9]*' | cut -d ' ' -f 3; }
    count() { echo "@$1 $(device_bytes) $(cat /sys/class/net/$NETDEV/statistics/tx_bytes)"; }
    # run COMMAND: on node 1
    run() {
        count before
        if [ $NODE = 1 ]; then (as_login "$1"); status=$?; raise over; else await over; status=0; fi
        count after
        return $status
    }
"""


def run(name, text, seconds=240):
    return Step(name, f"{MPI}\n run '{text}'", seconds)


def documented(heading, seconds=240):
    command, = applications.example(heading).commands
    return run(applications._name(heading), command.text, seconds)


def set_up(heading):
    """Below these headings all nodes run all commands."""
    return Step(applications._name(heading),
                " &&\n".join(f"({command.shell()})" for command in applications.example(heading).commands))


def failing(name, text, seconds):
    """The command must fail, in time and not by timeout."""
    return run(name, f"timeout {seconds} {text}; status=$?; echo \"status $status\"; "
                     "[ $status != 0 ] && [ $status != 124 ]", 2 * seconds)


OPENIB = "mpirun --host node1,node2 --mca btl openib,self"
PROGRAM = "$SHARE/pvr_mpi ring"
# As Debian has it: an ordinary user may lock 8 MiB, and openib has no way to connect.
LIMIT = Step("limit", 'echo "* - memlock 8192" >/etc/security/limits.d/00-default.conf')
DEBIANS = failing("debians-openib", f"{OPENIB} {PROGRAM}", 120)
PREPARED = set_up("Preparing the VMs")
RAISED = set_up("Locked memory for MPI")
PROGRAMS = {heading: documented(heading) for heading in (
    "An MPI program with openib's defaults", "An MPI program in four VMs", "VMware's parameters")}
NETPIPE = documented("NetPIPE")

# Node 2 loses its adapter; then it has one again.
WITHOUT = Step("adapter-gone", "[ $NODE != 2 ] || unload")
NO_ADAPTER = failing("node-without-adapter", f"{OPENIB} {PROGRAM}", 120)
AGAIN = Step("adapter-back", "[ $NODE != 2 ] || load")
# Killed amid its messages: the others are ended, too, and soon.
KILLED = Step("process-killed", f"""{MPI}
    if [ $NODE = 1 ]; then
        (as_login '{OPENIB} {PROGRAM} $(yes ring | head -n 1000)')
        status=$?
        echo "status $status"
        [ $status != 0 ]
    elif [ $NODE = 2 ]; then
        until_true 1200 pgrep pvr_mpi && sleep 2 && pkill -KILL pvr_mpi
    fi""", 180)
AFTERWARDS = run("afterwards", f"{OPENIB} {PROGRAM}")
BEFORE = Step("before", "[ $NODE != 1 ] || { raise now; await now.seen; }")
LEFT = Step("nothing-left", """
    until_true 100 sh -c 'rdma resource | grep -q "qp 1 cm_id 0 mr 0 ctx 0"'
    status=$?
    rdma resource; rdma resource show qp
    [ $NODE != 1 ] || { raise now; await now.seen; }
    exit $status""")
COMPLAINTS = Step("complaints", "! complaints")

STEPS = [BEFORE, LIMIT, DEBIANS, PREPARED, RAISED, *PROGRAMS.values(), NETPIPE,
         WITHOUT, NO_ADAPTER, AGAIN, KILLED, AFTERWARDS, LEFT, COMPLAINTS]


def openib_files():
    """What the document wants in $SHARE."""
    fetched = subprocess.run([ROOT / "scripts" / "fetch-openmpi"], stdout=subprocess.PIPE, text=True, check=True,
                             stdin=subprocess.DEVNULL)
    folders = (ROOT / "packaging" / "openmpi", f"{fetched.stdout.strip()}/openib")
    return [path for folder in folders for path in type(ROOT)(folder).iterdir()]


@pytest.fixture(scope="module")
def mpi(tmp_path_factory):
    return run_steps(tmp_path_factory.mktemp("mpi"), STEPS, nodes=NODES, packages=apps.PACKAGES,
                     files=[*guest_programs(tmp_path_factory), *openib_files()],
                     watch={f"{step.name}.now": pvrdmactl("--json", "stats") for step in (BEFORE, LEFT)})


@pytest.mark.parametrize("step", ids(STEPS))
def test_mpi(mpi, step):
    mpi.check(step)


@pytest.mark.parametrize("heading", [*PROGRAMS, "NetPIPE"])
def test_output_is_as_documented(mpi, heading):
    applications.check_output(heading, mpi.check(applications._name(heading))[0].text)


@pytest.mark.parametrize("heading", [*PROGRAMS, "NetPIPE"])
def test_nothing_is_said_beside(mpi, heading):
    """With the entry for the adapter, openib warns of nothing."""
    text = mpi.check(applications._name(heading))[0].text
    assert "WARNING" not in text and "-----" not in text, text


def grown(outcomes, column):
    """What the nodes' counters have grown by, in sum."""
    total = 0
    for outcome in outcomes:
        seen = {found[0]: int(found[column]) for found in
                re.findall(r"^@(\w+) (\d+) (\d+)$", outcome.text, re.MULTILINE)}
        total += seen["after"] - seen["before"]
    return total


@pytest.mark.parametrize("heading", PROGRAMS)
def test_bytes_went_through_the_device(mpi, heading):
    """At least what the program says that it sent; the NICs had but a fraction of it, to start and end."""
    outcomes = mpi.check(applications._name(heading))
    sent = int(re.search(r"between nodes: (\d+) bytes", outcomes[0].text)[1])
    assert sent > 10 << 20
    assert grown(outcomes, 1) >= sent
    assert grown(outcomes, 2) < sent / 10


def test_debians_openib_says_why_it_cannot(mpi):
    assert "No OpenFabrics connection schemes" in mpi.check(DEBIANS.name)[0].text


def test_node_without_adapter_is_named(mpi):
    text = mpi.check(NO_ADAPTER.name)[0].text
    assert re.search(r"unable to reach each other.*node2", text, re.DOTALL), text


@pytest.mark.parametrize("what", ["contexts", "pds", "mrs", "cqs", "qps", "srqs"])
def test_nothing_is_left_in_the_daemon(mpi, what):
    """The kernels' own objects, those of QP1, were and are there."""
    mpi.check(LEFT.name)
    before, after = (json.loads(mpi.seen[f"{step.name}.now"][1])["adapters"] for step in (BEFORE, LEFT))
    assert len(before) == NODES and [adapter[what] for adapter in after] == [adapter[what] for adapter in before]


def test_run_ended_well(mpi):
    mpi.check_end()
