# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
"""An etcd server of one member, and its keys."""

import base64
import json
import os
import re
import shutil
import signal
import subprocess
import time
import urllib.error
import urllib.request
from pathlib import Path

from daemon_process import PATIENCE, wait_until


def encode(text):
    return base64.b64encode(text.encode()).decode()


def decode(text):
    return base64.b64decode(text).decode()


class EtcdServer:
    """Its data outlive the process."""

    def __init__(self, folder, address, args=(), scheme="http"):
        assert shutil.which("etcd"), "etcd is missing: run scripts/deps"
        self.folder, self.args = folder, [str(arg) for arg in args]
        self.url, self.peer = f"{scheme}://{address}:2379", f"http://{address}:2380"
        self.log_path = folder / "etcd.log"
        self.child = None

    def start(self, prefix=()):
        """`prefix`: a command that runs it, such as nsenter."""
        # It serves after an election, which by default takes a second.
        argv = [*prefix, "etcd", "--data-dir", str(self.folder / "data"), "--unsafe-no-fsync",
                "--heartbeat-interval", "20", "--election-timeout", "200",
                "--listen-client-urls", self.url, "--advertise-client-urls", self.url,
                "--listen-peer-urls", self.peer, "--initial-advertise-peer-urls", self.peer,
                "--initial-cluster", f"default={self.peer}", *self.args]
        with open(self.log_path, "ab") as log:
            begin = log.tell()
            self.child = subprocess.Popen(argv, stdin=subprocess.DEVNULL, stdout=log, stderr=log)
        wait_until(lambda: b"ready to serve client requests" in self.log_path.read_bytes()[begin:]
                   or self.child.poll() is not None, "etcd is ready")
        assert self.child.poll() is None, self.log_path.read_text()[-2000:]

    def pause(self):
        """It answers nothing from now on. The signal alone lets threads that run go on for a moment."""
        self.child.send_signal(signal.SIGSTOP)
        tasks = Path(f"/proc/{self.child.pid}/task")
        wait_until(lambda: all(re.search(r"State:\s*[TZX]", status.read_text()) for status in tasks.glob("*/status")),
                   "etcd has stopped")

    def resume(self):
        self.child.send_signal(signal.SIGCONT)

    def stop(self, sig=signal.SIGTERM):
        if self.child and self.child.poll() is None:
            self.child.send_signal(sig)
            try:
                self.child.wait(PATIENCE)
            except subprocess.TimeoutExpired:
                self.child.kill()
                self.child.wait()

    def kill(self):
        self.stop(signal.SIGKILL)

    def lose_data(self, prefix=()):
        self.kill()
        shutil.rmtree(self.folder / "data")
        self.start(prefix)

    def _etcdctl(self, *args):
        subprocess.run(["etcdctl", "--endpoints", self.url, *map(str, args)], check=True, capture_output=True,
                       env={**os.environ, "ETCDCTL_API": "3"})

    def save(self):
        """A snapshot, for restore()."""
        path = self.folder / "snapshot"
        self._etcdctl("snapshot", "save", path)
        return path

    def restore(self, snapshot):
        """Replace its data; leases that lived then live again."""
        self.kill()
        shutil.rmtree(self.folder / "data")
        self._etcdctl("snapshot", "restore", snapshot, "--data-dir", self.folder / "data", "--name", "default",
                      "--initial-cluster", f"default={self.peer}", "--initial-advertise-peer-urls", self.peer)
        self.start()

    def call(self, path, body):
        """Repeated while etcd has no leader, as on a busy machine."""
        end = time.monotonic() + PATIENCE
        while True:
            try:
                return self._call(path, body)
            except urllib.error.HTTPError as why:
                if why.code != 503 or time.monotonic() > end:
                    raise
            time.sleep(0.1)

    def _call(self, path, body):
        request = urllib.request.Request(self.url + path, json.dumps(body).encode())
        with urllib.request.urlopen(request, timeout=PATIENCE) as answer:
            return json.load(answer)

    def keys(self, prefix="pvrdma/"):
        end = prefix[:-1] + chr(ord(prefix[-1]) + 1)
        answer = self.call("/v3/kv/range", {"key": encode(prefix), "range_end": encode(end)})
        return {decode(kv["key"]): decode(kv.get("value", "")) for kv in answer.get("kvs", [])}

    def put(self, key, value):
        return self.call("/v3/kv/put", {"key": encode(key), "value": encode(value)})

    def delete(self, key):
        self.call("/v3/kv/deleterange", {"key": encode(key)})
