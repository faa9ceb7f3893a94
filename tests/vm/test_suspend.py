# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
"""The VM is suspended to RAM under programs that use its device, and wakes up again. Hibernation stops and starts the device by
the same methods: the kernel's test mode does all of it except for the image."""

import pytest
from boots import Boot, step_tests
from steps import GUEST_SOURCES, RUN_STEPS, Step
from traffic import COMPLAINTS

pytestmark = pytest.mark.long

PINGPONG = "pingpong 18516 1 1 -c -s 4096 -n 100 && pingpong 18517 1 1 -c -e -s 65536 -n 50"

# ACPI S3: the kernel stops all devices, QEMU stops the CPUs until the RTC alarm, and then resets all devices.
# The alarm must not expire before the kernel sleeps, or nothing wakes it.
SUSPEND = """
    suspend() {
        local woke=$(woken)
        echo deep >/sys/power/mem_sleep &&
            echo 0 >/sys/class/rtc/rtc0/wakealarm && echo +10 >/sys/class/rtc/rtc0/wakealarm &&
            echo mem >/sys/power/state && [ $(woken) = $((woke + 1)) ] && return
        echo "the VM was not suspended"
        dmesg | tail -n 40
        return 1
    }
    woken() { dmesg | grep -c 'Waking up from system sleep state S3'; }
    # As far as the moment of the snapshot, where the kernel waits for 5 s, and back.
    hibernate() {
        echo core >/sys/power/pm_test && echo disk >/sys/power/state && echo none >/sys/power/pm_test &&
            dmesg | grep 'hibernation: debug: Waiting for 5 second'
    }
"""
# Two ends of a pingpong; a program that waits for events of the device, also after its end; a program that only has the
# device open.
PROGRAMS = """
    endless() { ibv_rc_pingpong -d $RDMA_DEV -g $GID_INDEX -p 18515 -e -s 4096 -n 100000000 "$@"; }
    start() {
        endless & server=$!
        until_true 100 listening 18515 && endless node1 & client=$!
        stdbuf -oL ibv_asyncwatch -d $RDMA_DEV >/tmp/events & watcher=$!
        ibv_rc_pingpong -d $RDMA_DEV -g $GID_INDEX -p 18519 & holder=$!
        until_true 100 listening 18519 && sleep 2 && kill -0 $server $client $watcher
    }
    ended() {
        until_true 200 eval "! kill -0 $2 2>/dev/null" || { echo "$1 did not end within 20 s"; return 1; }
        if wait $2; then echo "$1 succeeded"; return 1; fi
        echo "$1 ended with an error, as it must"
    }
    has_fatal_event() { grep -q DEVICE_FATAL /tmp/events; }
    index() { rdma dev show $RDMA_DEV | cut -d: -f1; }
"""
ROUNDS = [Step(name, SUSPEND + PROGRAMS + f"""
    before=$(index)
    start || {{ echo "the programs ended too early"; exit 1; }}
    {name.partition("-")[0]} && ended server $server && ended client $client || exit
    until_true 50 has_fatal_event || {{ echo "the watcher got no event"; cat /tmp/events; exit 1; }}
    until_true 100 has_gid || {{ echo "no device with GID $GID_INDEX and an active port"; rdma link show; exit 1; }}
    [ "$(index)" != "$before" ] || {{ echo "it is the same device, number $before"; exit 1; }}
    kill -0 $holder $watcher && kill $holder $watcher && ended holder $holder && ended watcher $watcher &&
    """ + PINGPONG, 90) for name in ("suspend-1", "suspend-2", "hibernate", "suspend-3")]
BEFORE = Step("pingpong-before", PINGPONG)
RELOAD = Step("reload-after", "unload && load &&" + PINGPONG)
STEPS = [BEFORE, *ROUNDS, RELOAD, COMPLAINTS]
suspend = Boot("suspend", nodes=1, timeout=240, runner=GUEST_SOURCES / "run-suspendable").part(
    STEPS, files=lambda: [RUN_STEPS], long=True)
test_step, test_run_ended_well = step_tests(suspend=STEPS)
