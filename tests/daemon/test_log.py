# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
"""The log: a stderr that is not read, full file systems, lines of one VM without end."""

import contextlib
import fcntl
import json
import os
import re
import socket
import subprocess
import threading
from pathlib import Path

import pytest

from daemon_process import PVRDMAD, Daemon, wait_until
from pipe_peer import Closed
from sender import MODIFY_QP, STATE, Sender
from vfio_user import attach

LIMIT = 20  # seconds, to end a daemon that hangs


class StuckLog(Daemon):
    """Its stderr is a pipe, which is full after some lines."""

    def start(self, args, env=None, prefix=()):
        self.pipe, write_end = os.pipe()
        fcntl.fcntl(write_end, fcntl.F_SETPIPE_SZ, 4096)
        argv = [PVRDMAD, "--log-level", "debug", *args, "--control", self.control]
        with open(os.devnull, "wb") as null:
            self.child = subprocess.Popen([str(arg) for arg in argv], stdin=subprocess.DEVNULL, stdout=null,
                                          stderr=write_end)
        os.close(write_end)
        wait_until(lambda: self.socket(1).exists() and self.socket(2).exists(), "sockets")

    def drain(self):
        with open(self.pipe, "rb") as pipe:
            return pipe.read().decode()


def attach_often(daemon, times):
    """Each time costs several lines of node1 at the level debug."""
    for _ in range(times):
        with attach(daemon.socket(1)) as client:
            client.sock.settimeout(LIMIT)
            assert client.read_reg(0) == 20


def lost_lines(text):
    return sum(map(int, re.findall(r"pvrdmad: (\d+) lines lost: ", text)))


def test_log_that_is_not_read(tmp_path):
    daemon = StuckLog(tmp_path)
    killer = threading.Timer(LIMIT, daemon.child.kill)
    killer.start()
    try:
        attach_often(daemon, 100)
        with attach(daemon.socket(2)) as second:
            assert second.read_reg(0) == 20
        daemon.add_adapter("node3", 3)
        daemon.child.terminate()
        # The bounded wait for the log's reader has begun or is over.
        reader = []
        thread = threading.Thread(target=lambda: reader.append(daemon.drain()))
        wait_until(lambda: not daemon.socket(1).exists() or daemon.child.poll() is not None, "the end")
        thread.start()
        assert daemon.child.wait(LIMIT) == 0
        thread.join()
        assert re.search(r"pvrdmad: \d+ lines lost: they came faster than stderr takes them\n", reader[0])
        # Lines of node1 have displaced none of others.
        assert re.search(r"node2: QEMU \(process \d+\) has attached\n", reader[0])
        assert "node3: waiting for its VM" in reader[0]
        assert "Terminated: leaving" in reader[0]
    finally:
        killer.cancel()
        daemon.child.kill()
        daemon.child.wait()


def test_end_with_a_log_that_is_never_read(tmp_path):
    daemon = StuckLog(tmp_path)
    try:
        attach_often(daemon, 100)
        daemon.child.terminate()
        assert daemon.child.wait(LIMIT) == 0
    finally:
        daemon.child.kill()
        daemon.child.wait()
        os.close(daemon.pipe)


def test_lines_of_a_request_are_written_before_its_reply(daemon):
    with socket.socket(socket.AF_UNIX) as control:
        control.connect(str(daemon.control))
        with control.makefile("rw") as stream:
            for count in range(1, 101):
                for state in ("down", "up"):
                    stream.write(json.dumps({"command": "link", "name": "node1", "state": state}) + "\n")
                    stream.flush()
                    assert json.loads(stream.readline())["ok"]
                assert daemon.log_path.read_text().count("node1: link up") == count


def test_log_of_a_daemon_that_has_ended_is_complete(start_daemon):
    daemon = start_daemon(args=("--log-level", "debug"))
    attach_often(daemon, 5)
    assert daemon.stop() == 0
    assert daemon.log().endswith("\n")
    assert "Terminated: leaving" in daemon.log()
    assert daemon.log().count("has attached") == 5


class SmallDisk(Daemon):
    """Its log is in a file system of two pages and 16 files, in a mount namespace of its own."""

    SCRIPT = 'mount -t tmpfs -o size=8k,nr_inodes=16 none "$0" && exec "$@" 2>>"$0/log"'

    def start(self, args, env=None, prefix=()):
        disk = self.folder / "disk"
        disk.mkdir()
        argv = ["unshare", "--mount", "sh", "-c", self.SCRIPT, disk, PVRDMAD, *args, "--control", self.control]
        self.child = subprocess.Popen([str(arg) for arg in argv], stdin=subprocess.DEVNULL,
                                      env={**os.environ, "TMPDIR": str(disk), **(env or {})})
        self.disk = Path(f"/proc/{self.child.pid}/root{disk}")
        self.log_path = self.disk / "log"
        wait_until(lambda: self.log_path.exists(), "the log")
        self.wait_for_log("ready, ")

    def fill(self):
        with pytest.raises(OSError, match="No space left"), open(self.disk / "filler", "wb", buffering=0) as file:
            while True:
                file.write(bytes(4096))

    def clear(self):
        (self.disk / "filler").unlink()
        os.truncate(self.log_path, 0)


@pytest.fixture
def small_disk(tmp_path):
    daemon = SmallDisk(tmp_path)
    yield daemon
    assert daemon.stop() == 0


def test_log_on_a_full_file_system(small_disk):
    small_disk.fill()
    small_disk.must("log-level", "debug")
    attach_often(small_disk, 100)
    before = small_disk.log()
    attach_often(small_disk, 1)
    assert small_disk.log() == before
    small_disk.clear()
    small_disk.must("link", "node2", "down")
    text = small_disk.log()
    assert re.search(r"^pvrdmad: \d+ lines lost: cannot write to stderr: No space left on device\n", text, re.M), text
    assert lost_lines(text) >= 20
    assert re.search(r"^pvrdmad: node2: link down\n", text, re.M), text


def test_stderr_that_takes_nothing(tmp_path):
    with open("/dev/full", "wb") as full:
        class FullLog(Daemon):
            def start(self, args, env=None, prefix=()):
                self.child = subprocess.Popen([str(arg) for arg in (PVRDMAD, *args, "--control", self.control)],
                                              stdin=subprocess.DEVNULL, stdout=full, stderr=full)
                wait_until(lambda: self.ctl("version").returncode == 0, "a control socket")

        daemon = FullLog(tmp_path)
        try:
            attach_often(daemon, 3)
        finally:
            assert daemon.stop() == 0


def test_log_at_the_size_limit_of_files(start_daemon):
    """SIGXFSZ ends a process that does not expect it."""
    daemon = start_daemon(prefix=("sh", "-c", 'ulimit -f 1; exec "$@"', "sh"))
    attach_often(daemon, 30)
    assert daemon.log_path.stat().st_size <= 1024
    assert daemon.query("adapters")


def test_doorbell_pages_at_the_size_limit_of_files(start_daemon):
    """The limit applies to memory files as well: that VM is refused, or has no mapped doorbell pages."""
    daemon = start_daemon(settings=",uar=mapped", prefix=("sh", "-c", 'ulimit -f 8; exec "$@"', "sh"))
    with contextlib.suppress(Closed), attach(daemon.socket(1)) as client:
        client.read_reg(0)
    assert daemon.query("adapters")


def test_sockets_on_a_full_file_system(small_disk):
    """No file can be made: a VM is refused, the others work, and it is accepted when there is space."""
    with attach(small_disk.socket(2)) as other:
        files = [small_disk.disk / f"file{number}" for number in range(16)]
        with pytest.raises(OSError, match="No space left"):
            for file in files:
                file.touch()
        with pytest.raises(Closed):
            attach(small_disk.socket(1))
        assert "node1: QEMU" in small_disk.log()
        assert "cannot make a device for it: No space left on device" in small_disk.log()
        done = small_disk.ctl("add-adapter", f"name=late,socket={small_disk.folder}/disk/late,mac=52:54:00:00:00:63")
        assert done.returncode == 1 and "No space left on device" in done.stderr
        assert other.read_reg(0) == 20
        for file in files:
            file.unlink(missing_ok=True)
        attach_often(small_disk, 1)


# ---------------------------------------------------------------------------------- JSON

def entries(daemon):
    """All lines, each of which is an object."""
    return [json.loads(line) for line in daemon.log().splitlines()]


def test_json_lines_have_their_fields(start_daemon):
    daemon = start_daemon(args=("--log-format", "json"))
    with attach(daemon.socket(1)) as client:
        client.read_reg(0)
    daemon.must("link", "node2", "down")
    lines = entries(daemon)
    for line in lines:
        assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z", line["time"])
        assert line["level"] in ("error", "warn", "info", "debug") and line["message"]
    assert any(line.get("adapter") == "node1" for line in lines)
    assert {"ready, 2 adapters"} == {line["message"] for line in lines if "ready" in line["message"]}


def test_json_line_of_a_queue_pair_has_its_number(start_daemon):
    daemon = start_daemon(args=("--log-format", "json"))
    with attach(daemon.socket(1)) as client:
        sender = Sender(client)
        assert sender.guest.try_command(MODIFY_QP, "III", sender.qp, STATE, 1) != 0  # not allowed in RTS
        line, = (line for line in entries(daemon) if "qp" in line)
        assert (line["adapter"], line["qp"]) == ("node1", sender.qp) and line["message"].startswith(f"qp {sender.qp}: ")
        sender.close()


def test_json_lines_of_a_peer_have_its_name(start):
    one, two = start(1, 2, args=("--log-format", "json")), start(2)
    wait_until(lambda: any("connected to" in line["message"] and line.get("peer") == "h2" for line in entries(one)),
               "the connection")
    two.stop()
    wait_until(lambda: any("has ended" in line["message"] and line.get("peer") == "h2" for line in entries(one)),
               "the end of the connection")


def test_format_of_the_configuration_file(start_daemon, write_config):
    daemon = start_daemon(args=[write_config("log-format = json\n")])
    assert entries(daemon)[-1]["message"] == "ready, 2 adapters"


def test_bad_format_is_refused(refuse):
    refuse(2, "log format 'xml' is neither text nor json", "--log-format", "xml")


def test_change_cannot_break_a_json_line(start_daemon):
    """Text of a request that looks like the end of the object."""
    daemon = start_daemon(args=("--log-format", "json"))
    daemon.ctl("link", 'x"}\n{"level":"error","message":"forged', "up")
    assert not any(line["message"] == "forged" for line in entries(daemon))
    assert any("forged" in line["message"] for line in entries(daemon))


def test_report_of_lost_lines_is_an_object(tmp_path):
    daemon = StuckLog(tmp_path, args=("--log-format", "json"))
    killer = threading.Timer(LIMIT, daemon.child.kill)
    killer.start()
    try:
        attach_often(daemon, 100)
        daemon.child.terminate()
        reader = []
        thread = threading.Thread(target=lambda: reader.append(daemon.drain()))
        wait_until(lambda: not daemon.socket(1).exists() or daemon.child.poll() is not None, "the end")
        thread.start()
        assert daemon.child.wait(LIMIT) == 0
        thread.join()
    finally:
        killer.cancel()
        daemon.child.kill()
        daemon.child.wait()
    messages = [json.loads(line)["message"] for line in reader[0].splitlines()]
    assert any(re.match(r"\d+ lines lost: ", message) for message in messages)
