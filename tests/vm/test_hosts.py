# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
"""VMs of different hosts: network namespaces with a pvrdmad each. Three hosts joined with TLS; two, with and without TLS."""

import re

import pytest
from steps import LATE_CONNECT, Step, guest_programs, ids, run_steps
from traffic import COMPLAINTS

pytestmark = pytest.mark.slow

# Guests do not see hosts: these are the programs of VMs of one host.
COMMON = {step.name: step for step in (
    Step("rc_pingpong", "pingpong 18515 1 2 -c -s 4096 -n 300"),
    Step("rc_pingpong-large-messages-events", "pingpong 18515 2 1 -c -e -s 1048576 -n 20"),
    Step("ud_pingpong", "talk 18515 1 2 ibv_ud_pingpong -d $RDMA_DEV -g $GID_INDEX -s 1024 -n 300"),
    Step("srq_pingpong", "talk 18515 1 2 ibv_srq_pingpong -d $RDMA_DEV -g $GID_INDEX -q 4 -n 200"),
    *(Step(program, f"perftest 18515 1 2 {program} -a -n 40", 180)
      for program in ("ib_write_bw", "ib_read_bw", "ib_send_bw")),
    *(Step(program, f"perftest 18515 1 2 {program} -s 8 -n 300") for program in ("ib_write_lat", "ib_send_lat",
                                                                                "ib_read_lat", "ib_atomic_lat")),
    Step("rdma_cm", LATE_CONNECT + "perftest 18515 1 2 ib_write_bw -R -s 65536 -n 100"),
    Step("rping", "talk 7174 1 2 rping_end"),
    Step("verify", "talk 18600 1 2 $SHARE/pvr_verify --iterations 300", 180),
    COMPLAINTS,
)}
# Three hosts, all at once.
THREE = [
    *(COMMON[name] for name in ("ib_read_bw", "rping", "verify")),
    Step("pairwise", """
        pingpong 18515 1 2 -c -s 4096 -n 200 & one=$!
        pingpong 18516 2 3 -c -s 65536 -n 100 & two=$!
        pingpong 18517 3 1 -c -s 1 -n 200 & three=$!
        all $one $two $three""", 120),
    # Nodes 1 and 2 are in the group, node 3 sends to it, all at once. A node that misses a datagram waits for ever.
    Step("multicast", """
        group="mckey -m 239.77.0.1 -b $MY_IP -C 20 -S 1000"
        if [ $NODE = 3 ]; then await joined1; await joined2; $group -s; exit; fi
        stdbuf -oL $group >/tmp/mckey & pid=$!
        until_true 100 grep joined /tmp/mckey && raise joined$NODE && wait $pid""", 120),
    COMPLAINTS,
]


def check_paths(run, nodes):
    text = run.result.log("paths.txt")
    assert all(re.search(rf"node{node}\b.*\bpath tcp\b", text) for node in range(1, nodes + 1)), text


def check_tls(run, version):
    log = run.result.log("pvrdmad1.log")
    assert re.search(rf"connected to host host2 .*TLS: {version}", log), log


@pytest.fixture(scope="module", params=["tcp", "tls"])
def two_hosts(tmp_path_factory, request):
    run = run_steps(tmp_path_factory.mktemp(f"hosts-{request.param}"), COMMON.values(), hosts=2, pipe=request.param,
                    files=guest_programs())
    run.pipe = request.param
    return run


@pytest.mark.long
@pytest.mark.parametrize("step", COMMON)
def test_two_hosts(two_hosts, step):
    two_hosts.check(step)


@pytest.mark.long
def test_two_hosts_path_is_shown(two_hosts):
    check_paths(two_hosts, 2)


@pytest.mark.long
def test_two_hosts_connections_are_protected(two_hosts):
    check_tls(two_hosts, "TLSv1.3" if two_hosts.pipe == "tls" else "off")


@pytest.mark.long
def test_two_hosts_run_ended_well(two_hosts):
    two_hosts.check_end()


@pytest.fixture(scope="module")
def three_hosts(tmp_path_factory):
    return run_steps(tmp_path_factory.mktemp("hosts-three"), THREE, nodes=3, hosts=3, pipe="tls",
                     files=guest_programs())


@pytest.mark.parametrize("step", ids(THREE))
def test_three_hosts(three_hosts, step):
    three_hosts.check(step)


def test_three_hosts_path_is_shown(three_hosts):
    check_paths(three_hosts, 3)


def test_three_hosts_connections_are_protected(three_hosts):
    check_tls(three_hosts, "TLSv1.3")


def test_three_hosts_run_ended_well(three_hosts):
    three_hosts.check_end()
