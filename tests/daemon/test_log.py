# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
"""The log: a reader of stderr that does not read."""

import fcntl
import os
import subprocess
import threading

from daemon_process import PVRDMAD, Daemon, wait_until
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


def test_log_that_is_not_read(tmp_path):
    daemon = StuckLog(tmp_path)
    killer = threading.Timer(LIMIT, daemon.child.kill)
    killer.start()
    try:
        for _ in range(300):
            attach(daemon.socket(1)).close()
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
        assert "log lines were dropped: the log's reader is too slow" in reader[0]
    finally:
        killer.cancel()
        daemon.child.kill()
        daemon.child.wait()


def test_end_with_a_log_that_is_never_read(tmp_path):
    daemon = StuckLog(tmp_path)
    try:
        for _ in range(100):
            with attach(daemon.socket(1)) as client:
                client.sock.settimeout(LIMIT)
                assert client.read_reg(0) == 20
        daemon.child.terminate()
        assert daemon.child.wait(LIMIT) == 0
    finally:
        daemon.child.kill()
        daemon.child.wait()
        os.close(daemon.pipe)
