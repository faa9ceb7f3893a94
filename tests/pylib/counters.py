# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
"""Steps that compare the counters in the guest with traffic of known size."""

from steps import Step
from traffic import ENDLESS

COUNT, SIZE = 200, 4096
SEEN = f"""
    counters=/sys/class/infiniband/$RDMA_DEV/ports/1/counters
    stat() {{ rdma statistic show link $RDMA_DEV/1 | tr ' ' '\\n' | grep -A1 "^$1\\$" | tail -n 1; }}
    numbers() {{
        sleep 0.1 # what is shown may be 10 ms old
        for name in tx_messages tx_bytes rx_messages rx_bytes local_bytes tcp_bytes; do stat $name; done
        for name in port_xmit_packets port_xmit_data port_rcv_packets port_rcv_data \\
                    unicast_xmit_packets multicast_xmit_packets symbol_error; do cat $counters/$name; done
        cat /sys/class/infiniband/$RDMA_DEV/ports/1/hw_counters/tx_messages
    }}
    # grown_by_a_pingpong BEFORE AFTER
    grown_by_a_pingpong() {{
        paste <(echo "$1") <(echo "$2") | while read -r before after; do echo $((after - before)); done >/tmp/grown
        diff /tmp/grown - <<<'{COUNT}
{COUNT * SIZE}
{COUNT}
{COUNT * SIZE}
{COUNT * SIZE}
0
{COUNT}
{COUNT * SIZE // 4}
{COUNT}
{COUNT * SIZE // 4}
{COUNT}
0
0
{COUNT}'
    }}
    ping() {{ pingpong $1 1 2 -c -s {SIZE} -n {COUNT}; }}
"""
PORT = Step("port", SEEN + """
    before=$(numbers) && ping 18515 && grown_by_a_pingpong "$before" "$(numbers)" """)
# With a counter for each type of QP the port's sum must be what it was.
QP_COUNTER = Step("qp-counter", SEEN + """
    before=$(numbers)
    rdma statistic qp set link $RDMA_DEV/1 auto type on && rdma statistic qp mode | grep 'auto type on' || exit
    ping 18515 && grown_by_a_pingpong "$before" "$(numbers)"
    status=$?
    # The counters end with their QPs: the mode cannot be changed while there is one.
    rdma statistic qp set link $RDMA_DEV/1 auto off && rdma statistic qp set link $RDMA_DEV/1 auto type on &&
        rdma statistic qp set link $RDMA_DEV/1 auto off && exit $status""")
# A QP that is being used, seen from outside its process.
IN_USE = Step("in-use", ENDLESS + """
    if [ $NODE = 2 ]; then connect_endless; exit; fi
    rdma statistic qp set link $RDMA_DEV/1 auto type on || exit
    serve_endless
    rdma -dd resource show qp link $RDMA_DEV/1 | tee /tmp/qps | grep 'type RC state RTS.*comm ibv_rc_pingpong.*drv_handle [1-9]' &&
        rdma -dd resource show cq dev $RDMA_DEV | grep 'comm ibv_rc_pingpong.*drv_comp_vector 0' &&
        rdma -dd resource show mr dev $RDMA_DEV | grep 'mrlen 4096.*comm ibv_rc_pingpong.*drv_pages [1-9]' &&
        rdma statistic qp show link $RDMA_DEV/1 | tee /tmp/stats | grep 'qp-type RC.* tx_messages [1-9]'
    status=$?
    cat /tmp/qps /tmp/stats
    raise over
    kill $pid
    wait $pid
    rdma statistic qp set link $RDMA_DEV/1 auto off && exit $status""")
