# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
"""Barriers between nodes: which nodes wait at which name, and their release."""

import time

SECONDS = 300


class _Waiter:
    def __init__(self, node, answer, seconds):
        self.node = node
        self.answer = answer
        self.deadline = time.monotonic() + seconds


class Barriers:
    def __init__(self):
        self._waiting = {}

    def arrive(self, name, node, answer, seconds=SECONDS):
        """Node (a number) comes to `name`; answer(text) lets it go."""
        self._waiting.setdefault(name, []).append(_Waiter(node, answer, seconds))

    def forget(self, node):
        """The node is gone: it waits no longer."""
        for waiters in self._waiting.values():
            waiters[:] = [waiter for waiter in waiters if waiter.node != node]

    def settle(self, expected, finished):
        """Release every barrier that the `expected` nodes have reached.

        A node in `finished` never comes: the waiting nodes get an error at once.
        """
        now = time.monotonic()
        for name, waiters in list(self._waiting.items()):
            missing = expected - {waiter.node for waiter in waiters}
            if not missing:
                self._release(name, "ok")
            elif missing & finished:
                self._release(name, f"error {name}: {_names(missing & finished)} ended without "
                                    "coming here")
            else:
                for waiter in [w for w in waiters if w.deadline < now]:
                    waiter.answer(f"error {name}: {_names(missing)} did not come in time")
                    waiters.remove(waiter)

    def _release(self, name, text):
        for waiter in self._waiting.pop(name):
            waiter.answer(text)


def _names(nodes):
    return ", ".join(f"node{node}" for node in sorted(nodes))
