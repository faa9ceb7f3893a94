# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
"""Steps with RDMA programs that more than one test runs."""

from steps import LATE_CONNECT, Step

DEVINFO = Step("devinfo", "ibv_devinfo -v -d $RDMA_DEV")
COMPLAINTS = Step("complaints", "! complaints")



def meeting(name, port, server, client, seconds=60, how="meet", nodes="1 2"):
    """A server that listens at `port`, and a client, both bash. how: "serve" if the server never ends. nodes: theirs."""
    return Step(name, f"""
        server_command=({server})
        client_command=({client})
        {how} {port} {nodes}""", seconds)


def user_meeting(name, port, server, client, **options):
    """meeting() of two commands of an ordinary user."""
    return meeting(name, port, f'as_user "{server}"', f'as_user "{client}"', **options)


# ATOMIC WRITE and FLUSH, with a libibverbs that has them.
PLACEMENT = meeting("placement", 18602, "env LD_LIBRARY_PATH=$SHARE $SHARE/pvr_placement",
                    "env LD_LIBRARY_PATH=$SHARE $SHARE/pvr_placement node1", 120)

# Node 1 takes memory back from node 2, by each verb.
FENCE = Step("fence", "talk 18700 1 2 $SHARE/pvr_fence", 120)

# A pingpong from node 2 to node 1 that never ends by itself. Both take more arguments for it. $pid: that of this node.
ENDLESS = """
    endless() { exec ibv_rc_pingpong -d $RDMA_DEV -g $GID_INDEX -p 18515 -n 100000000 "$@"; }
    serve_endless() {
        endless "$@" & pid=$!
        until_true 100 listening 18515 && raise up && await connected
    }
    # Until node 1 raises `over`.
    connect_endless() {
        await up
        endless "$@" node1 & pid=$!
        sleep 1
        raise connected
        await over
        kill $pid
        wait $pid
        true
    }
"""

# Three nodes, all at once.
PAIRWISE = Step("pairwise", """
    pingpong 18515 1 2 -c -s 4096 -n 300 & one=$!
    pingpong 18516 2 3 -c -s 65536 -n 100 & two=$!
    pingpong 18517 3 1 -c -s 1 -n 300 & three=$!
    all $one $two $three""", 120)

# Where there are 1000 or 600, each ring begins again.
ITERATIONS = {1: 1000, 4096: 1000, 65536: 200, 1048576: 40}

PINGPONGS = [
    *(Step(f"rc_pingpong-{size}-checked", f"pingpong 18515 1 2 -c -s {size} -n {count}")
      for size, count in ITERATIONS.items()),
    *(Step(f"rc_pingpong-{size}-events", f"pingpong 18515 2 1 -e -s {size} -n {min(count, 600)}")
      for size, count in ITERATIONS.items()),
    Step("rc_pingpong-checked-events", "pingpong 18515 1 2 -c -e -s 4096 -n 200"),
    Step("ud_pingpong-1", "talk 18515 1 2 ibv_ud_pingpong -d $RDMA_DEV -g $GID_INDEX -s 1 -n 500"),
    Step("ud_pingpong-1024", "talk 18515 1 2 ibv_ud_pingpong -d $RDMA_DEV -g $GID_INDEX -s 1024 -n 500"),
    Step("ud_pingpong-events",
         "talk 18515 1 2 ibv_ud_pingpong -d $RDMA_DEV -g $GID_INDEX -s 1024 -e -n 500"),
    Step("srq_pingpong", "talk 18515 1 2 ibv_srq_pingpong -d $RDMA_DEV -g $GID_INDEX -q 4 -n 200"),
    Step("xsrq_pingpong", "talk 18515 1 2 ibv_xsrq_pingpong -d $RDMA_DEV -g $GID_INDEX -n 200"),
    Step("two-at-once", """
        pingpong 18515 1 2 -c -s 4096 -n 500 & one=$!
        pingpong 18516 2 1 -c -s 65536 -n 200 & two=$!
        all $one $two"""),
    Step("both-ends-in-one-vm", "pingpong 18515 $NODE $NODE -c -s 4096 -n 200"),
]

BANDWIDTHS = ["ib_send_bw", "ib_write_bw", "ib_read_bw"]
LATENCIES = ["ib_send_lat", "ib_write_lat", "ib_read_lat"]
ALL_SIZES = {program: Step(f"{program}-all-sizes", f"perftest 18515 1 2 {program} -a -n 40", 180)
             for program in BANDWIDTHS + LATENCIES}
PERFTESTS = [
    Step("ib_send_bw-events", "perftest 18515 1 2 ib_send_bw -e -s 65536 -n 200"),
    Step("ib_send_bw-ud", "perftest 18515 1 2 ib_send_bw -c UD -s 1024 -n 200"),
    Step("ib_send_lat-ud", "perftest 18515 1 2 ib_send_lat -c UD -s 64 -n 200"),
    Step("ib_write_bw-both-directions-4-qps", "perftest 18515 1 2 ib_write_bw -b -q 4 -s 65536 -n 200"),
    Step("ib_write_bw-odd-size", "perftest 18515 1 2 ib_write_bw -s 3333333 -n 20"),
    Step("ib_send_bw-list-of-posts", "perftest 18515 1 2 ib_send_bw -s 4096 -n 320 -l 16"),
]

# Node 1 is in the group, node 2 sends to it; a lost datagram lets it wait.
MCKEY = Step("mckey", """
    group="mckey -m 239.77.0.1 -b $MY_IP -C 20 -S 1000"
    if [ $NODE = 2 ]; then await joined; $group -s; exit; fi
    stdbuf -oL $group >/tmp/mckey & pid=$!
    until_true 100 grep joined /tmp/mckey && raise joined && wait $pid""")
# The GSI QP carries the connection manager's messages.
CONNECTIONS = [
    Step("rping", "talk 7174 1 2 rping_end"),
    # Each datagram is answered at an address that the server makes of its completion and GRH.
    Step("udaddy", "talk 7174 1 2 udaddy_end"),
    MCKEY,
    Step("ib_send_lat-rdma_cm", LATE_CONNECT + "perftest 18515 1 2 ib_send_lat -R -s 64 -n 100"),
    Step("ib_write_bw-rdma_cm", LATE_CONNECT + "perftest 18515 2 1 ib_write_bw -R -s 65536 -n 100"),
]
