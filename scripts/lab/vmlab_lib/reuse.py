# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
"""`run --reuse`, `list` and `stop`: clients of kept labs."""

import json
import os
import pathlib
import socket

from . import cache, kept, logs, rundir
from .assembly import count
from .errors import LabError, LabFailure
from .initramfs import GUEST_SCRIPTS
from .options import COMMAND, ROOT

# A kept lab replies at once, and ends its VMs within some seconds.
REPLY_SECONDS = 20
# What VMs of a lab have of their own: runs with other values need other VMs.
VM_OPTIONS = ("nodes", "driver", "kernel", "nic", "share", "memory", "smp", "per_node", "fabrics", "hosts", "pipe", "adapter_settings",
              "provider", "posted_writes", "append", "qemu", "qmp", "pvrdmad", "pvrdmad_log_level")


def _content(path):
    """Of a file, or of all files in a folder."""
    if path is None:
        return b""
    files = sorted(file for file in path.rglob("*") if file.is_file()) if path.is_dir() else [path]
    return b"".join(str(file.relative_to(path.parent)).encode() + b"\0" + file.read_bytes() for file in files)


def key_of(options, found):
    """Labs with the same key have the same VMs."""
    program = options.pvrdmad.stat() if options.needs_daemon else None
    return cache.key(str(ROOT), repr([(name, str(getattr(options, name, None))) for name in VM_OPTIONS]),
                     repr((program.st_mtime_ns, program.st_size) if program else None),
                     str(found.kernel), str(found.initramfs), str(found.image),
                     *map(_content, [*found.drivers.values(), found.provider, found.rdma_core, GUEST_SCRIPTS, *found.extra]))


class _Connection:
    """To the process of a kept lab."""

    def __init__(self, sock):
        self._sock = sock
        self._lines = sock.makefile("r", encoding="utf-8")

    def ask(self, **request):
        """Return: the first reply, None if there is none."""
        self._sock.settimeout(REPLY_SECONDS)
        try:
            self._sock.sendall(json.dumps(request).encode() + b"\n")
            return self.reply()
        except OSError:
            return None

    def wait(self):
        """For replies from now on without a limit of time."""
        self._sock.settimeout(None)

    def reply(self):
        line = self._lines.readline()
        return json.loads(line) if line.endswith("\n") else None

    def close(self):
        self._lines.close()
        self._sock.close()


class Kept:
    """A kept lab of this user. `number`: that of its process."""

    def __init__(self, folder, number):
        self.number = number
        self.path = folder / kept.SOCKET
        about = json.loads((folder / f"{kept.SOCKET}.json").read_text())
        self.key, self.options = about["key"], about["options"]

    def connect(self):
        """Return: a connection, or None if its process is gone."""
        sock = socket.socket(socket.AF_UNIX)
        sock.settimeout(REPLY_SECONDS)
        try:
            sock.connect(str(self.path))
        except OSError:
            sock.close()
            return None
        return _Connection(sock)

    def ask(self, **request):
        connection = self.connect()
        if connection is None:
            return None
        try:
            return connection.ask(**request)
        finally:
            connection.close()


def labs():
    """The kept labs of this user."""
    found = []
    for folder, pid in rundir.folders():
        try:
            found.append(Kept(folder, pid))
        except (OSError, ValueError, KeyError):
            continue  # a run that keeps nothing, or that begins or ends at this moment
    return found


# --- run ------------------------------------------------------------------------------------------

def run(options, found, progress):
    """Return the exit status."""
    request = {"do": "run", "script": str(pathlib.Path(options.run).absolute()), "timeout": options.timeout,
               "fault": str(options.fault) if options.fault else None}
    key = key_of(options, found)
    connection = _take(key, request, progress)
    if connection is None:
        connection = _Connection(kept.keep(options, found, key))
        # The lab may fail before it takes the run.
        first = connection.ask(**request)
        if first and first[0] != "taken":
            _show(first, progress)
    connection.wait()
    try:
        status, folder = _follow(connection, progress)
    finally:
        connection.close()
    if options.keep_logs:
        folder = logs.copy(pathlib.Path(folder), pathlib.Path(options.keep_logs).absolute())
    if status == 0:
        progress.say(f"{count(options.nodes, 'node')} ended well; logs are in {folder}")
    return status


def _take(key, request, progress):
    """Return: a connection to a kept lab with this key that has taken the run, or None."""
    for lab in labs():
        connection = lab.connect() if lab.key == key else None
        if connection is None:
            continue
        reply = connection.ask(**request)
        if reply == ["taken"]:
            progress.say(f"using the VMs of lab {lab.number}")
            return connection
        connection.close()
        if reply == ["busy"]:
            progress.say(f"lab {lab.number} is in use by another run")
    return None


def _show(message, progress):
    kind, *args = message
    if kind in ("say", "error", "trace", "output"):
        getattr(progress, kind)(*args)


def _follow(connection, progress):
    """Return: exit status and the folder of the lab's logs."""
    while True:
        message = connection.reply()
        if message is None:
            raise LabFailure("the process of the lab has gone")
        if message[0] == "end":
            return int(message[1]), message[2]
        _show(message, progress)


# --- list and stop --------------------------------------------------------------------------------

def _duration(seconds):
    minutes = int(seconds) // 60
    return f"{int(seconds)} s" if minutes < 2 else f"{minutes} min"


def show(progress):
    """Print the kept labs."""
    rows = []
    for lab in labs():
        reply = lab.ask(do="state")
        if reply and reply[0] == "state":
            state = reply[1]
            use = "in use" if state["busy"] else f"idle for {_duration(state['idle'])}"
            rows.append(f"{lab.number}  {use}  runs {state['runs']}  {lab.options}  logs {state['logs']}")
    if rows:
        print("\n".join(rows))
    else:
        progress.say(f"no lab is kept; `{COMMAND} run --reuse` keeps one")


def stop(numbers, progress):
    """End these labs, or all. Raises LabError if there is no such lab."""
    known = {str(lab.number): lab for lab in labs()}
    for number in numbers:
        if number not in known:
            raise LabError(f"there is no lab {number}; see `{COMMAND} list`")
    for number in numbers or known:
        if known[number].ask(do="stop") is not None or os.path.exists(known[number].path):
            raise LabFailure(f"lab {number} does not stop within {REPLY_SECONDS} s; say kill {number}")
        progress.say(f"lab {number} is stopped")
