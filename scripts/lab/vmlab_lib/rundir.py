# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
"""The private folder of one run: sockets and shares. Its path is short, as sockets need it."""

import contextlib
import os
import pathlib
import shutil
import stat
import tempfile

_PREFIX = "vmlab-"


def _parent():
    """Of new folders."""
    runtime = os.environ.get("XDG_RUNTIME_DIR", "")
    # a socket's path has 108 bytes
    if runtime and len(runtime) < 60 and os.access(runtime, os.W_OK | os.X_OK):
        return pathlib.Path(runtime)
    return pathlib.Path("/tmp")


def _remove_stale(parent):
    """Remove what runs left behind that were killed so hard that they could not."""
    for path, pid in folders():
        if path.parent == parent and not os.path.exists(f"/proc/{pid}"):
            shutil.rmtree(path, ignore_errors=True)


def folders():
    """The folders of this user's runs, with the process of each: [(path, pid), ...]."""
    found = {}
    for parent in {_parent(), pathlib.Path("/tmp")}:
        for path in parent.glob(f"{_PREFIX}*"):
            pid = path.name[len(_PREFIX):].split("-")[0]
            with contextlib.suppress(OSError):
                info = path.lstat()
                if stat.S_ISDIR(info.st_mode) and info.st_uid == os.geteuid() and pid.isdecimal():
                    found[path] = int(pid)
    return sorted(found.items(), key=lambda item: item[1])


@contextlib.contextmanager
def run_dir():
    parent = _parent()
    _remove_stale(parent)
    path = pathlib.Path(tempfile.mkdtemp(prefix=f"{_PREFIX}{os.getpid()}-", dir=parent))
    try:
        yield path
    finally:
        shutil.rmtree(path, ignore_errors=True)
