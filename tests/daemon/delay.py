# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
"""The delay of a well-behaved tenant beside a hostile one, in CPU time of the worker thread that both share.

CPU time of the thread, and not time of day: other processes of the machine take none of it.
"""

import contextlib
import multiprocessing
import os
import signal
import threading
from pathlib import Path

from sender import CREATE_BIND, ROCE_V2, VLAN_NONE, Sender
from vfio_user import attach

BOUND = 0.010  # seconds of the worker's CPU time
STOPPED = 0.02  # seconds; longer than this process needs for a request
THIS = Path("/proc/thread-self")
SANITIZER_FACTOR = 8  # an instruction with ASan and UBSan takes so much longer, at most
MACHINE_FACTOR = float(os.environ.get("PVRDMA_BUDGET_FACTOR", "1"))  # a system call takes so much longer on a slow machine


def worker_thread(daemon, worker=0):
    """The /proc folder of the worker's thread."""
    path, = (task for task in Path(f"/proc/{daemon.child.pid}/task").iterdir()
             if (task / "comm").read_text().strip() == f"pvrdmad/{worker}")
    return path


def schedstat(path):
    """Seconds that a thread ran, and that it waited for a CPU."""
    return [int(field) / 1e9 for field in (path / "schedstat").read_text().split()[:2]]


def is_sanitized(daemon):
    return "libasan" in daemon.maps() or "libclang_rt.asan" in daemon.maps()


class Delay:
    """Measures what a request of the tenant `ask()` costs its worker until the answer arrives."""

    def __init__(self, daemon, ask, worker=0):
        self.pid = daemon.child.pid
        self.path = worker_thread(daemon, worker)
        self.bound = BOUND * MACHINE_FACTOR * (SANITIZER_FACTOR if is_sanitized(daemon) else 1)
        self.ask = ask
        self.longest, self.samples = 0.0, 0
        self.previous = None  # the end of the previous sample

    def now(self):
        return schedstat(self.path)[0], schedstat(THIS)[1]

    def sample(self, attack=None):
        """The delay counts from the previous answer of sample_while(). `attack()` sends right before the request.

        The daemon is stopped until both are in its sockets, and this process sleeps until the answer arrives. What the
        worker runs while this process waits for a CPU is no delay of the tenant, and does not count.
        """
        if attack:
            os.kill(self.pid, signal.SIGSTOP)
            os.waitid(os.P_PID, self.pid, os.WSTOPPED)
            attack()
            threading.Timer(STOPPED, os.kill, (self.pid, signal.SIGCONT)).start()
        begin = self.previous or self.now()
        self.ask()
        end = self.now()
        self.longest = max(self.longest, (end[0] - begin[0]) - (end[1] - begin[1]))
        self.samples += 1
        return end

    def sample_while(self, is_busy, attack=None):
        """After `attack()`, sample without a gap until `is_busy()` is false, and once more."""
        self.previous = self.sample(attack)
        while is_busy():
            self.previous = self.sample()
        self.sample()
        self.previous = None

    @contextlib.contextmanager
    def count_first_thread(self):
        """For a request of an operator: the first thread pauses the workers, so all its CPU time counts as a delay."""
        path = Path(f"/proc/{self.pid}/task/{self.pid}")
        begin = schedstat(path)[0]
        yield
        self.longest = max(self.longest, schedstat(path)[0] - begin)

    def check(self):
        """Assert the bound. $PVR_DELAY_LOG: a file that gets the result, for docs/reliability.md."""
        log = os.environ.get("PVR_DELAY_LOG")
        if log:
            with open(log, "a", encoding="ascii") as file:
                test = os.environ.get("PYTEST_CURRENT_TEST", "?").split("::")[-1].split(" ")[0]
                file.write(f"{test} {self.longest * 1000:.2f} ms of {self.samples} samples\n")
        assert self.samples
        assert self.longest <= self.bound, f"{self.longest * 1000:.1f} ms of the worker's CPU time"


def sender_delay(daemon, client):
    """A VM that sends datagrams to itself, and its Delay. Each request is a doorbell, and a read of a register after it."""
    sender = Sender(client, 0)
    gid = b"\xfd" + bytes(10) + os.urandom(5)  # no other VM has it, so no directory is asked
    sender.guest.command(CREATE_BIND, "III16sB3x", 4096, VLAN_NONE, 0, gid, ROCE_V2)

    def ask():
        sender.put(gid)
        sender.ring()
        client.read_reg(0)
        while not sender.is_done():
            client.read_reg(0)

    return sender, Delay(daemon, ask)


class Neighbour:
    """A VM at that socket that sends datagrams all the time, in a process of its own."""

    PAUSE = 0.003  # seconds between two datagrams

    def __init__(self, daemon, socket):
        self.delay = Delay(daemon, None)
        context = multiprocessing.get_context("fork")
        self.pipe, other = context.Pipe()
        self.process = context.Process(target=self._run, args=(daemon, socket, other), daemon=True)
        self.process.start()
        other.close()

    @staticmethod
    def _close_all_but(kept):
        """Some tests need that their descriptors have no copies."""
        for number in map(int, os.listdir("/proc/self/fd")):
            if number > 2 and number != kept:
                with contextlib.suppress(OSError):
                    os.close(number)

    def _run(self, daemon, socket, pipe):
        self._close_all_but(pipe.fileno())
        request = None
        with attach(socket) as client:
            sender, delay = sender_delay(daemon, client)
            while request != "end":
                delay.sample()
                if request == "check":
                    pipe.send("served")
                request = pipe.recv() if request == "rest" or pipe.poll(self.PAUSE) else None
            sender.close()
        pipe.send((delay.longest, delay.samples))

    def check(self):
        """It is served now."""
        self.pipe.send("check")
        assert self.pipe.recv() == "served"

    def rest(self):
        """It sends nothing until the next call, so that the daemon's CPU time is that of others."""
        self.check()
        self.pipe.send("rest")

    def end(self):
        self.pipe.send("end")
        self.delay.longest, self.delay.samples = self.pipe.recv()
        self.process.join()
        self.delay.check()


@contextlib.contextmanager
def neighbour_of(daemon, number=99):
    """An adapter whose VM is served in time in spite of what hosts do. It fails the test at the end otherwise."""
    made = Neighbour(daemon, daemon.add_adapter(f"neighbour{number}", number))
    made.check()
    try:
        yield made
    finally:
        made.end()
