# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
"""perftest by the wire, between an adapter and Soft-RoCE of each kernel: eight programs, all sizes, each node as server,
connected by perftest itself and by rdma_cm (-R).

Checked is that they end and print a line for each size, not the results.
"""

import re

import pytest
from boots import RXE, each_run, step_tests
from steps import LATE_CONNECT, Step, guest_programs
from traffic import COMPLAINTS

pytestmark = [pytest.mark.slow, pytest.mark.long]

# perftest's least number of iterations. With all sizes up to 8 MiB, each is 16 MiB of data.
SIZES = "-a -n 5"
PROGRAMS = {f"ib_{kind}_{measured}": SIZES if kind != "atomic" else "-n 100"
            for kind in ("write", "read", "send", "atomic") for measured in ("bw", "lat")}
# perftest's own timeout of 67 ms is over eight times before a busy machine has scheduled the peer's VM. Soft-RoCE itself never
# ends its retries.
BARE = "-m 1024 -u 19"
ALL_SIZES = [1 << shift for shift in range(1, 24)]

# step -> the node of its client, the sizes in its output
RUNS = {}
for program, arguments in PROGRAMS.items():
    for connected, prefix, more in (("bare", "", BARE), ("R", LATE_CONNECT, "-R")):
        for server in (1, 2):
            port = 18515 + len(RUNS)
            name = f"{program}-{connected}-server-on-node{server}"
            RUNS[Step(name, f"{prefix}perftest {port} {server} {3 - server} {program} {arguments} {more}", 480)] = (
                3 - server, ALL_SIZES if "-a" in arguments else [8])

STEPS = [*RUNS, COMPLAINTS]
rxe_6_1_long, rxe_6_12_long, rxe_7_2_long = (RXE[kernel].part(STEPS, files=guest_programs, long=True) for kernel in RXE)
KERNELS = ("rxe_6_1_long", "rxe_6_12_long", "rxe_7_2_long")
test_step, test_run_ended_well = step_tests(**dict.fromkeys(KERNELS, [COMPLAINTS]))


def sizes_of(text):
    """The first column of each result."""
    return [int(size) for size in re.findall(r"^ *(\d+) +\d+ +\d+\.\d+", text.partition("#bytes")[2], re.MULTILINE)]


@pytest.mark.parametrize("run", each_run(*KERNELS), indirect=True)
@pytest.mark.parametrize("step", RUNS, ids=lambda step: step.name)
def test_perftest(run, step):
    client, sizes = RUNS[step]
    outcome = run.check(step)[client - 1]
    assert sizes_of(outcome.text) == sizes, outcome.tail()
