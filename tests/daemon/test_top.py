# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
"""pvrdmactl top: outputs, rates, columns, and its terminal."""

import contextlib
import fcntl
import json
import os
import pty
import re
import signal
import struct
import subprocess
import termios

import pytest

from daemon_process import PATIENCE, PVRDMACTL, wait_until
from sender import Sender

QUICK = ["-d", "0.1"]


@contextlib.contextmanager
def running(daemon, *args, **streams):
    """A pvrdmactl top that runs until the end of the block."""
    child = subprocess.Popen([PVRDMACTL, "--control", str(daemon.control), "top", *QUICK, *args], **streams)
    try:
        yield child
    finally:
        child.kill()
        child.wait()


def samples(daemon, *args):
    with running(daemon, "--json", *args, stdout=subprocess.PIPE, text=True, stdin=subprocess.DEVNULL) as child:
        for line in child.stdout:
            yield json.loads(line)


def test_batch_prints_a_table_per_output(daemon):
    tables = daemon.must("top", "-b", "-n", "2", *QUICK).split("\n\n")
    assert len(tables) == 4 and all("  2 adapters, 0 queue pairs, sent 0 B/s" in tables[i] for i in (0, 2)), tables
    for table in (tables[1], tables[3]):
        heads, *rows = table.splitlines()
        assert heads.split()[:3] == ["ADAPTER", "STATE", "QPS"] and "TX B/S*" in heads
        assert [row.split()[0] for row in rows] == ["node1", "node2"]


def test_output_that_is_no_terminal_is_batch(daemon):
    assert "\033" not in daemon.must("top", "-n", "1", *QUICK)


def test_rates_are_those_of_the_interval(daemon, client):
    """Of an adapter and of its queue pair: the sum over all intervals is the number of messages."""
    sender = Sender(client)
    sender.send()
    for args, rows, is_sender in ((["-n", "0"], "adapters", lambda row: row["name"] == "node1"),
                                  (["node1"], "qps", lambda row: row["qpn"] == sender.qpn)):
        seen, sent = 0, False
        for sample in samples(daemon, *args):
            row = next(row for row in sample[rows] if is_sender(row))
            seen += row["tx_rate"] * sample["interval_ns"] / 1e9
            assert seen == 0 or sent
            if not sent:
                sent = True
                for _ in range(5):
                    sender.send()
            elif seen:
                assert seen < 5.01
                if seen > 4.99:
                    break
    sender.close()


def test_each_page_is_shown(start_daemon):
    daemon = start_daemon(adapters=70)
    sample, = samples(daemon, "-n", "1")
    assert {row["name"] for row in sample["adapters"]} == {f"node{number}" for number in range(1, 71)}


def test_rows_are_sorted(daemon, client):
    """Numbers descend, texts ascend."""
    daemon.add_adapter("a0", 9)
    sender = Sender(client)
    for column, names in (("qps", ["node1", "a0", "node2"]), ("name", ["a0", "node1", "node2"])):
        sample, = samples(daemon, "-n", "1", "-s", column)
        assert [row["name"] for row in sample["adapters"]] == names
    sample, = samples(daemon, "-n", "1", "--sort", "qpn", "node1")
    qpns = [row["qpn"] for row in sample["qps"]]
    assert sender.qpn in qpns and qpns == sorted(qpns, reverse=True)
    sender.close()


@pytest.mark.parametrize("args, text", [
    (["top", "-d", "0"], "delay '0' is no number of seconds from 0.1 to 3600"),
    (["top", "-d", "nan"], "delay 'nan' is no number of seconds"),
    (["top", "-d", "1s"], "delay '1s' is no number of seconds"),
    (["top", "-n", "-1"], "count '-1' is no number"),
    (["top", "-n", "99999999999999999999"], "count '99999999999999999999' is no number"),
    (["top", "-n"], "option '-n' needs a value"),
    (["top", "-s", "nix"], "there is no column 'nix', there are name, state, qps, tx_rate, "),
    (["top", "-s", "wait"], "there is no column 'wait'"),
    (["top", "a", "b"], "'top' with 2 arguments"),
    (["adapters", "-n", "3"], "option --count is for the command top"),
    (["-b", "stats"], "option --batch is for the command top"),
])
def test_bad_option(daemon, args, text):
    done = daemon.ctl(*args)
    assert done.returncode == 2 and text in done.stderr and len(done.stderr.splitlines()) == 1, done.stderr


def test_unknown_adapter(daemon):
    done = daemon.ctl("top", "nix")
    assert (done.returncode, done.stderr) == (1, "pvrdmactl: there is no adapter 'nix': see 'pvrdmactl adapters'\n")


def test_adapter_that_is_removed_meanwhile(daemon):
    with running(daemon, "-b", "node2", stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                 stdin=subprocess.DEVNULL) as child:
        assert "node2: " in child.stdout.readline()
        daemon.must("remove-adapter", "node2")
        _, complaint = child.communicate(timeout=PATIENCE)
        assert child.returncode == 1 and complaint.startswith("pvrdmactl: there is no adapter 'node2'")


def test_daemon_that_ends_meanwhile(daemon):
    with running(daemon, "-b", stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, stdin=subprocess.DEVNULL) as child:
        child.stdout.readline()
        daemon.stop()
        _, complaint = child.communicate(timeout=PATIENCE)
        assert child.returncode == 1 and complaint.startswith("pvrdmactl: no ") and len(complaint.splitlines()) == 1


class Terminal:
    """A terminal that a pvrdmactl top runs in."""

    def __init__(self, daemon, *args, lines=24):
        self.fd, self.inner = pty.openpty()
        self.resize(lines)
        self.before = termios.tcgetattr(self.inner)
        self.text = ""
        argv = [PVRDMACTL, "--control", str(daemon.control), "top", *args]
        self.child = subprocess.Popen(argv, stdin=self.inner, stdout=self.inner, stderr=subprocess.DEVNULL)
        os.set_blocking(self.fd, False)

    def resize(self, lines):
        fcntl.ioctl(self.inner, termios.TIOCSWINSZ, struct.pack("4H", lines, 80, 0, 0))

    def shows(self, text):
        with contextlib.suppress(BlockingIOError):
            self.text += os.read(self.fd, 1 << 16).decode()
        return text in self.text

    def wait_for(self, text):
        wait_until(lambda: self.shows(text), f"{text!r} on the terminal")

    def is_restored(self):
        return termios.tcgetattr(self.inner) == self.before

    def close(self):
        self.child.kill()
        self.child.wait()
        os.close(self.fd)
        os.close(self.inner)


@pytest.fixture
def terminal(daemon):
    made = Terminal(daemon, "-d", "3600")
    made.wait_for("node2")
    yield made
    made.close()


def test_keys_and_terminal_afterwards(terminal):
    """The delay is an hour: keys do not wait for it."""
    assert terminal.text.startswith("\033[?1049h") and "TX B/S*" in terminal.text and not terminal.is_restored()
    os.write(terminal.fd, b">")
    terminal.wait_for("RX/S*")
    os.write(terminal.fd, b"<" * 20)
    terminal.wait_for("ADAPTER*")
    os.write(terminal.fd, b"r")
    wait_until(lambda: terminal.shows("") and re.search("node2 [^\033]*node1 ", terminal.text), "the reverse order")
    os.write(terminal.fd, b"q")
    terminal.wait_for("\033[?1049l")
    assert terminal.child.wait(PATIENCE) == 0 and terminal.is_restored()


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_signal_restores_the_terminal(terminal, number):
    terminal.child.send_signal(number)
    assert terminal.child.wait(PATIENCE) == 0 and terminal.is_restored()
    assert terminal.shows("\033[?1049l")


def test_error_restores_the_terminal(daemon):
    terminal = Terminal(daemon, "-d", "0.1")
    terminal.wait_for("node2")
    daemon.stop()
    assert terminal.child.wait(PATIENCE) == 1 and terminal.is_restored()
    terminal.close()


def test_rows_end_at_the_last_line(start_daemon):
    terminal = Terminal(start_daemon(adapters=70), "-d", "3600", "-s", "name", lines=10)
    terminal.wait_for("node14 ")
    terminal.shows("")
    assert terminal.text.count("\r\n") == 9 and "node15 " not in terminal.text
    terminal.resize(11)
    terminal.child.send_signal(signal.SIGWINCH)
    terminal.wait_for("node15 ")
    terminal.close()
