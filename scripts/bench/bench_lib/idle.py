# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
"""An idle pvrdmad: CPU time, memory and start.

Each adapter has a client, a driver and a queue pair that was in use. With 256 adapters each one has 999 more queue pairs.
"""

import contextlib
import re
import resource
import statistics
import struct
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]
sys.path.insert(0, str(ROOT / "tests" / "daemon"))

from guest import EXT_ACK, PAGE, Guest  # noqa: E402
from vfio_user import BAR_UAR, Client  # noqa: E402

QPS = {64: 1, 256: 1000}  # adapters: queue pairs of each
FILES = 8  # of this process for each adapter
ALL_EXTENSIONS = 0xFFFFFFFF  # the device takes those it has
SETTLE = 2  # seconds until what the start left to do is done
PATIENCE = 20

CQ_RING, QP_RINGS = 80 * PAGE, 96 * PAGE
CREATE_PD, CREATE_CQ, CREATE_QP, MODIFY_QP = 2, 6, 9, 10
UD, INIT, RTR, RTS = 4, 1, 2, 3
STATE, SQ_PSN = 1 << 0, 1 << 16
INIT_MASK = 0x71  # state, P_Key index, port, Q_Key
DOORBELL_SEND = 1 << 30


@contextlib.contextmanager
def daemon(program, folder, adapters):
    """Its process number, and the seconds from its start to its readiness."""
    command = [program, "--control", f"{folder}/control"]
    for number in range(1, adapters + 1):
        mac = f"52:54:00:00:{number >> 8:02x}:{number & 255:02x}"
        command += ["--adapter", f"name=node{number},socket={folder}/{number},mac={mac}"]
    with open(f"{folder}/log", "w+") as log:
        begin = time.monotonic()
        child = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log, stderr=log)
        try:
            while "ready, " not in Path(log.name).read_text():
                if child.poll() is not None or time.monotonic() > begin + PATIENCE:
                    raise RuntimeError(f"pvrdmad does not start: {Path(log.name).read_text()}")
                time.sleep(0.001)
            yield child.pid, time.monotonic() - begin
        finally:
            child.terminate()
            child.wait()


def create_qp(guest, domain, cq):
    """A queue pair in RTS. All of a guest share their ring: nothing is posted to it."""
    queue = guest.command(CREATE_QP, "Q11I3H6B", QP_RINGS, domain, cq, cq, 0, 16, 16, 1, 1, 0, 0, 0, 3, 1, 0, 0, UD, 0, 0,
                          0, 0)[1]
    guest.command(MODIFY_QP, "III41xB", queue, INIT_MASK, INIT, 1)
    guest.command(MODIFY_QP, "III", queue, STATE, RTR)
    guest.command(MODIFY_QP, "III", queue, STATE | SQ_PSN, RTS)
    return queue


def work(guest, qps):
    """Queue pairs that the device has looked at for requests: a poller keeps such ones in mind."""
    for base in (CQ_RING, QP_RINGS):
        guest.put_ring(base)
    domain = guest.command(CREATE_PD, "II", 0, 0)[0]
    cq = guest.command(CREATE_CQ, "QIIII", CQ_RING, 0, 64, 2, 0)[0]
    for _ in range(qps):
        guest.client.write(BAR_UAR, 0, struct.pack("<I", create_qp(guest, domain, cq) | DOORBELL_SEND))


def used(pid):
    """(nanoseconds on a CPU, context switches) so far, of all threads."""
    nanoseconds = switches = 0
    for task in Path(f"/proc/{pid}/task").iterdir():
        nanoseconds += int((task / "schedstat").read_text().split()[0])
        switches += sum(map(int, re.findall(r"ctxt_switches:\s*(\d+)", (task / "status").read_text())))
    return nanoseconds, switches


def sample(pid, seconds):
    """(per cent of a CPU, context switches per second) within so many seconds."""
    before, begin = used(pid), time.monotonic()
    time.sleep(seconds)
    took, after = time.monotonic() - begin, used(pid)
    return (after[0] - before[0]) / took / 1e7, (after[1] - before[1]) / took


def row(name, unit, values):
    return {"name": name, "value": statistics.median(values), "unit": unit, "peer": None, "peer_value": None,
            "ratio": None, "min": min(values), "max": max(values), "runs": len(values)}


def memory(pid):
    """Bytes that no other process has, and no file: neither programs nor the RAM of guests."""
    return int(re.search(r"^RssAnon:\s*(\d+) kB", Path(f"/proc/{pid}/status").read_text(), re.MULTILINE)[1]) << 10


def attach(stack, path, qps):
    client = stack.enter_context(Client(path))
    client.negotiate()
    guest = stack.enter_context(contextlib.closing(Guest(client)))
    client.write_reg(EXT_ACK, ALL_EXTENSIONS)
    if guest.start():
        raise RuntimeError(f"the adapter at {path} does not start")
    work(guest, qps)


def allow_files(number):
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(number, hard), hard))


def rows_of(build, adapters, runs=5, seconds=1):
    with tempfile.TemporaryDirectory() as folder, contextlib.ExitStack() as stack:
        pid, start = stack.enter_context(daemon(build / "pvrdmad", folder, adapters))
        empty = memory(pid)
        for number in range(1, adapters + 1):
            attach(stack, f"{folder}/{number}", QPS[adapters])
        time.sleep(SETTLE)
        samples = [sample(pid, seconds) for _ in range(runs)]
        grown = memory(pid) - empty
    yield row(f"idle_cpu_{adapters}", "%", [percent for percent, _ in samples])
    yield row(f"idle_switches_{adapters}", "1/s", [switches for _, switches in samples])
    yield row(f"adapter_start_{adapters}", "s", [start / adapters])
    yield row(f"adapter_bytes_{adapters}", "B", [empty / adapters])
    yield row(f"adapter_used_bytes_{adapters}", "B", [grown / adapters])


def rows(build):
    allow_files(FILES * max(QPS))
    for adapters in QPS:
        yield from rows_of(build, adapters)
