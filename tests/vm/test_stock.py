# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
"""The same programs with the kernel's own driver, vmw_pvrdma, and Debian's provider: our device is theirs."""

import pytest
from boots import STOCK, step_tests
from steps import Step, our_provider
from traffic import ALL_SIZES, COMPLAINTS, DEVINFO, PERFTESTS, PINGPONGS

pytestmark = pytest.mark.slow

OUR_PROVIDER = Step("our-provider", """
    install -m 644 $SHARE/libpvrdma-rdmav34.so $ibverbs/
    provider pvrdma
    pingpong 18515 1 2 -c -s 4096 -n 200 && pingpong 18516 2 1 -c -e -s 65536 -n 100
    status=$?; provider vmw_pvrdma; exit $status""")

# A notification that comes while the function is masked waits until it is not: the pingpong goes on.
MASKED = Step("masked-vectors", r"""
    [ $NODE = 1 ] || exit 0
    device=$(readlink -f /sys/class/infiniband/$RDMA_DEV/device)
    high=$(($(od -An -tu1 -j52 -N1 $device/config) + 3))
    control() { printf "\\x$1" | dd of=$device/config bs=1 seek=$high conv=notrunc status=none; }
    irqs=($(ls $device/msi_irqs | sort -n))
    [ ${#irqs[@]} = 3 ] || { echo "${#irqs[@]} vectors, not 3"; exit 1; }
    count() { awk -v irq=${irqs[2]}: '$1 == irq { for (i = 2; $i ~ /^[0-9]+$/; i++) sum += $i; print sum }' \
        /proc/interrupts; }
    more_than() { [ $(count) -gt $1 ]; }
    run() { exec ibv_rc_pingpong -d $RDMA_DEV -g $GID_INDEX -p 18517 -e -n 100000000 "$@" >/dev/null 2>&1; }
    run & server=$!
    until_true 100 listening 18517
    run localhost & client=$!
    status=0
    for round in 1 2 3 4 5; do
        until_true 100 more_than $(($(count) + 50)) || { echo "round $round: no interrupts"; status=1; break; }
        control c0; sleep 0.5
        before=$(count); sleep 0.5
        [ $(count) = $before ] || { echo "round $round: masked, and interrupted"; status=1; }
        control 80
    done
    until_true 100 more_than $(($(count) + 50)) || { echo "no interrupts in the end"; status=1; }
    kill $server $client; wait
    exit $status""", 60)

PROBE = Step("probe", "lsmod; ls $ibverbs /etc/libibverbs.d")
# This driver has no XRC domains.
NO_XRC = Step("no-xrc", """
    output=$(ibv_xsrq_pingpong -d $RDMA_DEV -g $GID_INDEX 2>&1)
    [ $? = 1 ] && grep "Couldn't Open the XRC Domain" <<<"$output" """)
# test_pair.py has all of them.
BRIEF = [step for step in PINGPONGS if step.name in (
    "rc_pingpong-4096-checked", "rc_pingpong-1048576-checked", "rc_pingpong-65536-events", "rc_pingpong-checked-events",
    "ud_pingpong-1024", "ud_pingpong-events", "srq_pingpong", "two-at-once", "both-ends-in-one-vm")]
CHECKED = [PROBE, DEVINFO, *BRIEF, NO_XRC, ALL_SIZES["ib_send_bw"], MASKED, OUR_PROVIDER, COMPLAINTS]
LONG = [*(step for step in PINGPONGS if step not in BRIEF and step.name != "xsrq_pingpong"),
        *(step for step in ALL_SIZES.values() if step is not ALL_SIZES["ib_send_bw"]), *PERFTESTS, COMPLAINTS]

stock = STOCK.part(CHECKED, files=our_provider)
stock_long = STOCK.part(LONG, long=True)
test_step, test_run_ended_well = step_tests(stock=CHECKED, stock_long=LONG)


def test_driver_and_provider_are_not_ours(stock):
    for outcome in stock.check(PROBE):
        assert "vmw_pvrdma" in outcome.text, outcome.tail()
        assert "libpvrdma" not in outcome.text, outcome.tail()
