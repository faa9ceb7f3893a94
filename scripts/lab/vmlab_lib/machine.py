# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
"""A QEMU process and the streams of its VM. A node has one, and another one after a migration."""

import dataclasses
import pathlib
import socket

from . import process, qemu
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
    prefix: list = dataclasses.field(default_factory=list)  # in front of QEMU's command line
    pcap: pathlib.Path | None = None  # gets the frames between the VM and the segment
    append: str = ""         # more kernel parameters
    device: str = "vfio-user-pci"  # QEMU's type of adapters, or "pvrdma"
    shell_path: pathlib.Path | None = None
    qmp: pathlib.Path | None = None  # QEMU's control socket
    hot_plug: bool = False   # the adapter is in a hot-plug slot
    incoming: str = ""       # where QEMU waits for the state of another one
    host: int = 1            # the number of the host whose pvrdmad has the adapter
    console_fd: int = -1
    control_fd: int = -1
    output_fd: int = -1


class Machine:
    """handlers: functions for lines of the console, the control port and the script's output."""

    # QEMU queues posted register writes without limit: rather it dies than the host's other
    # processes. The guest's RAM is shared memory and does not count.
    DATA_LIMIT = 4 << 30

    def __init__(self, vm, handlers):
        self.vm = vm
        self.readers = []
        self.output = None       # the reader of what the script writes
        self.child = None
        self._handlers = handlers
        self._control = None
        self._stderr_path = None

    def start(self, program, logs, append):
        """append: to the logs of an earlier machine of the node."""
        name, mode = f"node{self.vm.number}", "ab" if append else "wb"
        guest_ends = []
        for field, log_name, on_line in zip(("console_fd", "control_fd", "output_fd"), ("console", None, "out"), self._handlers):
            ours, theirs = socket.socketpair()
            guest_ends.append(theirs)
            setattr(self.vm, field, theirs.fileno())
            log = open(logs / f"{name}.{log_name}", mode) if log_name else None
            self.readers.append(LineReader(ours, on_line, log))
            if field == "control_fd":
                self._control = ours
            elif field == "output_fd":
                self.output = self.readers[-1]
        argv = [*self.vm.prefix, program, *qemu.arguments(self.vm)]
        (logs / f"{name}.cmdline").write_text("\n".join(map(str, argv)) + "\n")
        self._stderr_path = logs / f"{name}.qemu"
        with open(self._stderr_path, mode) as stderr:
            self.child = process.spawn(argv, self.DATA_LIMIT, stdout=stderr, stderr=stderr,
                                       pass_fds=[end.fileno() for end in guest_ends])
        for end in guest_ends:
            end.close()

    def stderr_text(self):
        return self._stderr_path.read_text(errors="replace")

    def is_open(self):
        return any(reader.open for reader in self.readers)

    def send(self, text):
        """Send the guest a line; a guest that is gone does not mind."""
        try:
            self._control.send(text.encode() + b"\n")
        except OSError:
            pass

    def kill(self):
        """End the VM at once, as a power cut would."""
        if self.child is not None:
            process.stop(self.child, grace=0)

    def take_over(self, old):
        """The guest of `old`, which stands still, goes on here, perhaps in the middle of a line."""
        for ours, theirs in zip(self.readers, old.readers):
            theirs.read()
            ours.begin_with(theirs.take_rest())
            theirs.close()
