# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
"""Two VMs, our driver, our provider, our device: what programs do with them."""

import re

import pytest
from boots import PAIR, step_tests
from steps import Step, guest_programs
from traffic import ALL_SIZES, COMPLAINTS, CONNECTIONS, DEVINFO, FENCE, PERFTESTS, PINGPONGS, PLACEMENT

pytestmark = pytest.mark.slow

# Bad input: users.
ERRNO = Step("errno", "$SHARE/pvr_errno")
SMALL_MEMLOCK = Step("small-memlock", """
    ulimit -l 64
    setpriv --bounding-set=-ipc_lock --inh-caps=-ipc_lock ibv_rc_pingpong -d $RDMA_DEV -g $GID_INDEX -s 1048576
    [ $? = 1 ]""")
NO_PROVIDER = Step("no-provider", "provider none; IBV_SHOW_WARNINGS=1 ibv_devinfo; provider pvrdma; true")

NO_MODULE = Step("no-module", "unload || exit; ibv_rc_pingpong; echo ended with $?; ibv_devices; load")

# Exactly VMware's interface: no extension is offered, and all else works.
NO_EXTENSIONS = Step("no-extensions", """
    unload && insmod $driver extensions=0 && until_true 100 has_gid || exit
    pingpong 18515 1 2 -c -e -s 4096 -n 100
    status=$?
    ibv_devinfo -v -d $RDMA_DEV
    unload && load && exit $status""")
TIMESTAMPS = Step("rc_pingpong-timestamps", "pingpong 18515 1 2 -t -s 4096 -n 200")
LINK = Step("link", "rdma link show; ls /dev/infiniband")

CHECKED = [DEVINFO, LINK, *PINGPONGS, TIMESTAMPS, ALL_SIZES["ib_write_bw"], NO_EXTENSIONS, PLACEMENT, FENCE, ERRNO, COMPLAINTS, SMALL_MEMLOCK, NO_PROVIDER, NO_MODULE]
LONG = [*(step for step in ALL_SIZES.values() if step is not ALL_SIZES["ib_write_bw"]), *PERFTESTS, *CONNECTIONS, COMPLAINTS]

pair = PAIR.part(CHECKED, files=guest_programs)
pair_long = PAIR.part(LONG, files=guest_programs, long=True)
test_step, test_run_ended_well = step_tests(pair=CHECKED, pair_long=LONG)


SHOWN = {
    "transport": r"transport:\s+InfiniBand \(0\)",
    "vendor": r"vendor_id:\s+0x15ad",
    "one port": r"phys_port_cnt:\s+1",
    "queue pairs": r"max_qp:\s+[1-9]",
    "scatter-gather entries": r"max_sge:\s+[1-9]",
    "completion queues": r"max_cq:\s+[1-9]",
    "memory regions": r"max_mr:\s+[1-9]",
    "active port": r"state:\s+PORT_ACTIVE \(4\)",
    "Ethernet": r"link_layer:\s+Ethernet",
    "RoCE v2 GID": r"GID\[ *\d+\]:\s+::ffff:10\.77\.0\.[12], RoCE v2",
    "RoCE v2 GID of IPv6": r"GID\[ *\d+\]:\s+fd77::[12], RoCE v2",
}


@pytest.mark.parametrize("what", SHOWN)
def test_ibv_devinfo_shows(pair, what):
    pair.check_each(DEVINFO, SHOWN[what])


# An extension that is in use, by what it adds.
ADDED = {
    "MR_LAYOUT": r"page_size_cap:\s+0x7ffff000",
    "MW": r"max_mw:\s+[1-9]",
    "RESIZE": r"\sSRQ_RESIZE\s",
    "any": r"atomic_cap:\s+ATOMIC_GLOB",
    "MCAST": r"max_mcast_grp:\s+[1-9]",
    "CQ_TIMESTAMP": r"completion timestamp_mask:\s+0x0000ffffffffffff",
}


@pytest.mark.parametrize("extension", ADDED)
def test_extension_is_seen_only_where_it_is_used(pair, extension):
    pair.check_each(DEVINFO, ADDED[extension])
    for outcome in pair.check(NO_EXTENSIONS):
        assert not re.search(ADDED[extension], outcome.text), outcome.tail()


def test_completions_of_programs_have_timestamps(pair):
    """The clock counts nanoseconds, and the messages of the step do not take a minute each."""
    for outcome in pair.check(TIMESTAMPS):
        average = re.search(r"Average receive completion clock cycles = ([\d.]+)", outcome.text)
        assert average and 0 < float(average[1]) < 60e9, outcome.tail()


def test_programs_have_atomic_write(pair):
    """ib_core of this kernel refuses the right to FLUSH."""
    pair.check_each(PLACEMENT, "placement: 2000 rounds, 3 refusals$")


def test_link_is_active_at_the_netdev(pair):
    pair.check_each(LINK, "state ACTIVE physical_state LINK_UP netdev eth0")


def test_there_is_a_device_for_user_mads(pair):
    """ib_umad registers an agent at the GSI QP."""
    pair.check_each(LINK, "umad0")


def test_small_memlock_is_an_error_with_a_reason(pair):
    pair.check_each(SMALL_MEMLOCK, "Couldn't register MR")


def test_guest_without_the_module_has_no_device(pair):
    pair.check_each(NO_MODULE, "^No IB devices found$")
    pair.check_each(NO_MODULE, "^ended with 1$")


def test_guest_without_provider_gets_a_message(pair):
    pair.check_each(NO_PROVIDER, "no userspace device-specific driver found")
