# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
"""rdma_cm between two VMs: rdmacm-utils and perftest -R, by IPv4 and IPv6, to others and to oneself, and failures."""

import re

import applications
import pytest
from bench_lib.apps import examples
from boots import PAIR, each_run, step_tests
from pvrdmactl import OBJECTS, check_daemon_is_as_before, noted, nothing_left, stats_at_now
from steps import LATE_CONNECT, Step, guest_programs, name_of
from traffic import COMPLAINTS, MCKEY, user_meeting

pytestmark = pytest.mark.slow

DOCUMENTED = {
    "rping": applications.meet("rping", 7174),
    "rping by IPv6": applications.meet("rping by IPv6", 7174),
    "rping with many clients": applications.meet("rping with many clients", 7174, how="serve"),
    "ucmatose": applications.meet("ucmatose", 7471),
    "udaddy": applications.meet("udaddy", 7174),
    "rdma_server and rdma_client": applications.meet("rdma_server and rdma_client", 7471),
    "perftest over rdma_cm": applications.meet("perftest over rdma_cm", 18515),
}
# Where CPUs are busy, its hundreds of connections take minutes.
DOCUMENTED_LONG = {"cmtime": applications.meet("cmtime", 7471, 240, how="serve", times=2)}

# The link-local address has a scope, which is the client's own NIC.
OTHERS = [
    user_meeting("rping-link-local", 7174, "rping -s -a ::0 -V -C 50",
                 "rping -c -a fe80::5054:ff:fe77:1%$NETDEV -V -C 50"),
    user_meeting("ucmatose-by-ipv6", 7471, "ucmatose -b ::0 -f ipv6 -c 4", "ucmatose -s $PEER_IP6 -f ipv6 -c 4"),
    user_meeting("udaddy-by-ipv6", 7174, "udaddy -b ::0 -f ipv6 -c 4", "udaddy -s $PEER_IP6 -f ipv6 -c 4"),
    user_meeting("rdma_server-and-rdma_client-by-ipv6", 7471, "rdma_server -s ::", "rdma_client -s $PEER_IP6"),
    user_meeting("cmtime-by-ipv6", 7471, "cmtime -b :: -c 50", "cmtime -s $PEER_IP6 -c 50", how="serve"),
    user_meeting("rping-to-oneself", 7174, "rping -s -V -C 50", "rping -c -a $MY_IP -V -C 50", nodes="$NODE $NODE"),
    user_meeting("rping-to-oneself-by-ipv6", 7174, "rping -s -a ::0 -V -C 50", "rping -c -a $MY_IP6 -V -C 50",
                 nodes="$NODE $NODE"),
    user_meeting("rdma_server-and-rdma_client-to-oneself", 7471, "rdma_server", "rdma_client -s $MY_IP",
                 nodes="$NODE $NODE"),
]
# Debian 12's rping loses clients that connect at the same time, so this is a later version, with a fix.
AT_ONCE = Step("rping-64-at-once", """
    install -m 755 $SHARE/rping /usr/local/bin/later-rping
    server_command=(as_user "later-rping -s -P")
    client_command=(as_user "seq 64 | xargs -P 64 -I_ later-rping -c -a node1 -V -C 100")
    serve 7174 1 2""", 120)
PERFTESTS = [Step(f"{program}-R", f"{LATE_CONNECT}perftest 18515 1 2 {program} -R -n 100")
             for kind in ("write", "read", "send") for program in (f"ib_{kind}_bw", f"ib_{kind}_lat")]


# Failures: node 2's COMMAND must fail in time, with another status than that of timeout.
def failing(name, command, seconds):
    return Step(name, f"""
        [ $NODE = 2 ] || exit 0
        timeout {seconds} {command}
        status=$?
        echo "status $status"
        [ $status != 0 ] && [ $status != 124 ]""", 2 * seconds)


FAILURES = {
    failing("rping-without-server", "rping -c -a node1 -C 10", 10): "RDMA_CM_EVENT_REJECTED, error 8",
    failing("rdma_client-without-server", "rdma_client -s node1", 10): "rdma_connect: Connection refused",
    failing("rping-to-oneself-without-server", "rping -c -a $MY_IP -C 10", 10): "RDMA_CM_EVENT_REJECTED, error 8",
    failing("rping-to-an-absent-address", "rping -c -a 10.77.0.99 -C 10", 20): "RDMA_CM_EVENT_ADDR_ERROR, error -110",
    failing("rping-to-an-absent-address-by-ipv6", "rping -c -a fd77::99 -C 10", 20): "RDMA_CM_EVENT_ADDR_ERROR, error -110",
    failing("rping-without-route", "rping -c -a 192.0.2.1 -C 10", 20): "rdma_resolve_addr: Network is unreachable",
    failing("rdma_client-to-an-absent-address", "rdma_client -s 10.77.0.99", 20): "rdma_create_ep: Connection timed out",
}

# One end waits for TCP, the other end for rdma_cm: the connecting side gets an error, as nothing listens.
def unlike(name, server, client):
    return Step(name, f"""
        if [ $NODE = 1 ]; then
            {server} -F -d $RDMA_DEV -x $GID_INDEX -p 18600 & pid=$!
            until_true 100 listening 18600 && raise up
            await over
            kill $pid
        else
            await up
            timeout 20 {client} -F -d $RDMA_DEV -x $GID_INDEX -p 18600 node1
            status=$?
            raise over
            [ $status != 0 ] && [ $status != 124 ]
        fi""")


UNLIKE = [unlike("ib_send_lat-and-ib_send_lat-R", "ib_send_lat", "ib_send_lat -R"),
          unlike("ib_send_lat-R-and-ib_send_lat", "ib_send_lat -R", "ib_send_lat")]

def pvr_cm(name, server, client):
    return Step(name, f"""
        if [ $NODE = 1 ]; then
            $SHARE/pvr_cm {server} & pid=$!
            until_true 100 listening 18700 && raise up
            wait $pid
        else
            await up
            $SHARE/pvr_cm {client} node1
        fi""", 180)


LISTENER_CLOSED = pvr_cm("listener-closed-amid-100-requests", "-l 10", "-f 100")
PRIVATE_DATA = pvr_cm("private-data", "-e", "-p")

# The peer's kernel reports the end of the connection; nothing has to time out.
KILLED = Step("peer-process-killed", """
    if [ $NODE = 1 ]; then
        (as_user "rping -s -V") & pid=$!
        until_true 100 listening 7174 && raise up
        await pinging
        kill -KILL $pid
        raise killed
        exit 0
    fi
    await up
    (as_user "rping -c -a node1 -v") >/tmp/client 2>&1 & pid=$!
    until_true 100 grep -q ping /tmp/client
    raise pinging
    await killed
    until_true 20 sh -c "! kill -0 $pid"
    status=$?
    tail -n 3 /tmp/client
    grep "client DISCONNECT EVENT" /tmp/client && exit $status""")

# All objects of a connection are gone, in the guest and in the daemon: only the kernel's own PD, CQ and QP1 are left.
BEFORE = noted("before")
QP_GONE = nothing_left("nothing-left", idle="pd 1 cq 1 qp 1 cm_id 0 mr 0 ctx 0")
CHECKED = [BEFORE, *DOCUMENTED.values(), MCKEY, *FAILURES, QP_GONE, COMPLAINTS]
LONG = [BEFORE, *DOCUMENTED_LONG.values(), *OTHERS, AT_ONCE, *PERFTESTS, *UNLIKE, LISTENER_CLOSED, PRIVATE_DATA, KILLED, QP_GONE, COMPLAINTS]


def files():
    return [*guest_programs(), examples.build("rping")]


WATCH = stats_at_now(BEFORE, QP_GONE)
cm = PAIR.part(CHECKED, WATCH, files)
cm_long = PAIR.part(LONG, WATCH, files, long=True)
test_step, test_run_ended_well = step_tests(cm=CHECKED, cm_long=LONG)
BOTH = pytest.mark.parametrize("run", each_run("cm", "cm_long"), indirect=True)


@pytest.mark.parametrize("run, heading", [*(("cm", heading) for heading in DOCUMENTED),
                                          *(pytest.param("cm_long", heading, marks=pytest.mark.long) for heading in DOCUMENTED_LONG)],
                         indirect=["run"])
def test_output_is_as_documented(run, heading):
    outcomes = run.check({**DOCUMENTED, **DOCUMENTED_LONG}[heading])
    applications.check_output(heading, "\n".join(outcome.text for outcome in outcomes))


@pytest.mark.parametrize("step", FAILURES, ids=name_of)
def test_failure_has_its_reason(cm, step):
    client = cm.check(step)[1].text
    assert FAILURES[step] in client, client


@pytest.mark.long
def test_no_request_to_a_closed_listener_is_left_without_end(cm_long):
    """Accepted requests are disconnected, before or after the client gets the event of the connection. All others
    are rejected, and no client has to time out."""
    client = cm_long.check(LISTENER_CLOSED)[1].text
    found = {what: int(number) for number, what in re.findall(r" (\d+) ([a-z]+(?: end)?)", client)}
    assert found["rejected"] == 90 and found["disconnected"] + found["failed"] == 10, client
    assert found["without end"] == found["connected"] == found["unreachable"] == 0, client


@pytest.mark.long
@pytest.mark.parametrize("space", ["RC, 56 there, 196 back", "UD, 180 there, 136 back"])
def test_private_data_up_to_its_limit_arrives(cm_long, space):
    assert f"private data: {space}" in cm_long.check(PRIVATE_DATA)[1].text


@BOTH
def test_commands_raise_no_interrupts(run):
    """Each command is complete when the driver reads ERR; on one CPU an interrupt per command would delay it."""
    run.check_each(QP_GONE, r"^ *\d+: +0 .*pvrdma-cmd")


@BOTH
@pytest.mark.parametrize("what", OBJECTS)
def test_nothing_is_left_in_the_daemon(run, what):
    check_daemon_is_as_before(run, BEFORE, QP_GONE, what)
