# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
"""Invariants of a soak run: results of the runs, and daemons that hold nothing once their VMs are gone."""

from daemon_process import wait_until

OBJECTS = ("contexts", "pds", "mrs", "mws", "cqs", "qps", "srqs", "gids")
# Connections between hosts come and go: not each round has the same number of descriptors.
SPARE_DESCRIPTORS = 32
# Resident memory: the allocator needs some rounds to reach its working size.
WARM_UP_ROUNDS = 10
GROWTH, GROWTH_KIB = 1.1, 8192


class Violation(Exception):
    """What an invariant found."""


def _require(condition, text):
    if not condition:
        raise Violation(text)


def check_run(run, result, hit):
    """`result`: the JSON of a finished hosts_verify. `hit`: a fault may have ended its queue pairs."""
    who = f"guests {run.guests}"
    _require(result["wrong"] == 0, f"{who}: wrong data: {result} {run.error()}")
    if not hit:
        _require(not result["failed"], f"{who}: no fault concerns them, but queue pairs failed: {result}")
        _require(result["steps"] > 0, f"{who}: no progress: {result}")


class Invariants:
    """Of all daemons of a lab."""

    def __init__(self, lab):
        self.lab = lab
        self.descriptors = {}
        self.resident = {}

    def begin(self):
        for daemon in self.lab.daemons.values():
            self.restarted(daemon)

    def restarted(self, daemon):
        self.descriptors[daemon.name] = daemon.descriptors()
        self.resident[daemon.name] = []

    def check(self):
        """No VM is attached."""
        for daemon in self.lab.daemons.values():
            _require(daemon.child.poll() is None, f"{daemon.name} has ended: {daemon.log()[-4000:]}")
            wait_until(lambda daemon=daemon: not any(row["attached"] for row in daemon.query("adapters")["adapters"])
                       and not daemon.mappings(), f"{daemon.name}: all VMs and their RAM are gone")
            self._check_objects(daemon)
            self.check_memory(daemon)

    def _check_objects(self, daemon):
        for row in daemon.query("stats")["adapters"]:
            left = {name: row[name] for name in OBJECTS if row[name]}
            _require(not left, f"{daemon.name}, {row['name']}: objects of a VM that is gone: {left}")
        limit = self.descriptors[daemon.name] + SPARE_DESCRIPTORS
        _require(daemon.descriptors() <= limit, f"{daemon.name}: {daemon.descriptors()} descriptors, at most {limit}")

    def check_memory(self, daemon):
        """The largest values after the warm-up: those of later rounds do not exceed those of earlier ones."""
        values = self.resident[daemon.name]
        values.append(daemon.resident())
        warm = values[WARM_UP_ROUNDS:]
        third = len(warm) // 3
        if not third:
            return
        limit = max(warm[:third]) * GROWTH + GROWTH_KIB
        _require(max(warm[-third:]) <= limit,
                 f"{daemon.name}: resident memory grows, at most {limit:.0f} KiB expected: {values}")

    def memory(self):
        """KiB of each daemon that was not restarted lately: first value after the warm-up, and last."""
        return {name: [values[min(WARM_UP_ROUNDS, len(values) - 1)], values[-1]]
                for name, values in self.resident.items() if values}
