# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
"""One node of the lab: its VM, the streams that come from it, and what became of it."""

import enum
import os
import re
import time

from .console import Console
from .machine import Machine


class State(enum.Enum):
    BOOTING = "booting"
    RUNNING = "running"
    FINISHED = "finished"      # its script is through; the VM waits for the others
    ENDED = "ended"            # the VM is gone
    KILLED = "killed"          # the VM is gone because a script asked for it


class Node:
    """Boots one VM, which may move to another host. Tells its listener what happens:

    listener.on_output(node, line), on_trace(node, line), on_message(node, words), on_end(node).
    """

    # Time for the rest of a kernel's complaint to arrive.
    TRACE_SECONDS = 2.0

    def __init__(self, vm, program, logs, listener, restarted=False):
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
        self._held = None        # lines for the guest while it moves; None: it does not
        self.machine = self._machine(vm)

    def _machine(self, vm):
        return Machine(vm, (self._on_console, self._on_control, self._on_output))

    def start(self):
        self.machine.start(self.program, self._logs, append=self.restarted)

    def start_incoming(self, vm):
        """Return: a Machine that waits for the state of this node's VM. move_to() or stay() follows."""
        machine = self._machine(vm)
        machine.start(self.program, self._logs, append=True)
        # A VM that has stopped reads nothing more at its source.
        self._held = []
        return machine

    def move_to(self, machine):
        """The VM runs there now."""
        old, self.machine = self.machine, machine
        machine.take_over(old)
        self.stay()

    def stay(self):
        """The VM does not move any more."""
        held, self._held = self._held, None
        for text in held:
            self.machine.send(text)

    @property
    def vm(self):
        return self.machine.vm

    @property
    def readers(self):
        return self.machine.readers

    @property
    def output(self):
        return self.machine.output

    @property
    def pid(self):
        return self.machine.child.pid

    def alive(self):
        return self.state not in (State.ENDED, State.KILLED)

    def send(self, text):
        if self._held is None:
            self.machine.send(text)
        else:
            self._held.append(text)

    def kill(self, state=State.ENDED):
        self.machine.kill()
        self.state = state

    def fail(self, reason):
        if self.reason is None:
            self.reason = reason

    def check(self):
        """Called regularly and at the end of a stream: has the VM ended, has its kernel complained?"""
        if self.complained and self.reason is None and \
                time.monotonic() - self.complained > self.TRACE_SECONDS:
            self.fail(f"its kernel says: {self.kernel.reason()}")
        if self.alive() and not self.machine.is_open():
            self.machine.child.wait()
            self.machine.kill()
            finished = self.state is State.FINISHED
            self.state = State.ENDED
            self._judge(finished)
            self.listener.on_end(self)

    def _judge(self, finished):
        if self.complained:
            self.fail(f"its kernel says: {self.kernel.reason()}")
        elif self.kernel.boot_failure:
            self.fail(self.kernel.boot_failure)
        elif self.machine.child.returncode != 0:
            self.fail(f"QEMU ended with status {self.machine.child.returncode}: {self._last_words()}")
        elif not finished:
            self.fail("the VM went off before its script ended")

    def _last_words(self):
        text = self.machine.stderr_text().strip()
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
        "RESTARTED": 1 if restarted else 0, "MIGRATABLE": int(options.migratable), "ROWS": rows, "COLUMNS": columns,
        "TERM": re.sub(r"[^\w.+-]", "", os.environ.get("TERM", "")) or "dumb",
    }
    return "".join(f"{name}='{value}'\n" for name, value in values.items())


def _terminal_size():
    try:
        return os.get_terminal_size()
    except OSError:
        return os.terminal_size((80, 24))
