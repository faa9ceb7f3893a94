# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
"""The steps of a run, and what they printed."""

import re

from bench_lib.vm.output import Unreadable
from bench_lib.vm.rows import PVRDMA, RXE
from vmlab_lib.steps import Step

from .rows import COUNTS, Counts

SECONDS = 120
DEVICES = (PVRDMA, RXE)
# Soft-RoCE takes a thousand times as long. The ticks of the guests' clocks are a hundredth of its instructions.
MESSAGES = {PVRDMA: 200_000, RXE: 2_000}
PORT = 18600
SCRIPT = """\
. "$SHARE/bench.sh"
. $devices
export RDMA_DEV=${{device[{device}]}} GID_INDEX=${{gid[{device}]}}
talk {port} 1 2 "$SHARE/pvr_cost" {case} {messages} "$SHARE/counts/node$NODE" "$SHARE/flags/$STEP"
"""


def name(case, device):
    return f"{case}.{device}"


def steps(cases, divisor):
    """divisor: divides the numbers of messages."""
    plan = [Step("setup", '. "$SHARE/bench.sh"; set_up_devices')]
    for number, (case, device) in enumerate((case, device) for case in cases for device in DEVICES):
        script = SCRIPT.format(case=case, device=device, port=PORT + number, messages=MESSAGES[device] // divisor)
        plan.append(Step(name(case, device), script, SECONDS))
    return plan


def _per_message(text):
    found = re.search(r"^cost (.*)$", text, re.MULTILINE)
    if not found:
        raise Unreadable("pvr_cost printed no counts")
    values = dict(word.split("=") for word in found[1].split())
    counts = {count: float(values[count]) / int(values["messages"]) for count in COUNTS}
    return int(values["messages"]), counts, float(values["program_instructions"])


def read(texts, syscalls):
    """The Counts of a step. texts: of server and client; syscalls: of the host during all messages, or None.

    They are {group: system calls}.
    """
    (messages, server, _), (_, client, program) = map(_per_message, texts)
    return Counts(guests={count: server[count] + client[count] for count in COUNTS}, client=client, program=program,
                  syscalls=None if syscalls is None else {group: calls / messages for group, calls in syscalls.items()})
