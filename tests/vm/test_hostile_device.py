# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
"""The driver against a device that lies. A VM with two adapters of tests/liar's pvrdmad: the first is honest, the
second tells one lie after the other, and is bound to the driver anew for each of them."""

import dataclasses
import os
import re

import pytest
from vmlab_run import ROOT
from steps import Step, ids, run_steps

pytestmark = pytest.mark.slow

LIAR = ROOT / "build" / "host" / "tests" / "liar" / "pvrdmad-liar"
IP = "10.78.0.1"
# How it may end.
REFUSED = "the driver does not take the device"
FAILED = "the device is declared failed, once, and programs end with an error"
ERRORS = "programs end with an error"
ENDS = "the device stays, whatever programs make of it"
WORKS = "the device stays, and programs are not disturbed"


@dataclasses.dataclass(frozen=True)
class Lie:
    """One of tests/liar/lies.c, the program that meets it (of LIB), and what the kernel says, a regular expression."""

    name: str
    end: str
    program: str = "true"
    said: str = ""


LIES = [
    Lie("version-0", REFUSED, said="device version is 0, expected 17 or newer"),
    Lie("errors-for-all", REFUSED, said="device refused activation: -EIO"),
    Lie("caps-zero", REFUSED, said="device did not accept the shared region"),
    Lie("caps-ones", REFUSED, said="device mode is 255, expected 0"),
    Lie("caps-huge", WORKS, "devinfo && pingpong"),
    Lie("mode-1", REFUSED, said="device mode is 1, expected 0"),
    Lie("two-ports", REFUSED, said="device has 2 ports, expected 1"),
    Lie("both-gid-types", REFUSED, said="offers GID types 0x3, expected 0x1 .* 0x2"),
    Lie("max-qp-0", REFUSED, said="device offers max_qp = 0, expected 2 or more"),
    Lie("max-sge-0", REFUSED, said="device offers max_sge = 0, expected 1 or more"),
    Lie("no-gids", REFUSED, said="device offers gid_tbl_len = 0, expected 1 or more"),
    Lie("max-uar-1000", WORKS, "pingpong"),
    Lie("port-ones", WORKS, "devinfo"),
    Lie("wrong-ack", FAILED, said="QUERY_PORT: response has ack 0x80000019, .* expected 0x80000000"),
    Lie("wrong-key", FAILED, "devinfo", "CREATE_UC: no response within 10 s"),
    Lie("error-in-response", ERRORS, "devinfo"),
    Lie("uc-handle-0", FAILED, "devinfo", "device failed: user context got handle 0"),
    Lie("pd-handle", FAILED, "devinfo", "device failed: a PD's handle has more than 24 bits"),
    Lie("cq-handle", FAILED, "devinfo", "device gave handle 0xdeadbeef"),
    Lie("cq-handle-of-nobody", FAILED, "pingpong", "DESTROY_CQ of handle 1 refused: -EINVAL"),
    Lie("cq-size", FAILED, "devinfo", "device failed: it changed the size of a CQ"),
    Lie("qp-handle", FAILED, "pingpong", "device gave QP number .*, handle 3735928559; expected .* below"),
    Lie("qpn-0", FAILED, "pingpong", "device gave QP number 0,"),
    Lie("qpn-1", FAILED, "pingpong", "device gave QP number 1,"),
    Lie("qpn-25-bits", FAILED, "pingpong", "device gave QP number 16777216,"),
    Lie("srq-handle", FAILED, "timeout 20 ibv_srq_pingpong -d $ib -g 0", "device gave handle 0xdeadbeef"),
    Lie("mr-handle", FAILED, "killed", "DESTROY_MR of handle 3735928559 refused: -EINVAL"),
    Lie("destroy-refused", FAILED, "killed", "DESTROY_PD of handle .* refused: -EINVAL"),
    Lie("unknown-qp", WORKS, "kernel_pair"),
    Lie("wild-request", WORKS, "kernel_pair"),
    Lie("told-twice", WORKS, "kernel_pair"),
    Lie("wild-opcode", WORKS, "kernel_pair"),
    Lie("wild-flags", ENDS, "kernel_pair"),
    Lie("wild-status", ENDS, "kernel_pair"),
    Lie("index-jumps", FAILED, "kernel_pair", r"cq \d+: device wrote prod_tail 0x[0-9a-f]+, cons_head is"),
    Lie("wild-index", FAILED, "kernel_pair", r"cq \d+: device wrote prod_tail 0xdeadbeef, cons_head is"),
    Lie("wild-events", WORKS, "pingpong"),
    Lie("fatal-event", FAILED, "devinfo; sleep 0.2; devinfo", "device failed: it reported a fatal error"),
    Lie("wild-event-index", WORKS, "pingpong", "async events lost: the device overran the ring"),
    Lie("notify-nobody", WORKS, "pingpong"),
    Lie("wild-notify-index", WORKS, "pingpong", "CQ notifications lost: the device overran the ring"),
]

LIB = """
    pci=/sys/bus/pci/drivers/pvrdma
    # By address, as vmlab puts them.
    liar=$(grep -l 0x0820 /sys/bus/pci/devices/*/device | sed -n 2p | cut -d/ -f6)
    lie_is() { echo "$1" >$SHARE/lies/node1-2; }
    honest() { rm -f $SHARE/lies/node1-2; }
    bind() { echo $liar >$pci/bind; }
    unbind() { echo $liar >$pci/unbind; }
    bound() { [ -e $pci/$liar ]; }
    find_ib() { ib=$(ls /sys/bus/pci/devices/$liar/infiniband 2>/dev/null); }
    up()
    {
        grep -q ACTIVE /sys/class/infiniband/$ib/ports/1/state && [ -n "$(gid_index_of $ib)" ] &&
            grep -q ^fe80 /sys/class/infiniband/$ib/ports/1/gids/0
    }

    # What meets lies.
    devinfo() { timeout 20 ibv_devinfo -v -d $ib >/tmp/devinfo; }
    server() { timeout 20 "$@" & server=$!; until listening 7174 || ! kill -0 $server 2>/dev/null; do sleep 0.1; done; }
    client() { timeout 10 "$@" || { local status=$?; kill $server 2>/dev/null; wait $server; return $status; }; wait $server; }
    both() { server "$@" && kill -0 $server && client "$@" $last; }
    pingpong() { last=127.0.0.1 both ibv_rc_pingpong -d $ib -g 0 -n 50 -p 7174; }
    killed() { server ibv_rc_pingpong -d $ib -g 0 -p 7174; kill $server; wait $server; false; }
    # rdma_cm's messages are the kernel's own.
    kernel_pair()
    {
        server rping -s -a %s -p 7174 -C 5
        client rping -c -a %s -p 7174 -C 5
    }
""" % (IP, IP)
SET_UP = Step("set-up", LIB + """
    mkdir $SHARE/lies
    nic=$(ls /sys/bus/pci/devices/$liar/net); echo "liar $liar, NIC $nic"
    ip link set $nic up && ip address add %s/24 dev $nic
    find_ib; until_true 100 up || { grep . /sys/class/infiniband/$ib/ports/1/gids/[0-3]; exit 1; }
    devinfo && pingpong && kernel_pair || exit
    unbind && ! bound""" % IP, 60)


def step_of(lie):
    return Step(lie.name, LIB + f"""
    echo "lie: {lie.name}" >/dev/kmsg
    lie_is {lie.name}
    bind 2>&1
    find_ib
    if [ -n "$ib" ]; then
        until_true 20 up || echo "port is down"
        {lie.program}
        echo "program: $?"
    else
        echo "no device"
    fi
    ! bound || unbind
    honest
    dmesg | sed '1,/lie: {lie.name}$/d'
    ! bound""", 60)


HONEST = Step("honest-adapters-work", LIB + """
    bind && find_ib && until_true 100 up && pingpong && kernel_pair || exit
    ib=$RDMA_DEV pingpong""")
UNLOAD = Step("unload-with-a-failed-device", LIB + """
    find_ib; lie_is qpn-0; pingpong && exit 1
    unload && honest && load && find_ib && until_true 100 up && pingpong""")
COMPLAINTS = Step("complaints", "! dmesg | grep -E 'WARNING|BUG|Oops|KASAN|Call Trace'")
STEPS = [SET_UP, *map(step_of, LIES), HONEST, UNLOAD, COMPLAINTS]


def tell_lies(folder, steps, **options):
    """run_steps() with two adapters, the second of which is the liar."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(os.environ, "PVR_LIES", str(folder / "share" / "lies"))
        return run_steps(folder, steps, nodes=1, adapters=2, pvrdmad=LIAR, **options)


@pytest.fixture(scope="module")
def hostile(tmp_path_factory):
    return tell_lies(tmp_path_factory.mktemp("hostile-device"), STEPS, timeout=400)


def program_status(text):
    found = re.search(r"^program: (\d+)$", text, re.MULTILINE)
    return found and int(found[1])


@pytest.mark.parametrize("lie", [pytest.param(lie, id=lie.name) for lie in LIES])
def test_lie(hostile, lie):
    text = hostile.check(lie.name)[0].text
    status = program_status(text)
    assert re.search(lie.said, text), hostile.explain(lie.name, f"the kernel does not say '{lie.said}'")
    assert text.count("device failed: ") == (lie.end == FAILED), hostile.explain(lie.name, lie.end)
    if lie.end == REFUSED:
        assert status is None, hostile.explain(lie.name, lie.end)
    elif lie.end == WORKS:
        assert status == 0, hostile.explain(lie.name, lie.end)
    elif lie.end == ERRORS or lie.end == FAILED:
        assert status != 0, hostile.explain(lie.name, lie.end)


@pytest.mark.parametrize("step", ids([SET_UP, HONEST, UNLOAD, COMPLAINTS]))
def test_hostile_device(hostile, step):
    hostile.check(step)


def test_run_ended_well(hostile):
    hostile.check_end()
