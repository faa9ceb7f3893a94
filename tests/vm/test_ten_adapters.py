# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
"""One VM with ten adapters, VMware's limit, on two fabrics: pvrdma0, 2, 4 ... on one and pvrdma1, 3, 5 ... on the other. An
eleventh adapter works, too: this device has no such limit."""

import pytest
from boots import Boot, step_tests
from steps import Step
from traffic import COMPLAINTS

pytestmark = pytest.mark.long

# GID 0 is link-local: an adapter needs only this GID and a NIC that is up.
PAIR = """
    # pair SERVER CLIENT ARGUMENT...: a pingpong between two adapters, by number.
    pair() {
        local server=$1 client=$2 port=$((18500 + 20 * $1 + $2)) pid status
        shift 2
        ibv_rc_pingpong -d pvrdma$server -g 0 -p $port "$@" & pid=$!
        until_true 200 listening $port || return
        ibv_rc_pingpong -d pvrdma$client -g 0 -p $port "$@" 127.0.0.1
        status=$?
        if [ $status != 0 ]; then kill $pid; wait $pid; return $status; fi
        wait $pid
    }
"""
PAIRED = Step("paired", """
    for nic in /sys/class/net/eth*; do ip link set ${nic##*/} up; done
    seen=
    for i in $(seq 0 9); do
        device=/sys/class/infiniband/pvrdma$i
        until_true 100 grep -q ACTIVE $device/ports/1/state || { echo "pvrdma$i has no active port"; exit 1; }
        nic=$(ls $device/device/net/)
        mac=$(cat /sys/class/net/$nic/address)
        echo "pvrdma$i $nic $mac"
        # The GUID is the MAC with 00:00 in its middle.
        [ "$(tr -d : <$device/node_guid)" = "$(echo $mac | sed -E 's/(..):(..):(..):/\\1\\2\\30000/; s/://g')" ] ||
            { echo "its GUID is $(cat $device/node_guid)"; exit 1; }
        case " $seen " in *" $nic "*) echo "$nic has two adapters"; exit 1 ;; esac
        seen="$seen $nic"
    done""")
ALL_AT_ONCE = Step("all-at-once", PAIR + """
    pids=
    for i in $(seq 0 9); do
        pair $i $(((i + 2) % 10)) -c -e -s 4096 -n 200 & pids="$pids $!"
    done
    all $pids""", 120)
FABRICS_APART = Step("fabrics-apart", PAIR + """
    for i in 0 3 8; do
        if text=$(pair $i $((i + 1)) -s 64 -n 2 2>&1); then echo "$text"; echo "pvrdma$i met its neighbour"; exit 1; fi
        grep 'transport retry counter exceeded' <<<"$text" || { echo "$text"; exit 1; }
    done
    pair 9 7 -c -s 64 -n 10""", 120)
ELEVENTH = Step("eleventh", PAIR + "pair 10 0 -c -e -s 65536 -n 100 && pair 8 10 -c -s 64 -n 100", 120)
STEPS = [PAIRED, ALL_AT_ONCE, FABRICS_APART, ELEVENTH, COMPLAINTS]
ten = Boot("ten", nodes=1, adapters=11, fabrics=2).part(STEPS, long=True)
test_step, test_run_ended_well = step_tests(ten=STEPS)
