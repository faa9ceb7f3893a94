# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
"""The wire: an adapter and Soft-RoCE, each as server and as client. Soft-RoCE has no pvrdmad.

Both VMs have the same kernel: Linux 6.1 on a bridge, and for the long tests each of 6.1, 6.12 and 7.2 on a segment of sockets.
"""

import re

import pytest
from applications import meet
from boots import RXE, Boot, each_run, step_tests
from pvrdmactl import at_now, noted, reply
from steps import Step, guest_programs
from traffic import COMPLAINTS, user_meeting

pytestmark = pytest.mark.slow

# Port, node of the server, node of the client. Node 1 has the adapter.
BOTH = ("18515 1 2", "18516 2 1")
PROGRAM = "{program} -d $RDMA_DEV -g $GID_INDEX {args}"


def _pingpong(name, kind, args):
    command = PROGRAM.format(program=f"ibv_{kind}_pingpong", args=args)
    return Step(name, " && ".join(f"talk {way} {command}" for way in BOTH))


def _perftest(program, args, name=None, seconds=60):
    return Step(name or program, " && ".join(f"perftest {way} {program} -u 19 {args}" for way in BOTH), seconds)


def _both(name, port, server, client, seconds=60, how="meet"):
    """Steps with the server on each node. The client's command has {server}, the address of the server's node."""
    return [user_meeting(f"{name}-server-on-node{node}", port, server, client.format(server=f"node{node}"), seconds=seconds,
                         how=how, nodes=f"{node} {3 - node}") for node in (1, 2)]


def _mckey(member):
    """The member of the group receives 20 datagrams of the other node."""
    return Step(f"mckey-member-on-node{member}", f"""
        group="mckey -m 239.77.0.{member} -b $MY_IP -C 20 -S 1000"
        if [ $NODE != {member} ]; then await joined; $group -s; exit; fi
        stdbuf -oL $group >/tmp/mckey & pid=$!
        until_true 100 grep joined /tmp/mckey && raise joined && wait $pid""")


# Datagrams that reach the kernel of node 1 at a port without a socket.
NO_PORTS = Step("no-ports", "[ $NODE != 1 ] || awk '/^Udp: [0-9]/ { print \"IPv4\", $3 } /^Udp6NoPorts/ { print \"IPv6\", $2 }'"
                            " /proc/net/snmp /proc/net/snmp6")
STEPS = [
    _pingpong("ud", "ud", "-s 1024 -n 50"),
    _pingpong("uc", "uc", "-m 1024 -s 5000 -n 50"),
    _pingpong("rc", "rc", "-m 1024 -s 4096 -n 100 -c"),
    _pingpong("rc-64k", "rc", "-m 1024 -s 65536 -n 50 -c"),
    _pingpong("rc-events", "rc", "-m 1024 -s 4096 -n 100 -c -e"),
    _pingpong("rc-mtu-256", "rc", "-m 256 -s 9000 -n 50 -c"),
    _perftest("ib_send_bw", "-m 1024 -s 4096 -n 200"),
    _perftest("ib_write_bw", "-m 1024 -s 65536 -n 100"),
    _perftest("ib_read_bw", "-m 1024 -s 65536 -n 50"),
    _perftest("ib_atomic_bw", "-m 1024 -A FETCH_AND_ADD -n 100"),
    meet("rping", 7174),
    meet("ucmatose", 7471),
    *map(_mckey, (1, 2)),
]

SRQ = _pingpong("srq", "srq", "-m 1024 -q 4 -n 100")
# The server owns the memory windows. Soft-RoCE does not check their bounds, see RXE_ALONE.
VERIFY = Step("verify", "talk 18600 1 2 $SHARE/pvr_verify --seed 1 --iterations 500 &&"
              " talk 18601 2 1 $SHARE/pvr_verify --seed 2 --iterations 500 --skip-windows", 600)
RDMA_CM = [
    *_both("rping", 7174, "rping -s -V -C 100", "rping -c -a {server} -V -C 100"),
    *_both("rping-by-ipv6", 7174, "rping -s -a ::0 -V -C 100", "rping -c -a {server}-6 -V -C 100"),
    *_both("ucmatose", 7471, "ucmatose -c 10 -C 100 -S 4096", "ucmatose -s {server} -c 10 -C 100 -S 4096"),
    *_both("udaddy", 7174, "udaddy -c 10 -C 20 -S 1000", "udaddy -s {server} -c 10 -C 20 -S 1000"),
    *_both("cmtime", 7471, "cmtime -c 50", "cmtime -s {server} -c 50", 120, "serve"),
]
COUNTED = noted("counted")
PROGRAMS = [SRQ, VERIFY, *RDMA_CM, *STEPS[:6], *map(_mckey, (1, 2)), NO_PORTS, COUNTED, COMPLAINTS]
# The fault is Soft-RoCE's own: it is there without an adapter.
RXE_ALONE = Step("verify-rxe-with-rxe", "talk 18602 1 2 $SHARE/pvr_verify --seed 3 --iterations 10; true", 300)

# Also by IPv6.
ON_A_BRIDGE = [*STEPS, *RDMA_CM[2:4], NO_PORTS, COUNTED, COMPLAINTS]

bridge = Boot("rxe-bridge-", driver="pvrdma,rxe", segment="bridge").part(ON_A_BRIDGE, at_now([COUNTED], "--json", "paths"))
rxe_6_1_long, rxe_6_12_long, rxe_7_2_long = (
    boot.part(PROGRAMS, at_now([COUNTED], "--json", "paths"), guest_programs, long=True) for boot in RXE.values())
alone_6_1_long, alone_6_12_long, alone_7_2_long = (
    Boot(f"rxe-alone-{kernel}-", driver="rxe", kernel=kernel).part([RXE_ALONE], files=guest_programs, long=True) for kernel in RXE)
MIXED = ("rxe_6_1_long", "rxe_6_12_long", "rxe_7_2_long")
ALONE = ("alone_6_1_long", "alone_6_12_long", "alone_7_2_long")
test_step, test_run_ended_well = step_tests(bridge=ON_A_BRIDGE, **dict.fromkeys(MIXED, PROGRAMS))
EACH_KERNEL = pytest.mark.parametrize("run", each_run(*MIXED), indirect=True)


@pytest.mark.long
@EACH_KERNEL
def test_all_bytes_are_right(run):
    for outcome in run.check(VERIFY):
        found = re.findall(r"^verify: \d+ operations, \d+ bytes, 0 errors$", outcome.text, re.MULTILINE)
        assert len(found) == 2, outcome.tail()


def _datagrams_without_a_port(run):
    return {family: int(count) for family, count in re.findall(r"^(IPv.) (\d+)$", run.check(NO_PORTS)[0].text, re.MULTILINE)}


@pytest.mark.long
def test_the_kernel_of_a_vm_with_an_adapter_sees_roce_on_a_segment_of_sockets(rxe_6_1_long):
    assert _datagrams_without_a_port(rxe_6_1_long)["IPv4"] > 1000


def test_the_kernel_of_a_vm_with_an_adapter_sees_no_roce_on_a_bridge(bridge):
    assert _datagrams_without_a_port(bridge) == {"IPv4": 0, "IPv6": 0}


@pytest.mark.parametrize("run", [*each_run("bridge"), *each_run(*MIXED)], indirect=True)
def test_the_path_is_the_wire_and_has_a_reason(run):
    run.check(COUNTED)
    # The guest's kernel talks to itself by the local path.
    paths = {path["to"]: path for path in reply(run, COUNTED)["paths"] if path["to"] != path["from"]}
    assert {path["path"] for path in paths.values()} == {"wire"}
    assert {path["reason"] for path in paths.values()} == {"no adapter here and no other pvrdmad has this address"}
    # By IPv4 and IPv6, and the group that the other node has joined.
    assert {"10.77.0.2", "fd77::2", "239.77.0.2"} <= set(paths), paths
    assert paths["10.77.0.2"]["bytes"] > 1 << 20


@pytest.mark.long
@pytest.mark.parametrize("run", each_run(*ALONE), indirect=True)
def test_soft_roce_does_not_check_bounds_of_windows(run):
    """Once a kernel does, test_all_bytes_are_right can have them in both directions."""
    texts = "\n".join(outcome.text for outcome in run[RXE_ALONE])
    assert re.search(r"verify: windows of type 1 .*write from a byte before: success, expected remote access error", texts), texts
