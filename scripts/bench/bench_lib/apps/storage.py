# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
"""Storage of one VM's kernel that the other's uses: NVMe over fabrics, measured by fio, and NFS."""

import json
import re

from bench_lib.vm.output import Unreadable

from .app import PVRDMA, RXE, TCP, App, Row

RANDOM = Row("apps.nvme_random_read", "1/s", "NVMe over fabrics, RAM disk: `fio` random reads of 4 KiB, 32 at once")
READ = Row("apps.nvme_read", "B/s", "sequential reads of 1 MiB, 8 at once")
WRITE = Row("apps.nvme_write", "B/s", "sequential writes of 1 MiB, 8 at once")
TO_SERVER = Row("apps.nfs_to_server", "s", "NFS: 500 files, 10.8 MB, copied to the server")
TO_CLIENT = Row("apps.nfs_to_client", "s", "the same copied back")


def read_fio(text):
    begin, end = text.find("\n{"), text.rfind("\n}")
    try:
        jobs = {job["jobname"]: job for job in json.loads(text[begin:end + 2])["jobs"]}
        failed = [name for name, job in jobs.items() if job["error"]]
        found = {RANDOM.name: jobs["random"]["read"]["iops"], READ.name: jobs["read"]["read"]["bw_bytes"],
                 WRITE.name: jobs["write"]["write"]["bw_bytes"]}
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
APPS = (App("nvme", DEVICES, (RANDOM, READ, WRITE), read_fio, 60),
        App("nfs", DEVICES, (TO_SERVER, TO_CLIENT), read_copy, 60))
