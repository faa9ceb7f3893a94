# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
"""Open MPI between VMs of two and of three hosts, by TCP with and without TLS: every byte compared."""

import re

import applications
import apps
import mpi
import pytest
from steps import guest_programs, ids, run_steps

pytestmark = pytest.mark.long

HEADING = "An MPI program with openib's defaults"
COMMAND = applications.example(HEADING).commands[0].text
QP_GONE = mpi.nothing_left("nothing-left", watched=False)


def program(hosts):
    """Two processes per VM where two hosts have one each, else one."""
    names = ",".join(f"node{number}{':2' if hosts == 2 else ''}" for number in range(1, hosts + 1))
    return mpi.run("program", COMMAND.replace("node1:2,node2:2", names), 180)


STEPS = {hosts: [mpi.PREPARED, mpi.RAISED, program(hosts), QP_GONE, mpi.COMPLAINTS] for hosts in (2, 3)}
NAMES = ids(STEPS[2])


@pytest.fixture(scope="module", params=[(2, "tls"), (2, "tcp"), (3, "tcp"), (3, "tls")],
                ids=lambda param: f"{param[0]}-{param[1]}")
def run(tmp_path_factory, request):
    hosts, pipe = request.param
    run = run_steps(tmp_path_factory.mktemp(f"mpi-hosts-{hosts}-{pipe}"), STEPS[hosts], nodes=hosts, hosts=hosts, pipe=pipe,
                    packages=apps.PACKAGES, files=[*guest_programs(), *mpi.openib_files()])
    run.hosts, run.pipe = hosts, pipe
    return run


@pytest.mark.parametrize("step", NAMES)
def test_mpi(run, step):
    run.check(step)


def test_output_is_as_documented(run):
    text = run.check("program")[0].text
    applications.check_output(HEADING, text.replace("3 ranks on 3 nodes", "4 ranks on 2 nodes"))
    mpi.check_silence(text)


def test_bytes_went_through_the_device(run):
    mpi.check_bytes(run.check("program"), least=10 << 20)


def test_bytes_went_between_all_hosts(run):
    """Each host has sent megabytes to each other host."""
    text = run.result.log("paths.txt")
    found = re.findall(r"^host (host\d) +path tcp .* sent [\d.]+ ([KMG]iB) ", text, re.MULTILINE)
    assert len(found) == run.hosts * (run.hosts - 1) and {unit for _, unit in found} <= {"MiB", "GiB"}, text


def test_connections_are_protected(run):
    log = run.result.log("pvrdmad1.log")
    assert re.search(r"connected to host host2 .*TLS: " + ("TLSv1.3" if run.pipe == "tls" else "off"), log), log


def test_run_ended_well(run):
    run.check_end()
