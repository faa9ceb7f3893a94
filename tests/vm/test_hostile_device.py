# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
"""The driver against a device with faults. A VM has two adapters of tests/rogue's pvrdmad: the first one works correctly, the
second one has one fault after the other, and is bound to the driver anew for each of them."""

import dataclasses
import re

import pytest
from boots import HOSTILE, ROGUE, RogueBoot, step_tests
from steps import Step, guest_programs

pytestmark = pytest.mark.slow

IP = "10.78.0.1"
# The allowed ends.
REFUSED = "the driver does not take the device"
FAILED = "the device is declared failed, once, and programs end with an error"
ERRORS = "programs end with an error"
ENDS = "the device stays, whatever programs make of it"
KEPT = "the device stays, without the memory of the object that it did not destroy"
WORKS = "the device stays, and programs are not disturbed"


@dataclasses.dataclass(frozen=True)
class Fault:
    """One of tests/rogue/faults.c, the program that triggers it (of LIB), and a regular expression for the log of the kernel.
    fault: its name, if the step has another one."""

    name: str
    end: str
    program: str = "true"
    log: str = ""
    fault: str = ""


FAULTS = [
    Fault("version-0", REFUSED, log="device version is 0, expected 17 or newer"),
    Fault("errors-for-all", REFUSED, log="device refused activation: -EIO"),
    Fault("caps-zero", REFUSED, log="device did not accept the shared region"),
    Fault("caps-ones", REFUSED, log="device mode is 255, expected 0"),
    Fault("caps-huge", WORKS, "devinfo && pingpong"),
    Fault("mode-1", REFUSED, log="device mode is 1, expected 0"),
    Fault("two-ports", REFUSED, log="device has 2 ports, expected 1"),
    Fault("both-gid-types", REFUSED, log="offers GID types 0x3, expected 0x1 .* 0x2"),
    Fault("max-qp-0", REFUSED, log="device offers max_qp = 0, expected 2 or more"),
    Fault("max-sge-0", REFUSED, log="device offers max_sge = 0, expected 1 or more"),
    Fault("no-gids", REFUSED, log="device offers gid_tbl_len = 0, expected 1 or more"),
    Fault("max-uar-1000", WORKS, "pingpong"),
    Fault("vectors-0", WORKS, "pingpong"),
    Fault("vectors-ones", WORKS, "pingpong"),
    Fault("clock-stands", ERRORS, "verb pvr_timestamps"),
    Fault("port-ones", WORKS, "devinfo"),
    Fault("wrong-ack", FAILED, log="QUERY_PORT: response has ack 0x800000ff, .* expected 0x80000000"),
    Fault("wrong-key", FAILED, "devinfo", "CREATE_UC: no response within 10 s"),
    Fault("error-in-response", ERRORS, "devinfo"),
    Fault("slow", WORKS, "devinfo"),
    Fault("uc-handle-0", FAILED, "devinfo", "device failed: user context got handle 0"),
    Fault("pd-handle", FAILED, "devinfo", "device failed: a PD's handle has more than 24 bits"),
    Fault("cq-handle", FAILED, "devinfo", "device gave handle 0xdeadbeef"),
    Fault("cq-handle-of-nobody", KEPT, "killed", "DESTROY_CQ of handle 5000 refused: -EINVAL"),
    Fault("cq-size", FAILED, "devinfo", "device failed: it changed the size of a CQ"),
    Fault("qp-handle", FAILED, "pingpong", "device gave QP number .*, handle 3735928559; expected .* below"),
    Fault("qp-kept", KEPT, "verb pvr_qpcost -q 1", "ibv_create_qp.*Address already in use"),
    Fault("qpn-0", FAILED, "pingpong", "device gave QP number 0,"),
    Fault("qpn-1", FAILED, "pingpong", "device gave QP number 1,"),
    Fault("qpn-25-bits", FAILED, "pingpong", "device gave QP number 16777216,"),
    Fault("srq-handle", FAILED, "timeout 20 ibv_srq_pingpong -d $ib -g 0", "device gave handle 0xdeadbeef"),
    Fault("xrcd-handle", KEPT, "xrc", "DESTROY_XRCD of handle 3735928559 refused: -EINVAL"),
    Fault("xrcd-refused", ERRORS, "xrc"),
    Fault("moderation-refused", ERRORS, "verb pvr_moderation"),
    Fault("page-fault-too-long", ERRORS, "limit=2 verb pvr_odp"),
    Fault("page-fault-elsewhere", ERRORS, "limit=2 verb pvr_odp"),
    Fault("page-fault-unknown", ERRORS, "limit=2 verb pvr_odp"),
    Fault("pages-refused", FAILED, "limit=10 verb pvr_odp", "device failed: it refused to give up pages"),
    Fault("mr-handle", KEPT, "killed", "DESTROY_MR of handle 3735928559 refused: -EINVAL"),
    Fault("destroy-refused", KEPT, "killed", "DESTROY_PD of handle .* refused: -EINVAL"),
    Fault("destroys-refused", FAILED, "for i in $(seq 40); do devinfo || break; done; false", "refused to destroy too many objects"),
    Fault("unknown-qp", WORKS, "kernel_pair"),
    Fault("wild-request", WORKS, "kernel_pair"),
    Fault("reported-twice", WORKS, "kernel_pair"),
    Fault("wild-opcode", WORKS, "kernel_pair"),
    Fault("wild-flags", ENDS, "kernel_pair"),
    Fault("wild-status", ENDS, "kernel_pair"),
    Fault("index-jumps", FAILED, "kernel_pair", r"cq \d+: device wrote prod_tail 0x[0-9a-f]+, cons_head is"),
    Fault("wild-index", FAILED, "kernel_pair", r"cq \d+: device wrote prod_tail 0xdeadbeef, cons_head is"),
    Fault("wild-queue-index", FAILED, "kernel_pair", "device failed: it wrote an impossible index of a queue"),
    Fault("wild-events", WORKS, "pingpong"),
    Fault("fatal-event", FAILED, "devinfo; sleep 0.2; devinfo", "device failed: it reported a fatal error"),
    Fault("wild-event-index", WORKS, "pingpong", "async events lost: the device overran the ring"),
    Fault("notify-nobody", WORKS, "pingpong"),
    Fault("wild-notify-index", WORKS, "pingpong", "CQ notifications lost: the device overran the ring"),
]
# Those of verbs that need a newer kernel: regions of a dma-buf, and the right to FLUSH.
FAULTS_LONG = [
    Fault("dmabuf-refused", ERRORS, "verb pvr_dmabuf", fault="mr-refused"),
    Fault("dmabuf-keys", ERRORS, "verb pvr_dmabuf", fault="mr-keys"),
    Fault("dmabuf-handle", KEPT, "verb pvr_dmabuf; false", "DESTROY_MR of handle 3735928559 refused: -EINVAL", "mr-handle"),
    Fault("flush-refused-for-mr", WORKS, "placement", "placement: no FLUSH: Invalid argument"),
    Fault("flush-refused-for-qp", FAILED, "placement", "MODIFY_QP of handle .* refused: -EINVAL"),
    Fault("placement-keys", ERRORS, "placement", fault="mr-keys"),
]

LIB = """
    pci=/sys/bus/pci/drivers/pvrdma
    # By address, as vmlab puts them.
    rogue=$(grep -l 0x0820 /sys/bus/pci/devices/*/device | sed -n 2p | cut -d/ -f6)
    restarts=/sys/module/pvrdma/parameters/restarts
    fault_is() { echo "$1" >$SHARE/faults/node1-2; }
    no_fault() { rm -f $SHARE/faults/node1-2; }
    bind() { echo $rogue >$pci/bind; }
    unbind() { echo $rogue >$pci/unbind; }
    bound() { [ -e $pci/$rogue ]; }
    find_ib() { ib=$(ls /sys/bus/pci/devices/$rogue/infiniband 2>/dev/null); }
    up()
    {
        local state gid port=/sys/class/infiniband/$ib/ports/1
        { read -r state <$port/state && read -r gid <$port/gids/0; } 2>/dev/null &&
            [[ $state = *ACTIVE && $gid = fe80:* ]] && has_ip_gid $ib
    }

    # Programs that meet faults.
    devinfo() { timeout 20 ibv_devinfo -v -d $ib >/tmp/devinfo; }
    server() { timeout 20 "$@" & server=$!; until listening 7174 || ! kill -0 $server 2>/dev/null; do sleep 0.1; done; }
    client() { timeout 10 "$@" || { local status=$?; kill $server 2>/dev/null; wait $server; return $status; }; wait $server; }
    both() { server "$@" && kill -0 $server && client "$@" $last; }
    pingpong() { last=127.0.0.1 both ibv_rc_pingpong -d $ib -g 0 -n 10 -p 7174; }
    xrc() { last=127.0.0.1 both ibv_xsrq_pingpong -d $ib -g 0 -n 10 -p 7174; }
    verb() { RDMA_DEV=$ib GID_INDEX=0 timeout ${limit:-60} $SHARE/"$@"; }
    # At each end.
    placed() { timeout 30 env LD_LIBRARY_PATH=$SHARE RDMA_DEV=$ib GID_INDEX=0 $SHARE/pvr_placement "$@"; }
    placement()
    {
        placed & server=$!; until listening 18602 || ! kill -0 $server 2>/dev/null; do sleep 0.1; done
        placed 127.0.0.1 && wait $server || { local status=$?; kill $server 2>/dev/null; wait $server; return $status; }
    }
    killed() { server ibv_rc_pingpong -d $ib -g 0 -p 7174; kill $server; wait $server; false; }
    # rdma_cm's messages are the kernel's own.
    kernel_pair()
    {
        server rping -s -a %s -p 7174 -C 5
        client rping -c -a %s -p 7174 -C 5
    }
""" % (IP, IP)
SET_UP = Step("set-up", LIB + """
    mkdir $SHARE/faults; echo 0 >$restarts
    nic=$(ls /sys/bus/pci/devices/$rogue/net); echo "rogue $rogue, NIC $nic"
    ip link set $nic up && ip address add %s/24 dev $nic
    find_ib; until_true 100 up || { grep . /sys/class/infiniband/$ib/ports/1/gids/[0-3]; exit 1; }
    devinfo && pingpong && kernel_pair || exit
    unbind && ! bound""" % IP, 60)


def step_of(fault):
    return Step(fault.name, LIB + f"""
    echo "fault: {fault.name}" >/dev/kmsg
    fault_is {fault.fault or fault.name}
    bind 2>&1
    find_ib
    if [ -n "$ib" ]; then
        until_true 20 up || echo "port is down"
        {fault.program}
        echo "program: $?"
        {"no_fault; pingpong; echo honest: $?" if fault.end == KEPT else ""}
    else
        echo "no device"
    fi
    ! bound || unbind
    no_fault
    dmesg | sed '1,/fault: {fault.name}$/d'
    ! bound""", 60)


HONEST = Step("honest-adapters-work", LIB + """
    bind && find_ib && until_true 100 up && pingpong && kernel_pair || exit
    ib=$RDMA_DEV pingpong""")
UNLOAD = Step("unload-with-a-failed-device", LIB + """
    find_ib; fault_is qpn-0; pingpong && exit 1
    unload && no_fault && load && find_ib && until_true 100 up && pingpong""")
# A command times out, then the device reports a fatal error. The third failure is one too many.
RESTART = Step("restart", LIB + """
    failed() { fault_is $1; devinfo; sleep 0.2; devinfo; no_fault; }
    said() { dmesg | sed '1,/fault: restart$/d' | grep -q "$1"; }
    works() { find_ib; [ -n "$ib" ] && up 2>/dev/null; }
    echo 2 >$restarts; echo "fault: restart" >/dev/kmsg
    find_ib; failed wrong-key
    until_true 100 said "restart 1 of at most 2" && until_true 200 works && pingpong && kernel_pair; first=$?
    failed fatal-event
    until_true 100 said "restart 2 of at most 2" && until_true 200 works && pingpong && kernel_pair; second=$?
    failed fatal-event
    until_true 100 said "no restart: 2 of at most 2"; third=$?
    echo 0 >$restarts; dmesg | sed '1,/fault: restart$/d'
    unbind; bind; until_true 100 works || exit
    echo "$first $second $third"
    [ "$first $second $third" = "0 0 0" ] && [ "$(dmesg | grep -c 'command timed out$')" != 0 ]""", 120)
# Programs of all verbs meet a device that fails and is restarted. Then all of them work again.
RESTART_IN_USE = Step("restart-in-use", LIB + """
    works() { find_ib; [ -n "$ib" ] && up 2>/dev/null; }
    again_and_again() { while "$@" >/dev/null 2>&1; do :; done; }
    all_verbs()
    {
        verb pvr_odp && xrc && verb pvr_moderation && verb pvr_timestamps && verb pvr_dmabuf && placement
    }
    log() { dmesg | sed '1,/fault: restart-in-use$/d'; }
    echo 1 >$restarts; echo "fault: restart-in-use" >/dev/kmsg
    bind; until_true 100 works && all_verbs || exit
    programs=
    for program in pvr_odp pvr_moderation pvr_timestamps pvr_dmabuf; do
        again_and_again verb $program & programs="$programs $!"
    done
    again_and_again placement & programs="$programs $!"
    server ibv_xsrq_pingpong -d $ib -g 0 -p 7174
    sleep 1; kill -0 $programs $server || exit
    fault_is fatal-event; devinfo; sleep 0.2; no_fault
    wait $programs; kill $server 2>/dev/null; wait $server
    until_true 200 works && all_verbs; status=$?
    echo 0 >$restarts; log; unbind
    [ $status = 0 ] && log | grep -q "restart 1 of at most 1" """, 300)
COMPLAINTS = Step("complaints", "! dmesg | grep -E 'WARNING|BUG|Oops|KASAN|Call Trace'")
STEPS = [SET_UP, *map(step_of, FAULTS), HONEST, RESTART, UNLOAD, COMPLAINTS]


STEPS_LONG = [SET_UP, *map(step_of, FAULTS_LONG), RESTART_IN_USE, HONEST, COMPLAINTS]


hostile = HOSTILE.part(STEPS, files=guest_programs)
hostile_long = RogueBoot("hostile-device-7.2-", kernel="7.2", nodes=1, adapters=2, pvrdmad=ROGUE).part(
    STEPS_LONG, files=guest_programs, long=True)
test_step, test_run_ended_well = step_tests(
    hostile=[SET_UP, HONEST, RESTART, UNLOAD, COMPLAINTS], hostile_long=[SET_UP, RESTART_IN_USE, HONEST, COMPLAINTS])


def program_status(text):
    found = re.search(r"^program: (\d+)$", text, re.MULTILINE)
    return found and int(found[1])


def check_fault(run, fault):
    text = run.check(fault.name)[0].text
    status = program_status(text)
    assert re.search(fault.log, text), run.explain(fault.name, f"not in the output: '{fault.log}'")
    assert text.count("device failed: ") == (fault.end == FAILED), run.explain(fault.name, fault.end)
    if fault.end == REFUSED:
        assert status is None, run.explain(fault.name, fault.end)
    elif fault.end == WORKS:
        assert status == 0, run.explain(fault.name, fault.end)
    elif fault.end == ERRORS or fault.end == FAILED:
        assert status != 0, run.explain(fault.name, fault.end)
    elif fault.end == KEPT:
        assert status != 0 and "honest: 0" in text, run.explain(fault.name, fault.end)


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.name)
def test_fault(hostile, fault):
    check_fault(hostile, fault)


@pytest.mark.long
@pytest.mark.parametrize("fault", FAULTS_LONG, ids=lambda fault: fault.name)
def test_fault_of_newer_verbs(hostile_long, fault):
    check_fault(hostile_long, fault)
