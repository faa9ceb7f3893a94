# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
"""SCSI of one VM's kernel for the other's, by iSER and by SRP, and RDS, with the commands of docs/applications.md."""

import applications
import pytest
import storage
from boots import Boot, step_tests
from pvrdmactl import OBJECTS, check_daemon_is_as_before, noted, nothing_left, stats_at_now
from steps import Step, guest_programs

pytestmark = [pytest.mark.slow, pytest.mark.long]

# Random data through the disk, and as many bytes through the device.
USE = """
    bytes() { sleep 0.1; rdma statistic show link $RDMA_DEV/1 | grep -o " $1_bytes [0-9]*" | cut -d ' ' -f 3; }
    use_disk() {
        local before=$(bytes rx)
        dd if=/dev/urandom of=/tmp/data bs=64k count=256 && dd if=/tmp/data of=/dev/sda bs=64k oflag=direct || return
        dd if=/dev/sda bs=64k count=256 iflag=direct | cmp - /tmp/data || return
        echo "moved $(($(bytes rx) - before))"
    }
"""


def on(node, heading, seconds=60):
    return Step(applications.name_of(heading), f"[ $NODE != {node} ] || {storage.script(heading)}", seconds)


def disk(protocol, target, host, disconnect, end):
    """Steps: the target and the host, one use, and the ends of both."""
    use = Step(f"{protocol}-use", f"{USE}\n[ $NODE != 1 ] || {{ before=$(bytes rx); raise noted; await used; "
                                  'echo "moved $(($(bytes rx) - before))"; exit; }\n'
                                  "await noted; use_disk; status=$?; raise used; exit $status")
    gone = Step(f"{protocol}-gone", "[ $NODE != 2 ] || until_true 100 test ! -e /dev/sda")
    return [on(1, target), on(2, host), use, on(2, disconnect), gone, on(1, end)]


ISER = disk("iser", "iSER target", "iSER initiator", "iSER logout", "iSER target's end")
SRP = disk("srp", "SRP target", "SRP initiator", "SRP disconnect", "SRP target's end")
RDS = Step("rds", f"""
    if [ $NODE = 1 ]; then
        {storage.script("RDS receiver")} >/tmp/rds & receiver=$!
        until_true 200 grep -q ready /tmp/rds && raise ready
        wait $receiver; status=$?; cat /tmp/rds; exit $status
    fi
    await ready; {storage.script("RDS sender")}""")
MODULES = Step("unload-modules", "modprobe -r ib_iser ib_srp && until_true 300 modprobe -r rds_rdma")
BEFORE, LEFT = noted("before"), nothing_left("nothing-left")
# The kernels report the SCSI hosts that end, but no faults of their own.
COMPLAINTS = Step("complaints", "! dmesg | grep -E 'WARNING|BUG|Oops|Call Trace|failed to drain|blocked for more than'")
STEPS = [BEFORE, *ISER, *SRP, RDS, MODULES, LEFT, COMPLAINTS]

scsi_long = Boot("scsi", packages="open-iscsi").part(STEPS, stats_at_now(BEFORE, LEFT), guest_programs, long=True)
test_step, test_run_ended_well = step_tests(scsi_long=STEPS)


@pytest.mark.parametrize("protocol", ["iser", "srp"])
def test_data_went_through_the_device(scsi_long, protocol):
    """16 MiB to the target, and back. A READ counts as received where its data comes from."""
    moved = [int(outcome.text.rpartition("moved ")[2].split()[0]) for outcome in scsi_long.check(f"{protocol}-use")]
    assert sum(moved) >= 32 << 20, moved


@pytest.mark.parametrize("node, heading", [(1, "RDS receiver"), (2, "RDS sender")])
def test_rds(scsi_long, node, heading):
    applications.check_output(heading, scsi_long.check(RDS)[node - 1].text)


@pytest.mark.parametrize("what", [what for what in OBJECTS if what != "cqs"])  # ib_core keeps a pool of CQs
def test_nothing_is_left_in_the_daemon(scsi_long, what):
    check_daemon_is_as_before(scsi_long, BEFORE, LEFT, what)
