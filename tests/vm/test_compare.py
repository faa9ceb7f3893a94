# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
"""Our device against Soft-RoCE over the same NIC of the same two VMs; the CPU time of an idle pvrdmad."""

import json
import re
import statistics
import time

import pytest
from boots import PAIR, step_tests
from steps import Step, pids_of
from vmlab_lib.process import cpu_nanoseconds
from vmlab_run import ROOT

pytestmark = pytest.mark.long

IDLE = Step("idle", "[ $NODE != 1 ] || raise now; await now.seen")
COMPARE = Step("compare", """
    modprobe rdma_rxe && rdma link add rxe0 type rxe netdev $NETDEV &&
        until_true 50 has_ip_gid rxe0 || exit
    port=18515
    for round in 1 2 3; do
        for device in pvrdma:$RDMA_DEV:$GID_INDEX:2000 rxe:rxe0:$(gid_index_of rxe0):200; do
            IFS=: read -r kind name gid count <<<"$device"
            echo "$kind bandwidth"
            talk $((port += 1)) 1 2 ib_write_bw -F -d $name -x $gid -s 65536 -n $count || exit
            echo "$kind latency"
            talk $((port += 1)) 1 2 ib_write_lat -F -d $name -x $gid -s 8 -n 1000 || exit
        done
    done
    rdma link delete rxe0 && modprobe -r rdma_rxe""", 180)

# Each driver reads a register every 5 s, to check that the device is still there. Half a second later the daemon wakes up
# once more. In any order of the two, 2 s without a wakeup remain.
IDLE_SECONDS = 1.8


def idle_daemon(vmlab_pid):
    """For how many seconds pvrdmad uses no CPU at all, with two idle VMs; it is measured until that is enough."""
    daemon, = pids_of(vmlab_pid, "pvrdmad")
    used, longest = cpu_nanoseconds(daemon), 0
    begin = since = time.monotonic()
    while longest < IDLE_SECONDS and time.monotonic() < begin + 12:
        time.sleep(0.1)
        now, before = time.monotonic(), used
        used = cpu_nanoseconds(daemon)
        if used != before:
            since = now
        longest = max(longest, now - since)
    return longest


compare = PAIR.part([IDLE, COMPARE], watch={"idle.now": idle_daemon}, long=True)
test_step, test_run_ended_well = step_tests(compare=[IDLE, COMPARE])


def test_idle_daemon_uses_no_cpu(compare):
    compare.check(IDLE)
    longest = compare.seen["idle.now"]
    assert longest >= IDLE_SECONDS, f"pvrdmad used no CPU for {longest:.1f} s, expected {IDLE_SECONDS} s of idle VMs"


def numbers(text, kind, what, column):
    """The column of each perftest result behind a line "KIND WHAT"."""
    found = []
    for part in re.split(r"^(?=(?:pvrdma|rxe) (?:bandwidth|latency)$)", text, flags=re.MULTILINE):
        if part.startswith(f"{kind} {what}\n"):
            row = re.search(r"^ *#bytes.*\n *(\d.*)$", part, re.MULTILINE)
            found.append(float(row[1].split()[column]))
    return found


@pytest.fixture(scope="module")
def comparison(compare):
    """Medians: {"pvrdma": {"bandwidth": MB/s, "latency": us}, "rxe": ...}"""
    client = compare.check(COMPARE)[1].text
    # "#bytes #iterations BW peak, BW average" and "#bytes #iterations t_min t_max t_typical"
    columns = {"bandwidth": 3, "latency": 4}
    every = {kind: {what: numbers(client, kind, what, column) for what, column in columns.items()}
             for kind in ("pvrdma", "rxe")}
    medians = {kind: {what: statistics.median(values) for what, values in results.items()}
               for kind, results in every.items()}
    path = ROOT / "build" / "check" / "compare.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps({
        "what": {"bandwidth": "ib_write_bw -s 65536, MiB/s, average",
                 "latency": "ib_write_lat -s 8, us, typical"},
        "median": medians, "every": every}, indent=1) + "\n")
    return medians


def test_write_bandwidth_is_30_times_that_of_rxe(comparison, capsys):
    ours, rxe = (comparison[kind]["bandwidth"] for kind in ("pvrdma", "rxe"))
    with capsys.disabled():
        print(f"\nib_write_bw of 64 KiB: {ours:.0f} MiB/s, rxe {rxe:.1f} MiB/s: {ours / rxe:.0f} times ", end="")
    assert ours >= 30 * rxe


def test_write_latency_is_a_third_of_that_of_rxe(comparison, capsys):
    ours, rxe = (comparison[kind]["latency"] for kind in ("pvrdma", "rxe"))
    with capsys.disabled():
        print(f"\nib_write_lat of 8 bytes: {ours:.1f} us, rxe {rxe:.1f} us: 1/{rxe / ours:.1f} ", end="")
    assert ours <= rxe / 3
