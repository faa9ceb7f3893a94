# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
"""The metrics of a daemon as a scraper sees them."""

import re
import shutil
import socket
import subprocess

import pytest

from daemon_process import PATIENCE

LINE = re.compile(r'([a-z_]+)(?:\{(.*)\})? ([0-9.]+)$')
LABEL = re.compile(r'([a-z_]+)="((?:[^"\\]|\\.)*)",?')


def connect(where):
    """A connection to (address, port), or to a path."""
    sock = socket.socket(socket.AF_UNIX if isinstance(where, str) else socket.AF_INET)
    sock.settimeout(PATIENCE)
    sock.connect(where)
    return sock


def read_all(sock):
    return b"".join(iter(lambda: sock.recv(1 << 16), b""))


def http(where, request):
    """The status, the headers and the body of the reply to these bytes."""
    with connect(where) as sock:
        sock.sendall(request)
        head, _, body = read_all(sock).partition(b"\r\n\r\n")
    status, *headers = head.decode().split("\r\n")
    return int(status.split()[1]), dict(line.split(": ", 1) for line in headers), body.decode()


def get(where, path="/metrics", method="GET"):
    return http(where, f"{method} {path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n".encode())


class Scrape:
    """The samples of one scrape."""

    def __init__(self, where):
        status, self.headers, self.text = get(where)
        assert status == 200, self.text
        self.samples = {}
        for line in self.text.splitlines():
            if not line.startswith("#"):
                name, labels, value = LINE.match(line).groups()
                key = name, frozenset(LABEL.findall(labels or ""))
                assert key not in self.samples, line
                self.samples[key] = float(value)
        self.families = set(re.findall(r"^# TYPE (\w+) (?:counter|gauge)$", self.text, re.M))

    def value(self, name, **labels):
        """Of the one sample that has these labels, among others."""
        found = self.all(name, **labels)
        assert len(found) == 1, (name, labels, found)
        return found[0]

    def all(self, name, **labels):
        return [value for (family, pairs), value in self.samples.items()
                if family == name and set(labels.items()) <= pairs]


def program(name):
    """Its path; Debian's package prometheus has both."""
    path = shutil.which(name)
    if not path:
        pytest.skip(f"{name} is not installed: apt-get install prometheus")
    return path


def promtool(*args, text=None):
    return subprocess.run([program("promtool"), *map(str, args)], input=text, capture_output=True, text=True,
                          timeout=PATIENCE, check=False)
