# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
"""An etcd on loopback, a proxy in front of it that misbehaves, and hosts that are a directory without a daemon."""

import http.server
import json
import os
import select
import socket
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.request
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "pylib"))

from daemon_net import address  # noqa: E402
from daemon_process import PATIENCE, PVRDMAD  # noqa: E402
from etcd_server import EtcdServer, encode  # noqa: E402, F401 (encode is used by others too)

DIRECTORY_HOST = os.environ.get("DIRECTORY_HOST", str(Path(PVRDMAD).parent / "tests/bench/directory_host"))
ETCD_HOST = 253


class Etcd(EtcdServer):
    """A running server at an address of the test's own."""

    def __init__(self, folder, args=(), scheme="http"):
        super().__init__(folder, address(ETCD_HOST), args, scheme)
        self.start()


class Host:
    """A directory_host; `lines` has its output so far."""

    def __init__(self, name, *settings, expect_error=False):
        self.name = name
        argv = [DIRECTORY_HOST, f"name={name}", *map(str, settings)]
        # Freed memory that AddressSanitizer keeps would count as used.
        env = {**os.environ, "ASAN_OPTIONS": os.environ.get("ASAN_OPTIONS", "") + ":quarantine_size_mb=8"}
        self.child = subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                                      env=env)
        self.lines, self.rest = [], b""
        if not expect_error:
            self.wait("ready")

    def tell(self, *words):
        self.child.stdin.write((" ".join(map(str, words)) + "\n").encode())
        self.child.stdin.flush()

    def read(self, seconds=0.0):
        ready, _, _ = select.select([self.child.stdout], [], [], seconds)
        if ready:
            data = os.read(self.child.stdout.fileno(), 1 << 20)
            *lines, self.rest = (self.rest + data).split(b"\n")
            self.lines += [line.decode(errors="replace").rstrip() for line in lines]
            if not data:
                self.child.wait()

    def wait(self, begin, since=0, patience=PATIENCE):
        """The first line from number `since` on with this beginning."""
        end = time.monotonic() + patience
        while True:
            for line in self.lines[since:]:
                if line.startswith(begin):
                    return line
            assert time.monotonic() < end, f"{self.name}: no line '{begin}' in {patience} s: {self.lines}"
            assert self.child.poll() is None, f"{self.name} has ended: {self.lines[-40:]}"
            self.read(0.1)

    def watch(self, seconds):
        """The lines of that time."""
        since, end = len(self.lines), time.monotonic() + seconds
        while time.monotonic() < end:
            self.read(0.05)
        return self.lines[since:]

    def mark(self):
        self.read()
        return len(self.lines)

    def stats(self):
        since = self.mark()
        self.tell("stats")
        return json.loads(self.wait("stats ", since)[6:])

    def announce(self, fabric, gid, present=True, gid_type=2):
        self.tell("announce", fabric, gid, gid_type, int(present))

    def resolve(self, fabric, gid, answer):
        """Repeat the request until that is the answer: an absent GID is cached for a second."""
        since, end = self.mark(), time.monotonic() + PATIENCE
        while True:
            self.tell("resolve", fabric, gid)
            try:
                return self.wait(f"set {fabric} {gid} {answer}", since, patience=0.3)
            except AssertionError:
                assert time.monotonic() < end and self.child.poll() is None, self.lines[-40:]

    def end(self, sig=None):
        if self.child.poll() is None:
            if sig:
                self.child.send_signal(sig)
            else:
                self.tell("leave")
            try:
                self.child.communicate(timeout=PATIENCE)
            except subprocess.TimeoutExpired:
                self.child.kill()
                raise
        return self.child.returncode


class FaultyProxy:
    """A proxy between a host and etcd. `mode` answers requests itself, or returns FORWARD; None forwards them all."""

    FORWARD = object()

    def __init__(self, etcd):
        self.etcd, self.mode, self.served, self.ending = etcd, None, 0, False
        proxy = self

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"
            rbufsize = 0  # the body stays in the socket

            def log_message(self, *args):
                pass

            def do_POST(self):
                proxy.serve(self)

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self.server.server_address[1]}"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def serve(self, handler):
        handler.close_connection = True
        self.served += 1
        try:
            if not self.mode or self.mode(handler) is self.FORWARD:
                self.forward(handler)
        except OSError:
            pass  # the other side has closed the connection

    @staticmethod
    def body(handler):
        left, parts = int(handler.headers.get("Content-Length", 0)), []
        while left:
            parts.append(handler.rfile.read(left))
            if not parts[-1]:
                break
            left -= len(parts[-1])
        return b"".join(parts)

    def forward(self, handler):
        if handler.headers.get("Transfer-Encoding"):
            return self.forward_stream(handler)
        token = handler.headers.get("Authorization")
        request = urllib.request.Request(self.etcd.url + handler.path, self.body(handler),
                                         {"Authorization": token} if token else {})
        try:
            with urllib.request.urlopen(request, timeout=PATIENCE) as answer:
                return self.reply(handler, answer.status, answer.read())
        except urllib.error.HTTPError as why:
            return self.reply(handler, why.code, why.read())

    def forward_stream(self, handler):
        """Bytes both ways, until either side ends or `mode` changes."""
        mode = self.mode
        host, port = self.etcd.url.split("//")[1].split(":")
        with socket.create_connection((host, int(port))) as other:
            head = f"POST {handler.path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\nTransfer-Encoding: chunked\r\n"
            token = handler.headers.get("Authorization")
            other.sendall((head + (f"Authorization: {token}\r\n" if token else "") + "\r\n").encode())
            here = handler.connection
            while self.mode is mode and not self.ending:
                for sock in select.select([here, other], [], [], 0.1)[0]:
                    data = sock.recv(65536)
                    if not data:
                        return
                    (other if sock is here else here).sendall(data)

    @staticmethod
    def reply(handler, status, body):
        handler.send_response(status)
        handler.send_header("Content-Length", str(len(body)))
        handler.send_header("Connection", "close")
        handler.end_headers()
        handler.wfile.write(body)

    def close(self):
        self.ending = True
        self.server.shutdown()
        self.server.server_close()
