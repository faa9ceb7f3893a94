# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
"""Programs that replace a running pvrdmad, and guests that send meanwhile."""

import json
import os
import shutil
import socket
import subprocess
import sys
from pathlib import Path

import daemon_process
from daemon_process import PATIENCE, mac, wait_until

GOES_ON = "the new pvrdmad does not replace this one, which goes on: "

FORGED = """#!{python}
import array, json, os, socket, subprocess, sys, time
channel = socket.socket(fileno=int(os.environ["PVRDMAD_UPGRADE"]))
def send(**message):
    channel.send(json.dumps(message).encode())
def receive(last):
    while True:
        data = socket.recv_fds(channel, 65536, 253)[0]
        if not data:
            sys.exit(1)
        if json.loads(data)["type"] == last:
            return
def hello(handover=1, **more):
    send(type="hello", handover=handover, pid=os.getpid(), version="forged", **more)
def ready():
    hello()
    receive("create")
    send(type="ready")
{body}
"""


def install(path, source):
    """As a package manager: the running process keeps its file."""
    new = path.with_suffix(".new")
    shutil.copy(source, new)
    os.replace(new, path)


def install_script(path, body):
    new = path.with_suffix(".new")
    new.write_text(FORGED.format(python=sys.executable, body=body))
    new.chmod(0o755)
    os.replace(new, path)


class Traffic:
    """Two guests of a daemon whose queue pairs send to each other, and check each byte."""

    def __init__(self, daemon, *args, over):
        self.over = over
        argv = [Path(daemon_process.PVRDMACTL).parent / "tests/hosts/hosts_verify", "--seconds", "600", "--until", over,
                *args, f"1={daemon.socket(1)}", f"2={daemon.socket(2)}"]
        self.child = subprocess.Popen([str(arg) for arg in argv], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                      stderr=subprocess.PIPE, text=True)
        assert self.child.stderr.readline() == "begun\n"

    def end(self):
        """Return: the steps done. Each message has come once, and each byte is right."""
        self.over.touch()
        out, err = self.child.communicate(timeout=2 * PATIENCE)
        assert self.child.returncode == 0, out + err
        result = json.loads(out)
        assert result["wrong"] == 0 and not result["failed"], out + err
        return result["steps"]

    def kill(self):
        self.child.kill()
        self.child.communicate()


def messages(daemon):
    return sum(row["messages"] for row in daemon.query("workers")["workers"])


def wait_for_messages(daemon):
    before = messages(daemon)
    wait_until(lambda: messages(daemon) > before + 100, "guests send")


class Forged:
    """The new pvrdmad, with this test as the running one."""

    def __init__(self, folder, *args):
        self.folder = folder
        self.channel, other = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self.channel.settimeout(PATIENCE)
        os.set_inheritable(other.fileno(), True)
        self.log = open(folder / "log", "wb")
        self.child = subprocess.Popen([daemon_process.PVRDMAD, "--control", str(folder / "control"), *args],
                                      stdin=subprocess.DEVNULL, stdout=self.log, stderr=self.log, pass_fds=[other.fileno()],
                                      env={**os.environ, "PVRDMAD_UPGRADE": str(other.fileno())})
        other.close()
        assert self.receive()["type"] == "hello"

    def receive(self):
        return json.loads(self.channel.recv(65536))

    def send(self, kind, fds=(), **fields):
        socket.send_fds(self.channel, [json.dumps({"type": kind, **fields}).encode()], list(fds))

    def adapter(self, **more):
        settings = {"name": "node1", "socket": str(self.folder / "a1"), "mac": mac(1), **more}
        self.send("adapters", adapters=[{"settings": settings, "qos": {}, "link_up": True}])

    def ready(self, **vms):
        self.adapter()
        for version in vms.values():
            self.send("vm", adapter="node1", version=version)
        self.send("create")
        assert self.receive()["type"] == "ready"

    def error(self):
        """It ends with an error. Return: its log."""
        assert self.child.wait(PATIENCE) == 1
        return (self.folder / "log").read_text()

    def close(self):
        self.channel.close()
        if self.child.poll() is None:
            self.child.terminate()
        self.child.wait(PATIENCE)
        self.log.close()
