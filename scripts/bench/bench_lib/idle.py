# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
"""CPU time and memory of an idle pvrdmad: 64 adapters, each with a client, a driver and a queue pair that was in use."""

import contextlib
import re
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

ADAPTERS = 64
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
def daemon(program, folder):
    command = [program, "--control", f"{folder}/control"]
    for number in range(1, ADAPTERS + 1):
        command += ["--adapter", f"name=node{number},socket={folder}/{number},mac=52:54:00:00:01:{number:02x}"]
    with open(f"{folder}/log", "w+") as log:
        child = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log, stderr=log)
        try:
            end = time.monotonic() + PATIENCE
            while "ready, " not in Path(log.name).read_text():
                if child.poll() is not None or time.monotonic() > end:
                    raise RuntimeError(f"pvrdmad does not start: {Path(log.name).read_text()}")
                time.sleep(0.05)
            yield child.pid
        finally:
            child.terminate()
            child.wait()


def work(guest):
    """A queue pair in RTS that the device has looked at for requests: a poller keeps such ones in mind."""
    for base in (CQ_RING, QP_RINGS):
        guest.put_ring(base)
    domain = guest.command(CREATE_PD, "II", 0, 0)[0]
    cq = guest.command(CREATE_CQ, "QIIII", CQ_RING, 0, 64, 2, 0)[0]
    queue = guest.command(CREATE_QP, "Q11I3H6B", QP_RINGS, domain, cq, cq, 0, 16, 16, 1, 1, 0, 0, 0, 3, 1, 0, 0, UD, 0, 0,
                          0, 0)[1]
    guest.command(MODIFY_QP, "III41xB", queue, INIT_MASK, INIT, 1)
    guest.command(MODIFY_QP, "III", queue, STATE, RTR)
    guest.command(MODIFY_QP, "III", queue, STATE | SQ_PSN, RTS)
    guest.client.write(BAR_UAR, 0, struct.pack("<I", queue | DOORBELL_SEND))


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


def rows(build, runs=5, seconds=1):
    with tempfile.TemporaryDirectory() as folder, contextlib.ExitStack() as stack:
        pid = stack.enter_context(daemon(build / "pvrdmad", folder))
        for number in range(1, ADAPTERS + 1):
            client = stack.enter_context(Client(f"{folder}/{number}"))
            client.negotiate()
            guest = stack.enter_context(contextlib.closing(Guest(client)))
            client.write_reg(EXT_ACK, ALL_EXTENSIONS)
            if guest.start():
                raise RuntimeError(f"adapter {number} does not start")
            work(guest)
        time.sleep(SETTLE)
        samples = [sample(pid, seconds) for _ in range(runs)]
    yield row(f"idle_cpu_{ADAPTERS}", "%", [percent for percent, _ in samples])
    yield row(f"idle_switches_{ADAPTERS}", "1/s", [switches for _, switches in samples])
