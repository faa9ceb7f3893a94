# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
"""VMs with -device pvrdma move among three hosts while their queue pairs work with peers on the same host and on others.

Each message is numbered, each byte is compared, and no connection fails. The moves are those of `labctl migrate-node`.
"""

import re

import pytest
from documents import last_line_of_make
from steps import guest_programs
from vmlab_run import ROOT

pytestmark = [pytest.mark.slow, pytest.mark.long]

# Node 1 begins on host 1, as does node 4; nodes 2 and 3 are on hosts 2 and 3. Node 4 asks for the moves.
LOAD = """#!/bin/bash
set -e
. /vmlab/guest/moving.sh
barrier begin
for peer in 2 3 4; do stream $((18800 + peer)) $peer; done
for peer in 2 4; do verify $((18810 + peer)) $peer; done
write_bw 18820 3
barrier running
if [ $NODE = 4 ]; then
{moves}
fi
barrier moved 300
end_programs
"""
ALONE = "".join(f"move 1 {host}\n" for host in (2, 3, 1) * 4)
# Node 2 begins on host 2. Both ends of connections move at once: past each other, to the same host, from the same host.
BOTH = "".join(f"move 1 {one} & a=$!; move 2 {two} & b=$!; wait $a; wait $b\n" for one, two in ((2, 1), (3, 3), (1, 2), (2, 1)))


def travel(vmlab, moves):
    vmlab.put(*(path for path in guest_programs() if path.name in ("pvr_stream", "pvr_verify")))
    return vmlab(LOAD.format(moves=moves), "--migratable", hosts=3, nodes=4, memory="512M", timeout=500).check()


def check(result, moves):
    made = re.findall(r"@move (node\d) (host\d) (\d+) (\d+)$", result.text(4), re.MULTILINE)
    assert len(made) == moves, result.stdout
    streams = re.findall(r"stream: (\d+) messages, (\d+) wrong, (\d+) lost, (\d+) duplicated, longest gap ([\d.]+) ms", result.stdout)
    assert len(streams) == 3 and all(int(row[0]) > 1000 for row in streams), result.stdout
    assert {row[1:4] for row in streams} == {("0", "0", "0")}, streams
    verified = re.findall(r"verify: (\d+) operations, \d+ bytes, (\d+) errors", result.stdout)
    assert len(verified) >= 4 and all(errors == "0" for _, errors in verified), result.stdout
    assert "@writes 65536" in result.text(3)
    print("downtimes", [int(row[2]) for row in made], "gaps", [row[4] for row in streams])


def test_vm_moves_12_times_among_its_peers(vmlab):
    check(travel(vmlab, ALONE), 12)


def test_both_ends_move_at_once(vmlab):
    check(travel(vmlab, BOTH), 8)


# 16 queue pairs write 128 MiB of node 1's RAM again and again; the network of the migration carries 200 MB/s, and a VM may
# stand still for 300 ms.
BUSY = """#!/bin/bash
set -e
writes="ib_write_bw -d $RDMA_DEV -x $GID_INDEX -s 8388608 -q 16 -D 1 --run_infinitely -F"
if [ $NODE = 1 ]; then
    $writes >/tmp/writes &
    until ss -ltnH "sport = :18515" | grep -q .; do sleep 0.1; done
fi
barrier listens
if [ $NODE = 2 ]; then
    stdbuf -oL $writes node1 >/tmp/writes &
    until grep -q '^ *8388608' /tmp/writes; do sleep 0.1; done
    echo "@before $(grep '^ *8388608' /tmp/writes | tail -n 1)"
    echo "@move $(labctl migrate-node 1 2 200)"
    lines=$(wc -l </tmp/writes)
    until [ $(wc -l </tmp/writes) -ge $((lines + 3)) ]; do sleep 0.1; done
    echo "@after $(grep '^ *8388608' /tmp/writes | tail -n 1)"
fi
barrier moved 400
kill $! || true
"""


def test_vm_moves_whose_peer_writes_faster_than_the_network(vmlab):
    result = vmlab(BUSY, "--migratable", "--pvrdmad-log-level", "info", hosts=2, memory="768M", timeout=500).check()
    total, = re.findall(r"@move \d+ (\d+)$", result.text(2), re.MULTILINE)
    rates = re.findall(r"@(?:before|after) +8388608 +\d+ +[\d.]+ +([\d.]+)", result.text(2))
    throttled = re.findall(r"peers wait for (\d+) % of the time", "".join(path.read_text() for path in result.logs.glob("pvrdmad*.log")))
    print("ms", total, "MiB/s", rates, "throttle", throttled)
    assert len(rates) == 2 and all(float(rate) > 200 for rate in rates), result.stdout
    # It begins with QEMU's cpu-throttle-initial, and ends with the log.
    assert throttled[0] == "20" and throttled[-1] == "0", throttled


REFUSED = """#!/bin/bash
ask() { echo "$*: $(labctl migrate-node "$@" 2>&1)"; }
[ $NODE = 1 ] || exit 0
ask 1 1
ask 1 3
ask 7 2
ask 2 x
"""


def test_bad_requests_are_refused(vmlab):
    text = vmlab(REFUSED, "--migratable", hosts=2, memory="512M").check().text(1)
    assert "1 1: labctl migrate-node: node1 is on host 1" in text
    assert "1 3: labctl migrate-node: there is no host 3, only 1 to 2" in text
    assert "7 2: labctl migrate-node: there is no node 7, only 1 to 2" in text
    assert "2 x: labctl migrate-node: migrate-node does not take 2 x" in text


def test_demo_ends_as_documented():
    last = last_line_of_make("demo-migration")
    assert re.fullmatch(r"demo-migration: node1 moved host1 -> host2 -> host1, QEMU downtime \d+ and \d+ ms, longest gap \d+ ms, "
                        r"\d+ messages, 0 wrong, 0 lost, 0 duplicated", last), last
    assert "make demo-migration" in (ROOT / "docs" / "migration.md").read_text()
