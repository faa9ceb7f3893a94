# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
"""A live migration of a node's VM to another host of the lab."""

import threading
import time

from . import process, qmp

BANDWIDTH = 16 << 30     # bytes/s: the hosts are one machine
SECONDS = 300            # for the whole migration
POLL = 0.02
# Without it QEMU has completed when it has sent all, also if the target then refuses the state.
RETURN_PATH = ["return-path"]


class MigrationFailed(Exception):
    """The VM goes on at its source."""


class Migration:
    """Moves the VM of `source`, a running Machine, to `target`, a Machine that has been started with vm.incoming.

    It works in a thread, and `over` becomes true: then `failure` is the reason why the VM is still at the source, or None, and
    `downtime` and `total` are QEMU's milliseconds."""

    def __init__(self, source, target, megabytes=0):
        """megabytes: over a network of so many MB/s, with auto-converge; 0: as fast as possible."""
        self.source, self.target = source, target
        self.bandwidth = megabytes * 10**6 if megabytes else BANDWIDTH
        self.capabilities = RETURN_PATH + (["auto-converge"] if megabytes else [])
        self.over, self.failure = False, None
        self.downtime = self.total = None
        self._deadline = time.monotonic() + SECONDS
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def _run(self):
        try:
            self._migrate()
        except (MigrationFailed, qmp.QmpError, ChildProcessError, OSError) as error:
            self.failure = str(error)
        self.over = True

    def _migrate(self):
        with qmp.connect(self.target.vm.qmp, self.target.child) as target, qmp.connect(self.source.vm.qmp, self.source.child) as source:
            source.execute("migrate-set-capabilities", capabilities=[{"capability": name, "state": True} for name in self.capabilities])
            source.execute("migrate-set-parameters", **{"max-bandwidth": self.bandwidth})
            source.execute("migrate", uri=self.target.vm.incoming)
            try:
                state = self._wait_for(lambda: self._ended(source), "the migration did not end")
                if state["status"] != "completed":
                    why = state.get("error-desc") or self._last_words()
                    raise MigrationFailed(f"the migration has {state['status']}: {why}")
                self._wait_for(lambda: self._status(target) == "running", "the VM does not run at its target")
            except (MigrationFailed, qmp.QmpError):
                self._go_on(source)
                raise
            self.downtime, self.total = state["downtime"], state["total-time"]

    def _go_on(self, source):
        """The VM runs at its source, also if that has completed before the target failed."""
        process.stop(self.target.child, grace=0)
        source.execute("migrate_cancel")
        if self._status(source) == "postmigrate":
            source.execute("cont")

    @staticmethod
    def _status(machine):
        return machine.execute("query-status")["status"]

    @staticmethod
    def _ended(source):
        state = source.execute("query-migrate")
        return state if state["status"] in ("completed", "failed", "cancelled") else None

    def _wait_for(self, condition, what):
        while time.monotonic() < self._deadline:
            if self.target.child.poll() is not None:
                raise MigrationFailed(f"the QEMU at the target has ended: {self._last_words()}")
            found = condition()
            if found:
                return found
            time.sleep(POLL)
        raise MigrationFailed(f"{what} within {SECONDS} s")

    def _last_words(self):
        lines = self.target.stderr_text().strip().splitlines()
        return lines[-1] if lines else "no message"

    def close(self):
        """End the machine on which the VM does not run."""
        self._thread.join()
        process.stop((self.target if self.failure else self.source).child, grace=0)
