# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
"""perftest's programs with all sizes, both directions, many QPs, events, inline data, SRQs, on RC, UC and UD.

Checked is that they end and print a line for each size, not the results.
"""

import re

import pytest
from boots import PAIR, step_tests
from steps import Step
from traffic import COMPLAINTS

pytestmark = pytest.mark.long

ALL_SIZES = [1 << shift for shift in range(1, 24)]
UD_SIZES = [1 << shift for shift in range(1, 13)]

# name -> program and its arguments, sizes
RUNS = {}


def runs(sizes, arguments, *programs, **variants):
    """Each program with the arguments and each variant's."""
    for program in programs:
        for name, more in variants.items():
            RUNS[f"{program}-{name.replace('_', '-')}"] = (f"{program} {arguments} {more}", sizes)


# RC without further options, all sizes: test_pair.py. These take 10 s each, most of it to fill 16 MiB of buffers.
runs(ALL_SIZES, "-a -n 20", "ib_send_bw", "ib_write_bw", "ib_read_bw", both_ways="-b")
runs(ALL_SIZES, "-a -n 20", "ib_send_bw", events="-e", srq="--use-srq -q 2")
runs(ALL_SIZES, "-a -n 20", "ib_send_bw", "ib_write_lat", uc="-c UC")
runs(ALL_SIZES, "-a -n 20", "ib_write_bw", inline_64="-I 64")
SMALL, LARGE = 200, 65536
for bytes_ in (SMALL, LARGE):
    runs([bytes_], f"-s {bytes_} -n 100", "ib_send_bw", "ib_write_bw", "ib_read_bw",
         **{f"{bytes_}_16_qps": "-q 16", f"{bytes_}_16_qps_both_ways": "-q 16 -b"})
    runs([bytes_], f"-s {bytes_} -n 50", "ib_send_bw", "ib_send_lat", "ib_write_bw", "ib_write_lat",
         **{f"{bytes_}_uc": "-c UC"})
    runs([bytes_], f"-s {bytes_} -n 50", "ib_send_lat", "ib_read_bw",
         **{f"{bytes_}_events": "-e"})
runs([SMALL], f"-s {SMALL} -n 50", "ib_send_bw", "ib_send_lat", "ib_write_bw", "ib_write_lat",
     inline_0="-I 0", inline_256="-I 256")
runs([SMALL], f"-s {SMALL} -n 50", "ib_send_bw", "ib_send_lat", uc_inline_256="-c UC -I 256", srq="--use-srq")
runs(UD_SIZES, "-a -c UD -n 50", "ib_send_bw", "ib_send_lat", ud="", ud_events="-e", ud_inline_64="-I 64")
runs(UD_SIZES, "-a -c UD -n 50", "ib_send_bw", ud_both_ways="-b")
runs([8], "-n 100", "ib_atomic_bw", "ib_atomic_lat", add="-A FETCH_AND_ADD", swap="-A CMP_AND_SWAP")
runs([8], "-n 100", "ib_atomic_bw", both_ways="-b", qps_16="-q 16", events="-e")

RUN_STEPS = [Step(name, f"perftest {18515 + number} {1 + number % 2} {2 - number % 2} {command}", 240 if " -a " in command else 90)
             for number, (name, (command, _)) in enumerate(RUNS.items())]
perftest = PAIR.part([*RUN_STEPS, COMPLAINTS], long=True)
test_step, test_run_ended_well = step_tests(perftest=[COMPLAINTS])


def sizes_of(text):
    """The first column of each result."""
    _, heading, table = text.partition("#bytes")
    assert heading, text
    return [int(row[1]) for row in re.finditer(r"^ *(\d+) +\d+ +\d+\.\d+.*$", table, re.MULTILINE)]


@pytest.mark.parametrize("name", RUNS)
def test_perftest(perftest, name):
    outcomes = perftest.check(name)
    number = list(RUNS).index(name)
    client = outcomes[1 - number % 2]
    assert sizes_of(client.text) == RUNS[name][1], client.tail()
