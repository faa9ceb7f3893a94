# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
"""Storage of one VM's kernel that the other's uses: NVMe over fabrics, measured by fio, and NFS."""

import json
import re

from bench_lib.vm.output import Unreadable

from .app import PVRDMA, RXE, TCP, App, Row

SINGLE = Row("apps.nvme_random_read_single", "1/s", "NVMe over fabrics, RAM disk: `fio` random reads of 4 KiB, one at a time")
RANDOM = Row("apps.nvme_random_read", "1/s", "the same, 32 at once")
READ = Row("apps.nvme_read", "B/s", "sequential reads of 1 MiB, 8 at once")
WRITE = Row("apps.nvme_write", "B/s", "sequential writes of 1 MiB, 8 at once")
TO_SERVER = Row("apps.nfs_to_server", "s", "NFS: 500 files, 10.8 MB, copied to the server")
TO_CLIENT = Row("apps.nfs_to_client", "s", "the same copied back")
# The values of fio's jobs.
JOBS = {SINGLE: ("single", "read", "iops"), RANDOM: ("random", "read", "iops"), READ: ("read", "read", "bw_bytes"),
        WRITE: ("write", "write", "bw_bytes")}


def read_fio(text):
    begin, end = text.find("\n{"), text.rfind("\n}")
    try:
        jobs = {job["jobname"]: job for job in json.loads(text[begin:end + 2])["jobs"]}
        failed = [name for name, job in jobs.items() if job["error"]]
        found = {row.name: jobs[job][way][what] for row, (job, way, what) in JOBS.items()}
    except (ValueError, KeyError) as why:
        raise Unreadable(f"fio printed no results: {why!r}") from why
    if failed or not all(found.values()):
        raise Unreadable(f"fio failed: {' '.join(failed) or 'nothing was moved'}")
    return found


def read_copy(text):
    found = re.search(r"^@copied (\d+) (\d+)$", text, re.MULTILINE)
    if not found:
        raise Unreadable("no time for the copies")
    return {TO_SERVER.name: int(found[1]) * 1e-9, TO_CLIENT.name: int(found[2]) * 1e-9}


DEVICES = (PVRDMA, RXE, TCP)
APPS = (App("nvme", DEVICES, tuple(JOBS), read_fio, 60),
        App("nfs", DEVICES, (TO_SERVER, TO_CLIENT), read_copy, 60))
