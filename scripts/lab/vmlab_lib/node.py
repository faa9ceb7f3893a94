# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
"""One node of the lab: its VM, the streams that come from it, and what became of it."""

import dataclasses
import enum
import os
import pathlib
import re
import socket
import time

from . import process, qemu
from .console import Console
from .lines import LineReader


@dataclasses.dataclass
class Vm:
    """Parameters of QEMU. The descriptors are the guest's ends of its streams."""

    number: int
    kernel: pathlib.Path
    initramfs: pathlib.Path
    image: pathlib.Path
    driver: str
    nic: str
    mac: str
    netdev: dict
    adapter: pathlib.Path | None
    posted: bool             # QEMU posts register writes
    shares: list
    memory: int
    smp: int
    more: list               # MAC and socket of further adapters
    wire: pathlib.Path | None = None  # the socket of pvrdmad to which QEMU connects the segment
    pcap: pathlib.Path | None = None  # gets the frames between the VM and the segment
    append: str = ""         # more kernel parameters
    device: str = "vfio-user-pci"  # QEMU's type of adapters, or "pvrdma"
    shell_path: pathlib.Path | None = None
    qmp: pathlib.Path | None = None  # QEMU's control socket; the adapter is in a hot-plug slot
    console_fd: int = -1
    control_fd: int = -1
    output_fd: int = -1


class State(enum.Enum):
    BOOTING = "booting"
    RUNNING = "running"
    FINISHED = "finished"      # its script is through; the VM waits for the others
    ENDED = "ended"            # the VM is gone
    KILLED = "killed"          # the VM is gone because a script asked for it


class Node:
    """Boots one VM. Tells its listener what happens:

    listener.on_output(node, line), on_trace(node, line), on_message(node, words), on_end(node).
    """

    # QEMU queues posted register writes without limit: rather it dies than the host's other
    # processes. The guest's RAM is shared memory and does not count.
    DATA_LIMIT = 4 << 30
    # Time for the rest of a kernel's complaint to arrive.
    TRACE_SECONDS = 2.0

    def __init__(self, vm, program, logs, listener, restarted=False):
        self.vm = vm
        self.number = vm.number
        self.name = f"node{vm.number}"
        self.program = program
        self.listener = listener
        self.restarted = restarted
        self.state = State.BOOTING
        self.reason = None       # why the node failed
        self.exit_status = None  # its script's
        self.started = time.monotonic()
        self.complained = None
        self.kernel = Console()
        self._logs = logs
        self._mode = "ab" if restarted else "wb"
        self._stderr_path = logs / f"{self.name}.qemu"
        self._child = None
        self._control = None
        self.readers = []
        self.output = None       # the reader of what the script writes

    def start(self):
        streams = [("console_fd", "console", self._on_console),
                   ("control_fd", None, self._on_control),
                   ("output_fd", "out", self._on_output)]
        guest_ends = []
        for field, log_name, on_line in streams:
            ours, theirs = socket.socketpair()
            guest_ends.append(theirs)
            setattr(self.vm, field, theirs.fileno())
            log = open(self._logs / f"{self.name}.{log_name}", self._mode) if log_name else None
            self.readers.append(LineReader(ours, on_line, log))
            if field == "control_fd":
                self._control = ours
            elif field == "output_fd":
                self.output = self.readers[-1]
        argv = [self.program, *qemu.arguments(self.vm)]
        (self._logs / f"{self.name}.cmdline").write_text("\n".join(map(str, argv)) + "\n")
        with open(self._stderr_path, self._mode) as stderr:
            self._child = process.spawn(argv, self.DATA_LIMIT, stdout=stderr, stderr=stderr,
                                        pass_fds=[end.fileno() for end in guest_ends])
        for end in guest_ends:
            end.close()

    @property
    def pid(self):
        return self._child.pid

    def alive(self):
        return self.state not in (State.ENDED, State.KILLED)

    def send(self, text):
        """Send the guest a line; a guest that is gone does not mind."""
        try:
            self._control.send(text.encode() + b"\n")
        except OSError:
            pass

    def kill(self, state=State.ENDED):
        """End the VM at once, as a power cut would."""
        if self._child is not None:
            process.stop(self._child, grace=0)
        self.state = state

    def fail(self, reason):
        if self.reason is None:
            self.reason = reason

    def check(self):
        """Called regularly and at the end of a stream: has the VM ended, has its kernel complained?"""
        if self.complained and self.reason is None and \
                time.monotonic() - self.complained > self.TRACE_SECONDS:
            self.fail(f"its kernel says: {self.kernel.reason()}")
        if self.alive() and not any(reader.open for reader in self.readers):
            self._child.wait()
            process.stop(self._child, grace=0)
            finished = self.state is State.FINISHED
            self.state = State.ENDED
            self._judge(finished)
            self.listener.on_end(self)

    def _judge(self, finished):
        if self.complained:
            self.fail(f"its kernel says: {self.kernel.reason()}")
        elif self.kernel.boot_failure:
            self.fail(self.kernel.boot_failure)
        elif self._child.returncode != 0:
            self.fail(f"QEMU ended with status {self._child.returncode}: {self._last_words()}")
        elif not finished:
            self.fail("the VM went off before its script ended")

    def _last_words(self):
        text = self._stderr_path.read_text(errors="replace").strip()
        return text.splitlines()[-1] if text else "no message"

    def _on_console(self, line):
        if self.kernel.feed(line):
            self.listener.on_trace(self, line)
        if self.kernel.complaint and self.complained is None:
            self.complained = time.monotonic()

    def _on_output(self, line):
        self.listener.on_output(self, line)

    def _on_control(self, line):
        self.listener.on_message(self, line.split())


def environment(options, number, restarted):
    """The text of nodeN.env, which the guest's init reads."""
    ips = [f"10.77.{n >> 8}.{n & 255}" for n in range(1, options.nodes + 1)]
    ips6 = [f"fd77::{n:x}" for n in range(1, options.nodes + 1)]
    peer = min(1, options.nodes - 1) if number == 1 else 0
    columns, rows = _terminal_size()
    device = options.devices[number]
    values = {
        "NODE": number, "NODES": options.nodes, "MY_IP": ips[number - 1], "IPS": " ".join(ips),
        "MY_IP6": ips6[number - 1], "IPS6": " ".join(ips6), "PEER_IP": ips[peer], "PEER_IP6": ips6[peer],
        "DRIVER": device.driver, "PROVIDER": device.provider, "SHARE": "/share", "MODE": options.mode,
        "SCRIPT": "/vmlab/run", "MAC": options.macs[number], "RDMA_DEV": "", "GID_INDEX": "",
        "NIC_MODULE": {"virtio-net-pci": "virtio_net"}.get(device.nic, device.nic),
        "RESTARTED": 1 if restarted else 0, "ROWS": rows, "COLUMNS": columns,
        "TERM": re.sub(r"[^\w.+-]", "", os.environ.get("TERM", "")) or "dumb",
    }
    return "".join(f"{name}='{value}'\n" for name, value in values.items())


def _terminal_size():
    try:
        return os.get_terminal_size()
    except OSError:
        return os.terminal_size((80, 24))
