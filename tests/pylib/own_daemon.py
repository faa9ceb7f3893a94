# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
"""VMs at a pvrdmad of the test's own, with the control sockets of their QEMUs."""

import contextlib

from boots import Boot, flags
from daemon_process import Daemon
from steps import run_steps

NODES = (1, 2)


class OwnDaemon(Daemon):
    """With the MACs of vmlab's NICs; `settings`: further ones of each adapter."""

    def __init__(self, folder, settings):
        self.folder, self.control, self.log_path = folder, folder / "control", folder / "pvrdmad.log"
        self.settings = settings
        self.start_again()

    def start_again(self):
        self.start([f"--adapter=name=node{node},socket={self.socket(node)},mac=52:54:00:77:00:{node:02x},{self.settings}"
                    for node in NODES])


@contextlib.contextmanager
def own_daemon(tmp_path_factory, name, steps, settings, watch, **options):
    """A run of steps. watch: a function that returns run_steps()'s, given the folder with the sockets and the daemon."""
    yield _run(tmp_path_factory.mktemp(name), steps, settings, watch, **options)


def _run(folder, steps, settings, watch, files=(), **options):
    (folder / "run").mkdir()
    daemon = OwnDaemon(folder, settings)
    try:
        return run_steps(folder / "run", steps, watch(folder, daemon), files, qmp=folder, pvrdmad_control=daemon.control,
                         adapter_socket=[daemon.socket(node) for node in NODES], **options)
    finally:
        daemon.stop()


class OwnBoot(Boot):
    """A boot that files share. watch of a part: as for own_daemon()."""

    def __init__(self, name, order, settings):
        super().__init__(name, order)
        self.settings = settings

    def _run(self, folder, parts, steps, files):
        def watch(*of_run):
            return flags({part.name: part.watch(*of_run) for part in parts})

        return _run(folder, steps, self.settings, watch, files)


# test_daemon_death is last: the adapters that its VMs have in the end have other places and names.
UNPLUGGED = OwnBoot("unplugged", ["hotplug", "daemon_death"], "interrupts=msi,uar=mapped")
