# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
"""Open MPI over openib, as an ordinary user: every byte compared, and those bytes went through the device.

Two VMs with two processes each, one VM without an adapter; four VMs; VMs of two and of three hosts, with and without TLS.
"""

import re

import applications
import mpi
import pytest
from boots import APPS, APPS_PACKAGES, Boot, each_run, each_step, step_tests
from pvrdmactl import OBJECTS, check_daemon_is_as_before, noted, nothing_left, objects, stats_at_now
from steps import Step
from traffic import COMPLAINTS

pytestmark = pytest.mark.slow

CHECKED = "An MPI program with openib's defaults"
PROGRAMS = {heading: mpi.documented(heading, 180) for heading in (
    CHECKED, "VMware's parameters", "Connections by udcm", "NetPIPE")}
LONG_PROGRAMS = [step for heading, step in PROGRAMS.items() if heading != CHECKED]
BEFORE = noted("before")
QP_GONE = nothing_left("nothing-left")
WITHOUT = Step("adapter-gone", "[ $NODE != 2 ] || unload")
NO_ADAPTER = mpi.failing("node-without-adapter", f"{mpi.OPENIB} {mpi.RING}", 90)
NO_ADAPTER_LEFT = nothing_left("nothing-left-without-adapter")
ADAPTER_BACK = Step("adapter-back", "[ $NODE != 2 ] || load")


def around(*programs):
    return [BEFORE, mpi.PREPARED, mpi.RAISED, *programs, QP_GONE]


STEPS = [*around(PROGRAMS[CHECKED]), COMPLAINTS]
LONG = [*around(*LONG_PROGRAMS), WITHOUT, NO_ADAPTER, NO_ADAPTER_LEFT, COMPLAINTS, ADAPTER_BACK]
two_by_two = APPS.part(STEPS, stats_at_now(BEFORE, QP_GONE), mpi.files)
two_by_two_long = APPS.part(LONG, stats_at_now(BEFORE, QP_GONE, NO_ADAPTER_LEFT), mpi.files, long=True)

IN_FOUR = "An MPI program in four VMs"
COMMAND = applications.example(IN_FOUR).commands[0].text
VMWARES = re.findall(r"--mca btl_openib\S+ \S+", applications.example("VMware's parameters").commands[0].text)
FOUR_PROGRAMS = [mpi.documented(IN_FOUR),
                 *(mpi.run(name, COMMAND.replace("--mca btl ", f"{options} --mca btl ")) for name, options in (
                     ("four-by-udcm", "--mca btl_openib_cpc_include udcm"),
                     ("four-with-vmwares-parameters", " ".join(VMWARES))))]
FOUR = [*around(*FOUR_PROGRAMS), COMPLAINTS]
four_long = Boot("mpi-four", nodes=4, packages=APPS_PACKAGES).part(FOUR, stats_at_now(BEFORE, QP_GONE), mpi.files, long=True)


HOSTS = {}
for number, nodes in ((2, "node1:2,node2:2"), (3, "node1,node2,node3")):
    command = applications.example(CHECKED).commands[0].text.replace("node1:2,node2:2", nodes)
    HOSTS[number] = [mpi.PREPARED, mpi.RAISED, mpi.run(f"program-on-{number}-hosts", command, 180),
                     nothing_left("nothing-left", query=""), COMPLAINTS]


def of_hosts(number, pipe):
    boot = Boot(f"mpi-hosts-{number}-{pipe}", nodes=number, hosts=number, pipe=pipe, packages=APPS_PACKAGES)
    return boot.part(HOSTS[number], files=mpi.files, long=True)


tcp_2_long, tls_2_long, tcp_3_long, tls_3_long = (of_hosts(number, pipe) for number in (2, 3) for pipe in ("tcp", "tls"))
ON_HOSTS = {"tcp_2_long": HOSTS[2], "tls_2_long": HOSTS[2], "tcp_3_long": HOSTS[3], "tls_3_long": HOSTS[3]}

test_step, test_run_ended_well = step_tests(two_by_two=STEPS, two_by_two_long=LONG, four_long=FOUR, **ON_HOSTS)
EACH_PROGRAM = pytest.mark.parametrize("run, step", each_step(
    two_by_two=[PROGRAMS[CHECKED]], two_by_two_long=LONG_PROGRAMS, four_long=FOUR_PROGRAMS,
    **{run: steps[2:3] for run, steps in ON_HOSTS.items()}), indirect=["run"])
EACH_ON_HOSTS = pytest.mark.parametrize("run", each_run(*ON_HOSTS), indirect=True)
HEADINGS = ({step.name: heading for heading, step in PROGRAMS.items()} | {step.name: IN_FOUR for step in FOUR_PROGRAMS} |
            {steps[2].name: CHECKED for steps in HOSTS.values()})


@EACH_PROGRAM
def test_output_is_as_documented(run, step):
    """The output has no other lines. With three hosts each has one rank."""
    text = run.check(step)[0].text
    applications.check_output(HEADINGS[step], text.replace("3 ranks on 3 nodes", "4 ranks on 2 nodes"))
    mpi.check_silence(text)


@EACH_PROGRAM
def test_bytes_went_through_the_device(run, step):
    mpi.check_bytes(run.check(step), least=10 << 20)


@pytest.mark.parametrize("run", each_run("two_by_two", "two_by_two_long", "four_long"), indirect=True)
@pytest.mark.parametrize("what", OBJECTS)
def test_nothing_is_left_in_the_daemon(run, what):
    check_daemon_is_as_before(run, BEFORE, QP_GONE, what)


@pytest.mark.long
def test_node_without_adapter_is_named(two_by_two_long):
    text = two_by_two_long.check(NO_ADAPTER)[0].text
    assert re.search(r"unable to reach each other.*node2", text, re.DOTALL), text


@pytest.mark.long
@pytest.mark.parametrize("what", OBJECTS)
def test_node_without_adapter_leaves_nothing_in_the_daemon(two_by_two_long, what):
    two_by_two_long.check(NO_ADAPTER_LEFT)
    before = objects(two_by_two_long, BEFORE, what)
    assert objects(two_by_two_long, NO_ADAPTER_LEFT, what) == {**before, "node2": 0}


@EACH_ON_HOSTS
def test_bytes_went_between_all_hosts(run):
    """Each host has sent megabytes to each other host."""
    text = run.result.log("paths.txt")
    found = re.findall(r"^host (host\d+) +path tcp .* sent [\d.]+ ([KMG]iB) ", text, re.MULTILINE)
    assert len(found) == run.nodes * (run.nodes - 1) and {unit for _, unit in found} <= {"MiB", "GiB"}, text


@EACH_ON_HOSTS
def test_connections_are_protected(run):
    run.check_tls()
