# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
"""A pvrdmad that allows faults, with the adapters of vmlab's VMs, and whose faults change between the steps of a run."""

from daemon_process import Daemon

# In front of a step: a watcher of its flag "now" changes the faults.
NOW = "[ $NODE != 1 ] || raise now\nawait now.seen || exit\n"


class FaultyDaemon(Daemon):
    """With the MACs of vmlab's NICs. seen: {step: its faults with their counters, as pvrdmactl fault list has them}"""

    def __init__(self, folder, nodes=(1, 2)):
        self.folder, self.control, self.log_path = folder, folder / "control", folder / "pvrdmad.log"
        self.nodes, self.seen, self.step = nodes, {}, None
        adapters = [f"--adapter=name=node{node},socket={self.socket(node)},mac=52:54:00:77:00:{node:02x}" for node in nodes]
        self.start([*adapters, "--faults", "allowed"])

    def note(self):
        if self.step:
            self.seen[self.step] = self.query("fault", "list")["faults"]

    def change(self, step, words):
        """A watcher for run_steps: instead of the faults before."""
        def run(_):
            self.note()
            self.step = step.name
            self.must("fault", "clear")
            return self.must("fault", "add", *words) if words else ""
        return run

    def options(self):
        """Those of run_steps."""
        return {"pvrdmad_control": self.control, "adapter_socket": [self.socket(node) for node in self.nodes]}
