# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
"""When the daemon polls, and the settings of --poll; when it sleeps. The CPU time of both."""

import os
import re
import subprocess
import sys
import time

import pytest

from daemon_idle import assert_idle, cpu_seconds, sleeps
from daemon_process import PATIENCE, wait_until
from sender import Sender
from vfio_user import attach, memfd

LONG = ("--poll", "1000000")  # a second


def total(daemon, column):
    return sum(int(row[column]) for row in daemon.table("workers"))


@pytest.fixture
def attach_sender():
    """A function that attaches a Sender to an adapter of a daemon."""
    made = []

    def go(daemon, number=1, **kwargs):
        client = attach(daemon.socket(number))
        made.append(client)
        made.append(Sender(client, **kwargs))
        return made[-1]

    yield go
    for thing in reversed(made):
        thing.close()


# ------------------------------------------------------------------- polling

def test_busy_guest_rings_once(start_daemon, attach_sender):
    daemon = start_daemon(args=LONG)
    sender = attach_sender(daemon)
    sender.send()
    before, paused, last = sleeps(daemon, "/"), 0, time.monotonic()
    for _ in range(1000):
        begin = time.monotonic()
        sender.put()
        if not sender.word():
            # Right only if this process did not run for as long as the window.
            assert time.monotonic() - last >= 1
            paused += 1
            sender.ring()
        sender.wait()
        last = begin
    assert sleeps(daemon, "/") - before < 5 + 2 * paused, "it sleeps"


def test_others_are_served_meanwhile(start_daemon, attach_sender):
    daemon = start_daemon(args=LONG)
    sender = attach_sender(daemon)
    with attach(daemon.socket(2)) as other:
        for _ in range(100):
            sender.send()
            assert other.read_reg(0) == 20
            daemon.must("version")


def test_end_of_the_window_enables_doorbells(start_daemon, attach_sender):
    daemon = start_daemon(args=("--poll", "20000"))
    sender = attach_sender(daemon)
    for _ in range(3):
        sender.send()
        wait_until(lambda: sender.word() == 0, "the device to ask for doorbells")
    assert_idle(daemon)
    sender.send()


def test_off_never_polls(start_daemon, attach_sender):
    daemon = start_daemon(args=("--poll", "off"))
    sender = attach_sender(daemon)
    for _ in range(100):
        sender.send()
    wait_until(lambda: sender.word() == 0, "the device to ask for doorbells")
    sender.put()
    time.sleep(0.2)
    assert not sender.is_done()
    sender.ring()
    wait_until(sender.is_done, "the completion")
    assert total(daemon, "WINDOWS") == 0


def test_auto_sleeps_and_polls(start_daemon, attach_sender):
    daemon = start_daemon()
    sender = attach_sender(daemon)
    for number in range(5000):
        sender.send()
        if number % 500 == 0:
            time.sleep(0.01)
    wait_until(lambda: sender.word() == 0, "the device to ask for doorbells")
    assert total(daemon, "WINDOWS") > 0
    assert total(daemon, "SLEEPS") > 0


def test_stock_driver_always_rings(start_daemon, attach_sender):
    daemon = start_daemon()
    sender = attach_sender(daemon, features=0)
    for _ in range(1000):
        sender.send()
        assert sender.word() == 0


# ---------------------------------------------------------------------- idle

def test_idle_with_a_vm_that_does_nothing(daemon, client):
    client.map(0, 1 << 20, [memfd(1 << 20)])
    assert client.read_reg(0) == 20
    assert_idle(daemon)


def test_idle_after_vms_have_left(daemon):
    assert_idle(daemon)
    for _ in range(10):
        attach(daemon.socket()).close()
    assert_idle(daemon)


@pytest.mark.parametrize("args", [("--poll", "off"), ("--poll", "50")])
def test_idle_after_work(start_daemon, attach_sender, args):
    daemon = start_daemon(args=args)
    sender = attach_sender(daemon)
    for _ in range(100):
        sender.send()
    assert_idle(daemon)


def test_64_idle_adapters(start_daemon, attach_sender):
    daemon = start_daemon(adapters=64)
    for number in range(1, 65):
        attach_sender(daemon, number).send()
    assert_idle(daemon)


# ------------------------------------------------------------ no core to spare

BURN = "import os\nos.sched_setaffinity(0, {int(os.sys.argv[1])})\nwhile True:\n    pass"


@pytest.fixture
def burner():
    """A process that uses one CPU all the time. Return: the number of the CPU."""
    cpu = max(os.sched_getaffinity(0))
    child = subprocess.Popen([sys.executable, "-c", BURN, str(cpu)], stdin=subprocess.DEVNULL)
    yield cpu
    child.kill()
    child.wait()


def pin(daemon, cpu):
    for task in os.listdir(f"/proc/{daemon.child.pid}/task"):
        os.sched_setaffinity(int(task), {cpu})


def send_until(sender, condition, pause=0):
    """Datagrams, one after the other; the condition is checked after each hundred."""
    end = time.monotonic() + PATIENCE
    while not condition():
        assert time.monotonic() < end
        for _ in range(100):
            sender.send()
            time.sleep(pause)


def test_where_others_want_the_cpu_it_stops_polling(start_daemon, attach_sender, burner):
    daemon = start_daemon()
    pin(daemon, burner)
    sender = attach_sender(daemon)
    send_until(sender, lambda: total(daemon, "CROWDED") > 0)
    # Most of the time it does not poll: each trial is short, and they become rare.
    windows = total(daemon, "WINDOWS")
    end = time.monotonic() + 1
    while time.monotonic() < end:
        sender.send()
    assert total(daemon, "WINDOWS") - windows < 1000


def test_windows_in_vain_end_polling(start_daemon, attach_sender):
    daemon = start_daemon()
    sender = attach_sender(daemon)
    send_until(sender, lambda: total(daemon, "BACKOFFS") > 0, 0.002)
    windows, used = total(daemon, "WINDOWS"), cpu_seconds(daemon)
    for _ in range(200):
        sender.send()
        time.sleep(0.002)
    assert total(daemon, "WINDOWS") - windows < 150
    assert cpu_seconds(daemon) - used < 1


# ------------------------------------------------------------------ settings

@pytest.mark.parametrize("value, poll, window", [(None, "auto", 50), ("auto", "auto", 50), ("off", "off", 0),
                                                 ("1", "always", 1), ("1000000", "always", 1000000)])
def test_setting(start_daemon, value, poll, window):
    row = start_daemon(args=("--poll", value) if value else ()).table("workers")[0]
    assert (row["POLL"], row["WINDOW/US"]) == (poll, str(window))


@pytest.mark.parametrize("value", ["", "on", "0", "-1", "+5", " 5", "5us", "1000001", "99999999999999999999"])
def test_bad_setting(refuse, value):
    refuse(2, f"poll '{re.escape(value)}' is none of auto, off, and microseconds up to 1000000", f"--poll={value}")
