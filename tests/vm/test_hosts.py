# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
"""VMs of different hosts: network namespaces with a pvrdmad each. Three VMs of two hosts and of three, joined with TLS; two
hosts, with and without TLS."""

import re

import pytest
from boots import TRIO, Boot, each_run, step_tests
from steps import LATE_CONNECT, Step, guest_programs
from traffic import COMPLAINTS, FENCE, PAIRWISE

pytestmark = pytest.mark.slow

# Guests do not see hosts: these are the programs of VMs of one host.
COMMON = {step.name: step for step in (
    Step("rc_pingpong", "pingpong 18515 1 2 -c -s 4096 -n 300"),
    Step("rc_pingpong-large-messages-events", "pingpong 18515 2 1 -c -e -s 1048576 -n 20"),
    Step("rc_pingpong-on-demand", "pingpong 18515 1 2 -c -o -s 1048576 -n 20 && pingpong 18516 1 2 -c -O -s 1048576 -n 20"),
    Step("ud_pingpong", "talk 18515 1 2 ibv_ud_pingpong -d $RDMA_DEV -g $GID_INDEX -s 1024 -n 300"),
    Step("srq_pingpong", "talk 18515 1 2 ibv_srq_pingpong -d $RDMA_DEV -g $GID_INDEX -q 4 -n 200"),
    Step("xsrq_pingpong", "talk 18515 1 2 ibv_xsrq_pingpong -d $RDMA_DEV -g $GID_INDEX -n 200"),
    *(Step(program, f"perftest 18515 1 2 {program} -a -n 40", 180)
      for program in ("ib_write_bw", "ib_read_bw", "ib_send_bw")),
    *(Step(program, f"perftest 18515 1 2 {program} -s 8 -n 300") for program in ("ib_write_lat", "ib_send_lat",
                                                                                "ib_read_lat", "ib_atomic_lat")),
    Step("rdma_cm", LATE_CONNECT + "perftest 18515 1 2 ib_write_bw -R -s 65536 -n 100"),
    Step("rping", "talk 7174 1 2 rping_end"),
    Step("verify", "talk 18600 1 2 $SHARE/pvr_verify --iterations 300", 180),
    COMPLAINTS,
)}
# Three VMs. test_trio.py has all pairs at once, and pvr_verify.
THREE = [
    *(COMMON[name] for name in ("ib_read_bw", "rping", "xsrq_pingpong")),
    # Nodes 1 and 2 are in the group, node 3 sends to it, all at once. A node that misses a datagram waits for ever.
    Step("multicast", """
        group="mckey -m 239.77.0.1 -b $MY_IP -C 20 -S 1000"
        if [ $NODE = 3 ]; then await joined1; await joined2; $group -s; exit; fi
        stdbuf -oL $group >/tmp/mckey & pid=$!
        until_true 100 grep joined /tmp/mckey && raise joined$NODE && wait $pid""", 120),
    COMPLAINTS,
]


def two_hosts(pipe):
    return Boot(f"hosts-{pipe}", hosts=2, pipe=pipe).part(COMMON.values(), files=guest_programs, long=True)


tcp_long, tls_long = two_hosts("tcp"), two_hosts("tls")
three = TRIO.part(THREE, files=guest_programs)
THREE_HOSTS = [*THREE, COMMON["verify"], PAIRWISE, FENCE]
three_hosts_long = Boot("hosts-three", nodes=3, hosts=3, pipe="tls").part(THREE_HOSTS, files=guest_programs, long=True)
RUNS = {"three": THREE, "three_hosts_long": THREE_HOSTS, "tcp_long": COMMON, "tls_long": COMMON}
test_step, test_run_ended_well = step_tests(**RUNS)
EACH_RUN = pytest.mark.parametrize("run", each_run(*RUNS), indirect=True)


@EACH_RUN
def test_path_is_shown(run):
    text = run.result.log("paths.txt")
    assert all(re.search(rf"node{node}\b.*\bpath tcp\b", text) for node in range(1, run.nodes + 1)), text


@EACH_RUN
def test_connections_are_protected(run):
    run.check_tls()
