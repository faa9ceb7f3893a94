# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
"""Artefacts that are built once: keyed by content, written atomically, one builder at a time."""

import contextlib
import fcntl
import hashlib
import os
import pathlib
import shutil
import tempfile

# Below this a step that failed is taken to have filled the file system.
FULL = 64 << 20
VARIABLE = "PVRDMA_CACHE"


def cache_dir():
    base = os.environ.get("PVRDMA_CACHE")
    if base:
        return pathlib.Path(base)
    home = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
    return pathlib.Path(home) / "pvrdma"


def trouble(reason):
    """The cause of a failed step if it is the cache's file system, with what to do; None if it is not."""
    if VARIABLE in reason:
        return None
    folder = there = cache_dir().absolute()
    while not there.exists():
        there = there.parent
    usage = shutil.disk_usage(there)
    free = usage.free
    if usage.total and free < FULL:
        return (f"the cache {folder} is full, it has {free >> 20} MiB left: free 3 GiB there, or set PVRDMA_CACHE to another folder "
                f"({reason})")
    if not usage.total or not there.is_dir() or not os.access(there, os.W_OK | os.X_OK):
        return f"this user may not write to the cache {folder}: set PVRDMA_CACHE to another folder ({reason})"
    return None


def key(*parts):
    """A short name for some content (str or bytes)."""
    digest = hashlib.sha256()
    for part in parts:
        data = part.encode() if isinstance(part, str) else part
        digest.update(len(data).to_bytes(8, "little") + data)
    return digest.hexdigest()[:16]


@contextlib.contextmanager
def _locked(path):
    with open(path, "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def get(folder, name, build):
    """Return the path of artefact folder/name; build(path) makes it when it is not there."""
    directory = cache_dir() / folder
    path = directory / name
    if path.exists():
        return path
    directory.mkdir(parents=True, exist_ok=True)
    with _locked(directory / f".{name}.lock"):
        if not path.exists():
            _build_atomically(path, build)
    return path


def _build_atomically(path, build):
    handle, name = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)
    os.close(handle)
    draft = pathlib.Path(name)
    try:
        build(draft)
        draft.chmod(0o644)
        draft.rename(path)
    finally:
        draft.unlink(missing_ok=True)
