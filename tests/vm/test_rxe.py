# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
"""The wire: an adapter and Soft-RoCE, each as server and as client. Soft-RoCE has no pvrdmad."""

import pytest
from applications import meet
from boots import Boot, step_tests
from steps import Step
from traffic import COMPLAINTS

pytestmark = pytest.mark.slow

# Port, node of the server, node of the client. Node 1 has the adapter.
BOTH = ("18515 1 2", "18516 2 1")
PROGRAM = "{program} -d $RDMA_DEV -g $GID_INDEX {args}"


def _pingpong(name, kind, args):
    command = PROGRAM.format(program=f"ibv_{kind}_pingpong", args=args)
    return Step(name, " && ".join(f"talk {way} {command}" for way in BOTH))


def _perftest(program, args):
    return Step(program, " && ".join(f"perftest {way} {program} -m 1024 {args}" for way in BOTH))


STEPS = [
    _pingpong("ud", "ud", "-s 1024 -n 50"),
    _pingpong("uc", "uc", "-m 1024 -s 5000 -n 50"),
    _pingpong("rc", "rc", "-m 1024 -s 4096 -n 100 -c"),
    _pingpong("rc-64k", "rc", "-m 1024 -s 65536 -n 50 -c"),
    _pingpong("rc-events", "rc", "-m 1024 -s 4096 -n 100 -c -e"),
    _pingpong("rc-mtu-256", "rc", "-m 256 -s 9000 -n 50 -c"),
    _perftest("ib_send_bw", "-s 4096 -n 200"),
    _perftest("ib_write_bw", "-s 65536 -n 100"),
    _perftest("ib_read_bw", "-s 65536 -n 50"),
    _perftest("ib_atomic_bw", "-A FETCH_AND_ADD -n 100"),
    meet("rping", 7174),
    meet("ucmatose", 7471),
    COMPLAINTS,
]
rxe = Boot("rxe", driver="pvrdma,rxe").part(STEPS)
test_step, test_run_ended_well = step_tests(rxe=STEPS)
