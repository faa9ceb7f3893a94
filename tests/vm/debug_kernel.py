# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
"""The driver on a kernel with debug checks: lockdep, KASAN, kmemleak, debug objects, DMA-API debugging.

`make check-debug` runs it. Its name is not test_*.py, as it is no part of `make check`: the kernel is built first.
"""

import dataclasses
import os
import time

import pytest
from boots import Boot, step_tests
from disturbances import (AFTER, LINK_DOWN, LINK_UP, LOAD, NETDEV_DOWN, NETDEV_GONE, ODP_BLOCKED, ODP_RIGHTS, OPERATOR, READDRESSED,
                          UNLOAD, UNLOAD_UNDER_LOAD, UNLOAD_UNDER_POLLING, UNPLUG_UNDER_LOAD, VANISH, reloads)
from harm import UNHARMED, check_random_verbs, check_stream, random_verbs
from steps import Step, file_system, guest_module, guest_programs
from traffic import CONNECTIONS

pytestmark = pytest.mark.slow

KERNEL = "6.1-debug"
SLOWNESS = 4

# Without these the run proves nothing. A first lockdep report switches lockdep off.
ARMED_WITHOUT_DMA = """
    mountpoint -q /sys/kernel/debug || mount -t debugfs debugfs /sys/kernel/debug
    grep 'debug_locks: *1$' /proc/lockdep_stats &&
        [ "$(cat /proc/sys/kernel/panic_on_warn)" = 1 ] &&
        grep -w kasan_report /proc/kallsyms &&
        echo scan=off >/sys/kernel/debug/kmemleak"""
ARMED = ARMED_WITHOUT_DMA + """ &&
        [ "$(cat /sys/kernel/debug/dma-api/disabled)" = N ]"""
# Leaks count once they are some seconds old and two scans have not met a pointer to them. The console stays silent
# meanwhile: otherwise vmlab ends the run before the report of the leaks.
LEAKS = """
    sleep 6
    dmesg -n 5
    for scan in 1 2; do
        echo scan >/sys/kernel/debug/kmemleak || exit
    done
    dmesg -n 7
    cat /sys/kernel/debug/kmemleak
    ! grep -q . /sys/kernel/debug/kmemleak"""
# ib_core maps a page again for each region that a program registers in it; DMA-API debugging reports that as an error.
OVERLAPPING = """
    echo 0 >/sys/kernel/debug/dma-api/num_errors
    %s; status=$?
    echo 1 >/sys/kernel/debug/dma-api/num_errors
    exit $status"""
TRAFFIC = [
    Step("rc_pingpong", "pingpong 18515 1 2 -c -s 4096 -n 200"),
    Step("rc_pingpong-events", "pingpong 18515 2 1 -e -s 65536 -n 100"),
    Step("ud_pingpong", "talk 18515 1 2 ibv_ud_pingpong -d $RDMA_DEV -g $GID_INDEX -s 1024 -n 200"),
    Step("srq_pingpong", "talk 18515 1 2 ibv_srq_pingpong -d $RDMA_DEV -g $GID_INDEX -q 4 -n 100"),
    Step("both-ends-in-one-vm", "pingpong 18515 $NODE $NODE -c -s 4096 -n 100"),
    Step("ib_write_bw-with-many-qps", "perftest 18515 1 2 ib_write_bw -b -q 8 -s 65536 -n 50"),
    Step("rc_pingpong-on-demand", "pingpong 18515 1 2 -c -o -s 1048576 -n 20"),
    Step("on-demand", "$SHARE/pvr_odp"),
    Step("verify", "talk 18600 1 2 $SHARE/pvr_verify --seed 7 --iterations 200"),
    Step("verify-events", "talk 18600 2 1 $SHARE/pvr_verify --seed 8 --iterations 200 -e"),
    *CONNECTIONS,
]
KILLED_PROGRAM = Step("killed-program", """
    [ $NODE = 1 ] && { ibv_rc_pingpong -d $RDMA_DEV -g $GID_INDEX -p 18515 -e -n 100000000 & }
    if [ $NODE = 1 ]; then
        until_true 300 listening 18515 && raise up && await talking || exit
        kill -KILL $!; raise over; exit 0
    fi
    await up
    ibv_rc_pingpong -d $RDMA_DEV -g $GID_INDEX -p 18515 -e -n 100000000 node1 &
    sleep 3; raise talking; await over; kill -KILL $!""")
# Only of kmalloc(), see kernel-debug.config: kmemleak switches itself off without memory.
FAILING = Step("failing-allocations", """
    [ $NODE = 1 ] || { await over; exit; }
    fail_all() {
        cd /sys/kernel/debug/failslab
        echo N >ignore-gfp-wait && echo Y >cache-filter && echo 0 >verbose || return
        grep -q 1 /sys/kernel/slab/kmalloc-128/failslab || { echo "kmalloc() never fails"; return 1; }
        dmesg -n 5
        $SHARE/fail_nth $driver $DRIVER
        status=$?
        dmesg -n 7
        return $status
    }
    unload && fail_all
    status=$?
    raise over
    load && exit $status""", 240)
# The same of every verb, for a program that has opened the device.
FAILING_VERBS = Step("failing-allocations-of-verbs", OVERLAPPING % """(
    cd /sys/kernel/debug/failslab
    echo N >ignore-gfp-wait && echo Y >cache-filter && echo 0 >verbose || exit
    resources() { rdma resource show $RDMA_DEV | sed "s/^[0-9]*: //"; }
    before=$(resources)
    dmesg -n 5
    $SHARE/pvr_faults fail-nth
    status=$?
    dmesg -n 7
    [ "$(resources)" = "$before" ] || { echo "before: $before; after: $(resources)"; exit 1; }
    exit $status)""", 240)
# Of an ordinary user, for an hour: make check-debug TIME=SECONDS SEED=NUMBER.
RANDOM = random_verbs(int(os.environ.get("PVRDMA_RANDOM_TIME") or 3600), os.environ.get("PVRDMA_RANDOM_SEED") or int(time.time()))
RANDOM = dataclasses.replace(RANDOM, script=OVERLAPPING % f"({RANDOM.script})")
RIGHTS, BLOCKED = (dataclasses.replace(step, script=OVERLAPPING % f"({step.script})", seconds=step.seconds * SLOWNESS)
                   for step in (ODP_RIGHTS, ODP_BLOCKED))
DISTURBANCES = [UNLOAD_UNDER_LOAD, UNLOAD_UNDER_POLLING, UNPLUG_UNDER_LOAD, NETDEV_DOWN, READDRESSED, NETDEV_GONE, FAILING, FAILING_VERBS]
DEVICE_GOES = [LINK_DOWN, LINK_UP, VANISH, AFTER, UNLOAD]

STEPS = [dataclasses.replace(step, seconds=step.seconds * SLOWNESS) for step in (
    Step("armed", ARMED),
    reloads(5, 60), *(dataclasses.replace(step, script=OVERLAPPING % step.script) for step in TRAFFIC), KILLED_PROGRAM,
    Step("no-leak-after-traffic", LEAKS),
    *DISTURBANCES,
    Step("traffic-after-disturbances", "pingpong 18515 1 2 -c -e -s 4096 -n 100"),
    Step("no-leak-after-disturbances", LEAKS),
    *DEVICE_GOES,
    Step("unload-the-other", "[ $NODE = 1 ] || unload"),
    Step("no-leak-after-unload", LEAKS),
    LOAD,
    Step("no-leak-after-load-without-device", LEAKS),
    Step("still-armed", ARMED),
)]
# odp-blocked is last: its reset leaves lines in the kernel's log.
RANDOM_STEPS = [Step("armed", ARMED_WITHOUT_DMA, 240), RIGHTS, RANDOM, UNHARMED, Step("no-leak-after-random-verbs", LEAKS, 240), BLOCKED,
                Step("no-leak-after-on-demand", LEAKS, 240), Step("still-armed", ARMED_WITHOUT_DMA, 240)]


def files():
    return [*guest_programs(), *guest_module(KERNEL), *file_system()]


debug = Boot("debug", kernel=KERNEL, smp=2).part(STEPS, OPERATOR, files)
# DMA-API debugging counts at most 7 mappings of a page, and warns then. Any user can register a page more often.
random = Boot("debug-random", kernel=KERNEL, smp=2, append="dma_debug=off").part(RANDOM_STEPS, files=files)
test_step, test_run_ended_well = step_tests(debug=STEPS, random=RANDOM_STEPS)


def test_stream_beside_random_verbs_is_whole(random):
    check_stream(random, RANDOM)
    check_random_verbs(random, RANDOM)
