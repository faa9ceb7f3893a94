# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
"""The folder for one run's logs; runs at the same time get folders of their own."""

import contextlib
import fcntl
import shutil

from .errors import LabError

OURS = ("node*.console", "node*.out", "node*.qemu", "node*.cmdline", "pvrdmad*.log", "paths.txt", "stats.txt", "node*.pcap")


def _take(path):
    """Create the folder and lock it. None when another run has it."""
    path.mkdir(parents=True, exist_ok=True)
    lock = open(path / ".lock", "w")
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        lock.close()
        return None
    for pattern in OURS:  # an earlier run's files must not be taken for this one's
        for old in path.glob(pattern):
            old.unlink()
    return lock


@contextlib.contextmanager
def log_dir(wanted):
    """Yield `wanted`, or while another run uses that `wanted`.2, .3 ..."""
    path, number, lock = wanted, 1, None
    try:
        while lock is None:
            lock = _take(path)
            if lock is None:
                number += 1
                path = wanted.with_name(f"{wanted.name}.{number}")
    except OSError as err:
        raise LabError(f"cannot write logs to {path}: {err.strerror}; "
                       "name another folder with --keep-logs") from err
    with lock:
        yield path


def copy(folder, wanted):
    """Copy the logs in `folder` to `wanted`, without those of an earlier run there. Return the folder, as of log_dir()."""
    with log_dir(wanted) as path:
        for pattern in OURS:
            for file in folder.glob(pattern):
                shutil.copy(file, path)
        return path
