# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
"""A running lab: the nodes, what they ask for, and when it is over."""

import selectors
import sys
import time

from . import daemon, process
from .barrier import SECONDS as BARRIER_SECONDS
from .barrier import Barriers
from .errors import LabFailure
from .migration import Migration
from .node import Node, State, environment

# Seconds that the other nodes have to finish after one has failed.
GRACE_SECONDS = 5.0


class _Refused(Exception):
    """Why a node's request is not granted."""


class Lab:
    """Runs nodes made by make_vm(number) until all are through or one has failed."""

    def __init__(self, options, make_vm, control_dir, progress, service):
        self.options = options
        self.make_vm = make_vm
        self.control_dir = control_dir
        self.progress = progress
        self.service = service      # the pvrdmad that we started, or None
        self.barriers = Barriers()
        self.nodes = {}
        self.released = False       # all scripts are through, VMs may power off
        self.on_ready = None        # called with a node whose script starts
        self._selector = selectors.DefaultSelector()
        self._finish_answers = []
        self._first_failure = None
        self._failed_at = None
        self._migrations = {}       # {node: (Migration, answer)}

    # --- life ---------------------------------------------------------------------------------

    def start(self):
        for number in range(1, self.options.nodes + 1):
            self._boot(number)

    def _boot(self, number, restarted=False):
        text = environment(self.options, number, restarted)
        (self.control_dir / f"node{number}.env").write_text(text)
        node = Node(self.make_vm(number), self.options.qemu, self.options.logs, self, restarted)
        self.nodes[number] = node
        node.start()
        for reader in node.readers:
            self._selector.register(reader.sock, selectors.EVENT_READ, reader)

    def run(self):
        """Serve the nodes until the end. Raises LabFailure, saying which node failed and why."""
        deadline = time.monotonic() + self.options.timeout
        while any(node.alive() for node in self.nodes.values()):
            self._step(0.1)
            self._look_for_failure()
            if self._first_failure and time.monotonic() > self._failed_at + GRACE_SECONDS:
                break
            if time.monotonic() > deadline:
                raise LabFailure(f"the lab took longer than {self.options.timeout:g} s "
                                 f"(--timeout): {self._states()}")
        self._raise_failure()

    def serve_terminal(self, connect):
        """Join the user's terminal, which connect() returns, to node 1 until its shell ends."""
        first = self.nodes[1]
        while first.state is State.BOOTING:
            self._step(0.1)
            self._raise_failure()
        terminal = connect()
        self._selector.register(terminal.socket, selectors.EVENT_READ, terminal.from_node)
        self._selector.register(sys.stdin, selectors.EVENT_READ, terminal.from_user)
        watched = True
        with terminal.raw():
            while first.state is State.RUNNING and not terminal.ended:
                self._step(0.1)
                if watched and not terminal.stdin_open:
                    self._selector.unregister(sys.stdin)
                    watched = False
        self._raise_failure()

    def _raise_failure(self):
        self._look_for_failure()
        if self._first_failure:
            raise LabFailure(self._first_failure)

    def close(self):
        for migration, _ in self._migrations.values():
            migration.target.kill()
        for node in self.nodes.values():
            if node.alive():
                node.kill()

    def _step(self, seconds):
        for key, _ in self._selector.select(seconds):
            if callable(key.data):
                key.data()
                continue
            self._read(key.data)
        for node in list(self.nodes.values()):
            if node in self._migrations:
                self._look_after_migration(node)
            else:
                node.check()
        self._settle()

    def _read(self, reader):
        sock = reader.sock
        if not reader.read() and sock in self._selector.get_map():
            self._selector.unregister(sock)

    def _settle(self):
        alive = {n for n, node in self.nodes.items() if node.state is not State.KILLED}
        finished = {n for n in alive
                    if self.nodes[n].state in (State.FINISHED, State.ENDED)}
        self.barriers.settle(alive, finished)
        busy = [node for node in self.nodes.values()
                if node.state in (State.BOOTING, State.RUNNING)]
        if not busy and not self.released:
            self._release()

    def _release(self):
        """Every script is through: note their paths and counters, and let the VMs power off."""
        self.released = True
        for words in ("paths", "stats") if self.options.controls else ():
            texts = [daemon.query(self.options.binaries, control, words) for control in self.options.controls]
            (self.options.logs / f"{words}.txt").write_text("".join(texts))
        for answer in self._finish_answers:
            answer("ok")

    def _look_for_failure(self):
        if self._first_failure:
            return
        reason = None
        for node in self.nodes.values():
            if node.reason:
                reason = f"{node.name}: {node.reason}"
                break
        if reason is None and self.service and self.service.failure():
            reason = self.service.failure()
        if reason:
            self._first_failure = reason
            self._failed_at = time.monotonic()

    def _states(self):
        return ", ".join(f"{node.name} {node.state.value}" for node in self.nodes.values())

    # --- what nodes tell ----------------------------------------------------------------------

    def on_output(self, node, line):
        self.progress.output(node.name, line)

    def on_trace(self, node, line):
        self.progress.trace(node.name, line)

    def on_end(self, node):
        self.barriers.forget(node.number)

    def on_message(self, node, words):
        if not node.alive():
            return
        kind, *rest = words or [""]
        if kind == "booted":
            pass
        elif kind == "ready":
            node.state = State.RUNNING
            took = time.monotonic() - node.started
            self.progress.say(f"{node.name} is up after {took:.1f} s")
            if self.on_ready:
                self.on_ready(node)
        elif kind == "fail":
            node.fail(" ".join(rest))
        elif kind == "request" and len(rest) >= 2:
            self._on_request(node, rest[0], rest[1], rest[2:])

    def _on_request(self, node, request, verb, args):
        def answer(text):
            node.send(f"{request} {text}")

        handler = self._REQUESTS.get(verb)
        if handler is None:
            answer(f"error unknown request; known are {', '.join(sorted(self._REQUESTS))}")
            return
        try:
            handler(self, node, answer, *args)
        except _Refused as refused:
            answer(f"error {refused}")
        except (TypeError, ValueError):
            answer(f"error {verb} does not take {' '.join(args) or 'no arguments'}")

    def _exit(self, node, answer, status):
        node.exit_status = int(status)
        node.state = State.FINISHED
        # All that the script wrote comes before its exit status.
        self._read(node.output)
        if node.exit_status != 0:
            node.fail(f"its script ended with status {node.exit_status}")
        self._finish_answers.append(answer)
        if self.released:
            answer("ok")

    def _barrier(self, node, answer, name, seconds=BARRIER_SECONDS):
        self.barriers.arrive(name, node.number, answer, float(seconds))

    def _cpu(self, node, answer):
        """CPU time of the host's processes: "node1=NANOSECONDS node2=... pvrdmad=..."."""
        pids = {other.name: other.pid for other in self.nodes.values() if other.alive()}
        if self.service:
            pids.update(self.service.pids())
        try:
            used = [f"{name}={process.cpu_nanoseconds(pid)}" for name, pid in pids.items()]
        except OSError as err:
            raise _Refused(f"a process is gone: {err.strerror}") from err
        answer(f"ok {' '.join(used)}")

    def _kill_node(self, node, answer, number):
        victim = self._node(number)
        if not victim.alive():
            raise _Refused(f"{victim.name} does not run")
        victim.kill(State.KILLED)
        for reader in victim.readers:
            self._read(reader)
        self.barriers.forget(victim.number)
        self.progress.say(f"{victim.name} was killed, as {node.name} asked")
        answer("ok")

    def _start_node(self, node, answer, number):
        old = self._node(number)
        if old.state is not State.KILLED:
            raise _Refused(f"{old.name} is {old.state.value}; only a killed node can be started")
        self.progress.say(f"{old.name} is started again, as {node.name} asked")
        self._boot(old.number, restarted=True)
        answer("ok")

    def _migrate_node(self, node, answer, number, host, megabytes="0"):
        """"ok DOWNTIME TOTAL", in milliseconds."""
        moved, host, megabytes = self._node(number), int(host), int(megabytes)
        if not self.options.migratable:
            raise _Refused("the lab is not --migratable")
        if not 1 <= host <= self.options.hosts:
            raise _Refused(f"there is no host {host}, only 1 to {self.options.hosts}")
        if moved.state not in (State.RUNNING, State.FINISHED):
            raise _Refused(f"{moved.name} is {moved.state.value}")
        if moved in self._migrations or moved.vm.host == host:
            raise _Refused(f"{moved.name} {'moves already' if moved in self._migrations else f'is on host {host}'}")
        target = moved.start_incoming(self.make_vm(moved.number, host))
        self._migrations[moved] = Migration(moved.machine, target, megabytes), answer

    def _look_after_migration(self, node):
        migration, answer = self._migrations[node]
        if not migration.over:
            return
        del self._migrations[node]
        if migration.failure:
            migration.close()
            node.stay()
            self.progress.say(f"{node.name} stays on host {node.vm.host}: {migration.failure}")
            answer(f"error {migration.failure}")
            return
        for reader in node.readers:
            if reader.open:
                self._selector.unregister(reader.sock)
        before = node.vm.host
        node.move_to(migration.target)
        migration.close()
        for reader in node.readers:
            self._selector.register(reader.sock, selectors.EVENT_READ, reader)
        self.progress.say(f"{node.name} moved from host {before} to host {node.vm.host}: downtime {migration.downtime} ms, "
                          f"{migration.total} ms in all")
        answer(f"ok {migration.downtime} {migration.total}")

    def _node(self, number):
        node = self.nodes.get(int(number))
        if node is None:
            raise _Refused(f"there is no node {number}, only 1 to {self.options.nodes}")
        return node

    _REQUESTS = {"exit": _exit, "barrier": _barrier, "cpu": _cpu, "kill-node": _kill_node,
                 "start-node": _start_node, "migrate-node": _migrate_node}
