# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
"""Two VMs, our driver, our provider, our device: what programs do with them."""

import json
import re
import statistics
import time

import pytest
from steps import Step, guest_programs, ids, pids_of, run_steps
from traffic import COMPLAINTS, CONNECTIONS, DEVINFO, PERFTESTS, PINGPONGS
from vmlab_lib.process import cpu_nanoseconds
from vmlab_run import ROOT

pytestmark = pytest.mark.slow

# Bad input: users.
ERRNO = Step("errno", "$SHARE/pvr_errno")
SMALL_MEMLOCK = Step("small-memlock", """
    ulimit -l 64
    setpriv --bounding-set=-ipc_lock --inh-caps=-ipc_lock ibv_rc_pingpong -d $RDMA_DEV -g $GID_INDEX -s 1048576
    [ $? = 1 ]""")
NO_PROVIDER = Step("no-provider", "provider none; IBV_SHOW_WARNINGS=1 ibv_devinfo; provider pvrdma; true")

# Exactly VMware's interface: what our extensions would add is not offered, and all else works.
NO_EXTENSIONS = Step("no-extensions", """
    unload && insmod $driver extensions=0 && until_true 100 has_gid || exit
    pingpong 18515 1 2 -c -e -s 4096 -n 100
    status=$?
    ibv_devinfo -v -d $RDMA_DEV
    unload && load && exit $status""")
LINK = Step("link", "rdma link show; ls /dev/infiniband")
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

GOOD = [*PINGPONGS, *PERFTESTS, *CONNECTIONS, NO_EXTENSIONS, ERRNO, COMPLAINTS]
STEPS = [DEVINFO, LINK, IDLE, *GOOD, SMALL_MEMLOCK, NO_PROVIDER, COMPARE]


# Each driver reads a register every 5 s, to see whether the device is there yet, and half a second later the daemon is woken
# once more: however the two take turns, they leave it 2 s.
IDLE_SECONDS = 1.8


def idle_daemon(vmlab_pid):
    """For how many seconds pvrdmad uses no CPU at all, with two idle VMs; it is looked at until that is enough."""
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


@pytest.fixture(scope="module")
def pair(tmp_path_factory):
    return run_steps(tmp_path_factory.mktemp("pair"), STEPS, watch={"idle.now": idle_daemon},
                     files=guest_programs())


@pytest.mark.parametrize("step", ids(GOOD))
def test_pair(pair, step):
    pair.check(step)


SHOWN = {
    "transport": r"transport:\s+InfiniBand \(0\)",
    "vendor": r"vendor_id:\s+0x15ad",
    "one port": r"phys_port_cnt:\s+1",
    "queue pairs": r"max_qp:\s+[1-9]",
    "scatter-gather entries": r"max_sge:\s+[1-9]",
    "completion queues": r"max_cq:\s+[1-9]",
    "memory regions": r"max_mr:\s+[1-9]",
    "active port": r"state:\s+PORT_ACTIVE \(4\)",
    "Ethernet": r"link_layer:\s+Ethernet",
    "RoCE v2 GID": r"GID\[ *\d+\]:\s+::ffff:10\.77\.0\.[12], RoCE v2",
    "RoCE v2 GID of IPv6": r"GID\[ *\d+\]:\s+fd77::[12], RoCE v2",
}


@pytest.mark.parametrize("what", SHOWN)
def test_ibv_devinfo_shows(pair, what):
    for outcome in pair.check("devinfo"):
        assert re.search(SHOWN[what], outcome.text), outcome.tail()


# An extension that is in use, by what it adds.
ADDED = {
    "MR_LAYOUT": r"page_size_cap:\s+0x7ffff000",
    "MW": r"max_mw:\s+[1-9]",
    "RESIZE": r"\sSRQ_RESIZE\s",
    "any": r"atomic_cap:\s+ATOMIC_GLOB",
    "MCAST": r"max_mcast_grp:\s+[1-9]",
}


@pytest.mark.parametrize("extension", ADDED)
def test_extension_is_seen_only_where_it_is_used(pair, extension):
    for outcome in pair.check("devinfo"):
        assert re.search(ADDED[extension], outcome.text), outcome.tail()
    for outcome in pair.check("no-extensions"):
        assert not re.search(ADDED[extension], outcome.text), outcome.tail()


def test_link_is_active_at_the_netdev(pair):
    for outcome in pair.check("link"):
        assert re.search(r"state ACTIVE physical_state LINK_UP netdev eth0", outcome.text), outcome.tail()


def test_there_is_a_device_for_user_mads(pair):
    """ib_umad registers an agent at the GSI QP."""
    for outcome in pair.check("link"):
        assert "umad0" in outcome.text, outcome.tail()


def test_idle_daemon_uses_no_cpu(pair):
    pair.check("idle")
    longest = pair.seen["idle.now"]
    assert longest >= IDLE_SECONDS, f"pvrdmad used no CPU for {longest:.1f} s, expected {IDLE_SECONDS} s of idle VMs"


def test_small_memlock_is_an_error_with_a_reason(pair):
    for outcome in pair.check("small-memlock"):
        assert "Couldn't register MR" in outcome.text, outcome.tail()


def test_guest_without_provider_is_told(pair):
    for outcome in pair.check("no-provider"):
        assert "no userspace device-specific driver found" in outcome.text, outcome.tail()


# --- against Soft-RoCE over the same NIC of the same VMs ----------------------------------------

def numbers(text, kind, what, column):
    """The column of each perftest result behind a line "KIND WHAT"."""
    found = []
    for part in re.split(r"^(?=(?:pvrdma|rxe) (?:bandwidth|latency)$)", text, flags=re.MULTILINE):
        if part.startswith(f"{kind} {what}\n"):
            row = re.search(r"^ *#bytes.*\n *(\d.*)$", part, re.MULTILINE)
            found.append(float(row[1].split()[column]))
    return found


@pytest.fixture(scope="module")
def comparison(pair):
    """Medians: {"pvrdma": {"bandwidth": MB/s, "latency": us}, "rxe": ...}"""
    client = pair.check("compare")[1].text
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


def test_run_ended_well(pair):
    pair.check_end()
