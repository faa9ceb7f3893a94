# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
"""RDMA without being root, with the names and permissions that rdma-core's udev rules set, and within a limit of locked memory."""

import dataclasses
import re

import applications
import pytest
from boots import PAIR, step_tests
from steps import Step
from traffic import COMPLAINTS, user_meeting

pytestmark = pytest.mark.slow

# vmlab's guests have no udev; here it gets the event of the driver, as in any other system.
UDEV = Step("udev", """
    unload && /lib/systemd/systemd-udevd --daemon && insmod $driver && udevadm settle || exit
    ls -l /dev/infiniband
    rdma link show
    udevadm info --export-db | grep -B3 -A12 'DEVNAME=/dev/infiniband/uverbs'
    RDMA_DEV=$(ls /sys/class/infiniband) && until_true 100 has_gid""")
DEVICE = "RDMA_DEV=$(ls /sys/class/infiniband)\n"


def programs(text):
    """`text` is a program with its options, run by the user on both nodes."""
    step = user_meeting(text.split()[0], 18515, f"{text} -p 18515", f"{text} -p 18515 node1")
    return dataclasses.replace(step, script=DEVICE + step.script)


PROGRAMS = [
    Step("identity", "(as_user 'id -u; ulimit -l; ls -l /dev/infiniband; grep Cap /proc/self/status')"),
    programs("ibv_rc_pingpong -d $RDMA_DEV -g $GID_INDEX -c -s 65536 -n 200"),
    programs("ibv_ud_pingpong -d $RDMA_DEV -g $GID_INDEX -n 200"),
    programs("ibv_srq_pingpong -d $RDMA_DEV -g $GID_INDEX -n 200"),
    *(programs(f"{name} -F -d $RDMA_DEV -x $GID_INDEX -n 200")
      for name in ("ib_write_bw", "ib_read_lat", "ib_send_bw")),
    applications.meet("rping", 7174),
    Step("devinfo", "(as_user 'ibv_devinfo -v')"),
]
SMALL = Step("locked-memory", applications.script("Locked memory", 1))
RAISED = Step("raised-limit", "ulimit -l 8192\n" + applications.script("Raising the limit", 1))
# As in a container without the device node, or on a system without the udev rules of rdma-core.
FORBIDDEN = Step("forbidden", DEVICE + """
    chmod 600 /dev/infiniband/uverbs0
    (as_user "ibv_rc_pingpong -d $RDMA_DEV -g $GID_INDEX"); status=$?
    ls -l /dev/infiniband
    chmod 666 /dev/infiniband/uverbs0
    [ $status != 0 ]""")
OLD_NAME = Step("old-name", "udevadm control --exit && unload && load")
GOOD = [UDEV, *PROGRAMS, FORBIDDEN, RAISED, COMPLAINTS, OLD_NAME]

user = PAIR.part([UDEV, *PROGRAMS, FORBIDDEN, SMALL, RAISED, COMPLAINTS, OLD_NAME])
test_step, test_run_ended_well = step_tests(user=GOOD)


@pytest.mark.parametrize("node", ["uverbs0", "rdma_cm"])
def test_device_is_open_to_all(user, node):
    user.check_each(UDEV, rf"^crw-rw-rw- .*{node}$")


def test_management_is_not(user):
    """A user that may send MADs can act for the whole port."""
    user.check_each(UDEV, r"^crw------- .*umad0$")


def test_name_is_that_of_the_slot(user):
    """The name that rdma_rename gives: RoCE, PCI bus 0, slot 7."""
    user.check_each(UDEV, "link rocep0s7/1 state ACTIVE")


def test_user_has_no_privileges(user):
    for outcome in user.check("identity"):
        assert outcome.text.splitlines()[:2] == ["1000", "8192"]
        assert re.search(r"^CapEff:\s+0+$", outcome.text, re.MULTILINE), outcome.tail()


def test_device_that_the_user_may_not_open_gives_no_context(user):
    user.check_each(FORBIDDEN, "^Couldn't get context for rocep0s7$")
    user.check_each(FORBIDDEN, r"^crw------- .*uverbs0$")


@pytest.mark.parametrize("heading, step", [("Locked memory", SMALL), ("Raising the limit", RAISED)])
def test_limit_shows_as_documented(user, heading, step):
    applications.check_output(heading, user[step][0].text)


def test_too_little_locked_memory_fails(user):
    assert user[SMALL][0].status == 1, user.explain(SMALL)
