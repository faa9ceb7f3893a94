# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
"""The rows of guest.json: counts per message, and a model of the CPU time that they would take with KVM."""

import dataclasses

from bench_lib.vm.rows import PEER_NAMES, PVRDMA, RXE

CASES = ("write_stream", "write_inline", "write_function", "write_single", "send_stream", "read_stream")
PVRDMAD, QEMU = "pvrdmad", "qemu"
COUNTS = ("instructions", "user_instructions", "accesses", "interrupts", "halts")

# Nanoseconds in the model. They are those of a server CPU of about 3 GHz, rounded up for short events and down for
# long ones, which favors Soft-RoCE.
INSTRUCTION = 0.33
EXIT = 1200         # an access to a device, or a halt: to the hypervisor and back, without QEMU
INTERRUPT = 500     # an interrupt that is posted by hardware, and its entry and return in the guest
SYSCALL = 300       # of QEMU and pvrdmad, without the work for packets
DEVICE = 20         # pvrdmad's worker for a WRITE of 8 bytes: 1 / write_rate.8


@dataclasses.dataclass(frozen=True)
class Counts:
    """Per message, of both guests; client: of the requester's. program: instructions of its benchmark program itself.

    syscalls: of the host's processes by PVRDMAD and QEMU, or None.
    """

    guests: dict
    client: dict
    program: float
    syscalls: dict | None


def model(counts, device):
    """CPU seconds per message with KVM."""
    both = counts.guests
    syscalls = sum(counts.syscalls.values()) if counts.syscalls else 0
    nanoseconds = (both["instructions"] * INSTRUCTION + (both["accesses"] + both["halts"]) * EXIT
                   + both["interrupts"] * INTERRUPT + syscalls * SYSCALL + (DEVICE if device == PVRDMA else 0))
    return nanoseconds * 1e-9


# name: (unit, value of (Counts, device)). None: not counted.
KINDS = {
    "insn": ("insn", lambda counts, _: counts.guests["instructions"]),
    "insn_requester": ("insn", lambda counts, _: counts.client["instructions"]),
    "insn_program": ("insn", lambda counts, _: counts.program),
    "insn_post_poll": ("insn", lambda counts, _: counts.client["user_instructions"] - counts.program),
    "accesses": ("", lambda counts, _: counts.guests["accesses"]),
    "interrupts": ("", lambda counts, _: counts.guests["interrupts"]),
    "halts": ("", lambda counts, _: counts.guests["halts"]),
    "syscalls": ("", lambda counts, _: counts.syscalls and sum(counts.syscalls.values())),
    "syscalls_pvrdmad": ("", lambda counts, _: counts.syscalls and counts.syscalls[PVRDMAD]),
    "kvm_cpu": ("s", model),
}


def entries(case, found):
    """The rows of a case. found: {device: Counts}."""
    rows = []
    for kind, (unit, value_of) in KINDS.items():
        value, peer = (value_of(found[device], device) for device in (PVRDMA, RXE))
        if value is None or peer is None:
            continue
        rows.append({"name": f"guest.{kind}.{case}", "value": value, "unit": unit, "peer": PEER_NAMES[RXE], "peer_value": peer,
                     "ratio": value / peer if peer else None, "min": value, "max": value, "runs": 1})
    return rows
