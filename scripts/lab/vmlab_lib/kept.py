# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
"""A lab whose VMs stay for further runs. Its process takes one run at a time from a Unix socket.

A client sends one line of JSON, {"do": "run" | "state" | "stop", ...}. Lines of JSON are the reply: ["busy"], or
["taken"], the calls of the client's Progress, and ["end", STATUS, FOLDER of the logs].
"""

import contextlib
import json
import os
import pathlib
import selectors
import shutil
import signal
import socket
import time
import traceback

from . import faults, logs, rundir
from .assembly import count, make_lab
from .errors import Interrupted, LabError, LabFailure
from .lab import GRACE_SECONDS, Lab
from .node import State
from .progress import Progress

SOCKET = "lab"
LOG = "lab.log"                      # of this process
LONGEST_REQUEST = 64 << 10
# A client that reads nothing for this long is taken for gone, and so is a run whose processes cannot be ended.
SEND_SECONDS = 60
END_SECONDS = 20


class _Client:
    """A connection."""

    def __init__(self, sock):
        self.sock = sock
        self.gone = False
        self._received = b""
        sock.settimeout(SEND_SECONDS)

    def send(self, *message):
        try:
            self.sock.sendall(json.dumps(message).encode() + b"\n")
        except OSError:
            self.gone = True

    def receive(self):
        """Return: the request once all of it is there, else None."""
        try:
            data = self.sock.recv(65536)
        except OSError:
            data = b""
        self._received += data
        if not data or len(self._received) > LONGEST_REQUEST:
            self.gone = True
            return None
        line, end, self._received = self._received.partition(b"\n")
        if not end:
            self._received = line
            return None
        try:
            request = json.loads(line)
        except ValueError:
            request = None
        self.gone |= not isinstance(request, dict)
        return None if self.gone else request


class _Remote(Progress):
    """Progress of the client of the present run."""

    client = None

    def _send(self, *message):
        if self.client:
            self.client.send(*message)

    def say(self, text):
        self._send("say", text)

    def error(self, text):
        self._send("error", text)

    def trace(self, node, line):
        self._send("trace", node, line)

    def output(self, node, line):
        self._send("output", node, line)


class _Job:
    """A run: its client's request, and what has become of it."""

    def __init__(self, client, request):
        self.client = client
        self.script = pathlib.Path(request["script"])
        self.fault = pathlib.Path(request["fault"]) if request.get("fault") else None
        self.timeout = float(request["timeout"])
        self.deadline = time.monotonic() + self.timeout
        self.number = 0              # 0 until its script runs
        self.failure = None          # the first one
        self.failed_at = None
        self.ending_at = None        # when its processes were told to end

    def fail(self, reason):
        if self.failure is None:
            self.failure, self.failed_at = reason, time.monotonic()


class KeptLab(Lab):
    """Runs one script after another on its nodes, until it is told to stop, is idle for too long, or has failed."""

    def __init__(self, options, make_vm, control_dir, progress, service, run_dir, listener):
        super().__init__(options, make_vm, control_dir, progress, service)
        self.run_dir = run_dir
        self.job = None
        self.jobs = 0
        self.stop_asked = False
        self.started = self.idle_since = time.monotonic()
        self.released = True         # VMs never power off by themselves
        self._waiting = {}           # nodes without a script: {number: answer}
        self._queued = None          # a client with its request, for the end of a run whose client has gone
        (control_dir / "jobs").mkdir()
        self._listener = listener
        self._selector.register(listener, selectors.EVENT_READ, self._accept)

    # --- clients ------------------------------------------------------------------------------

    def _accept(self):
        self.adopt(_Client(self._listener.accept()[0]))

    def adopt(self, client):
        """Serve a connection."""
        self._selector.register(client.sock, selectors.EVENT_READ, lambda: self._receive(client))

    def _receive(self, client):
        request = client.receive()
        if request and not (self.job and self.job.client is client):
            self._serve(client, request)
        if client.gone:
            self._drop(client)

    def _drop(self, client):
        client.gone = True
        if client.sock.fileno() >= 0:
            self._selector.unregister(client.sock)
            client.sock.close()

    def _serve(self, client, request):
        try:
            if request.get("do") == "run":
                self._take(client, request)
                return
            if request.get("do") == "state":
                client.send("state", self.state())
            elif request.get("do") == "stop":
                self.stop_asked = True
                return  # the connection ends with this process
        except (KeyError, TypeError, ValueError):
            client.send("error", "not a request")
        self._drop(client)

    def state(self):
        return {"busy": self.job is not None, "runs": self.jobs, "age": time.monotonic() - self.started,
                "idle": 0 if self.job else time.monotonic() - self.idle_since, "logs": str(self.options.logs)}

    def _take(self, client, request):
        if self.job and self.job.client.gone and not self._queued:
            self._queued = client, request
            return
        if self.job or self._first_failure or self.stop_asked:
            client.send("busy")
            self._drop(client)
            return
        self.job = _Job(client, request)
        self.progress.client = client
        client.send("taken")

    # --- runs ---------------------------------------------------------------------------------

    def run(self):
        """Serve clients until the end. Raises LabFailure if the lab itself failed."""
        while not self._is_over():
            self._step(0.1 if self.job else 0.5)
            self._look_for_failure()
            if self.job:
                self._watch_job()
        if self.job and self.stop_asked:
            raise LabFailure("the lab was stopped")
        self._raise_failure()

    def _is_over(self):
        if self._first_failure:
            return not self.job or time.monotonic() > self._failed_at + GRACE_SECONDS
        idle = not self.job and time.monotonic() > self.idle_since + self.options.idle_timeout
        return self.stop_asked or idle

    def _watch_job(self):
        job, now = self.job, time.monotonic()
        complete = len(self._waiting) == self.options.nodes
        if not job.number:
            if complete:
                self._start_job()
            elif job.client.gone or now > job.deadline:
                raise LabFailure(f"the lab took longer than {job.timeout:g} s (--timeout): {self._states()}")
        elif complete or not any(node.state in (State.BOOTING, State.RUNNING) for node in self.nodes.values()) \
                and len(self._waiting) == sum(node.alive() for node in self.nodes.values()):
            self._finish_job(complete)
        elif job.ending_at:
            if now > job.ending_at + END_SECONDS:
                raise LabFailure(f"{job.failure}; processes of the run do not end")
        else:
            self._look_for_end(job, now)

    def _look_for_end(self, job, now):
        if now > job.deadline:
            job.fail(f"the run took longer than {job.timeout:g} s (--timeout): {self._states()}")
        elif job.client.gone:
            job.fail("the client has gone")
        elif not job.failure or now < job.failed_at + GRACE_SECONDS:
            return
        job.ending_at = now
        for node in self.nodes.values():
            if node.state is State.RUNNING:
                node.send("0 end-job")

    def _start_job(self):
        job = self.job
        self.jobs += 1
        try:
            shutil.copy(job.script, self.control_dir / "jobs" / str(self.jobs))
            (self.control_dir / "jobs" / str(self.jobs)).chmod(0o755)
            self._empty_share()
            if job.fault:
                faults.load(self.options, self.run_dir, job.fault)
        except (LabError, OSError) as error:
            self._end_job(2, str(error))
            return
        job.number = self.jobs
        self.barriers = type(self.barriers)()
        self._finish_answers.clear()
        self.released = False
        for number in list(self._waiting):
            node = self.nodes[number]
            node.restarted = False
            if node.output.log:
                node.output.log.seek(0)
                node.output.log.truncate()
            self._start_script(node)

    def _start_script(self, node):
        node.exit_status = None
        node.state = State.RUNNING
        restarted, node.restarted = node.restarted, False
        self._waiting.pop(node.number)(f"ok {self.job.number} {int(restarted)}")

    def _empty_share(self):
        if self.options.share:
            return
        for path in (self.run_dir / "share").iterdir():
            if path.is_dir() and not path.is_symlink():
                shutil.rmtree(path)
            else:
                path.unlink()

    def _finish_job(self, complete):
        job = self.job
        if job.fault:
            faults.clear(self.options)
        (self.control_dir / "jobs" / str(job.number)).unlink()
        if not complete:
            dead = ", ".join(node.name for node in self.nodes.values() if not node.alive())
            self.progress.say(f"the VMs end: {dead} was killed and not started again")
            self.stop_asked = True
        if job.failure:
            self._end_job(1, job.failure)
        else:
            self._end_job(0)

    def _end_job(self, status, reason=None):
        client = self.job.client
        if reason:
            self.progress.error(reason)
        client.send("end", status, str(self.options.logs))
        self.progress.client = self.job = None
        self.idle_since = time.monotonic()
        self._drop(client)
        if self._queued and not self.stop_asked:
            client, request = self._queued
            self._queued = None
            self._take(client, request)

    def end_with(self, status, reason):
        """Tell the client of the present run, if there is one, that the lab ends."""
        self.stop_asked = True
        if self.job:
            self._end_job(status, reason)

    # --- what nodes tell ----------------------------------------------------------------------

    def on_end(self, node):
        super().on_end(node)
        self._waiting.pop(node.number, None)
        if node.state is State.ENDED:
            node.fail("the VM went off")

    def _next(self, node, answer):
        """The node has no script."""
        self._waiting[node.number] = answer
        if node.restarted and self.job and self.job.number:
            self._start_script(node)
        else:
            node.state = State.FINISHED

    def _exit(self, node, answer, status):
        node.exit_status = int(status)
        node.state = State.FINISHED
        self._read(node.output)  # all that the script wrote comes before its exit status
        if node.exit_status != 0 and self.job:
            self.job.fail(f"{node.name}: its script ended with status {node.exit_status}")
        self._finish_answers.append(answer)
        if self.released:
            answer("ok")

    def _kill_node(self, node, answer, number):
        super()._kill_node(node, answer, number)
        self._waiting.pop(int(number), None)

    _REQUESTS = {**Lab._REQUESTS, "exit": _exit, "next": _next, "kill-node": _kill_node}


def _close_descriptors():
    """This process has no terminal and no pipe of its parent."""
    null = os.open(os.devnull, os.O_RDWR)
    for fd in (0, 1, 2):
        os.dup2(null, fd)
    os.close(null)


def keep(options, found, key):
    """Start the process of a kept lab. Return: a connection to it."""
    ours, theirs = socket.socketpair()
    if os.fork():
        theirs.close()
        return ours
    status = 1
    try:
        os.setsid()
        ours.close()
        _close_descriptors()
        status = _serve(options, found, key, theirs)
    finally:
        os._exit(status)


def _serve(options, found, key, first):
    """Be the process of a kept lab. Return its exit status."""
    progress = _Remote()
    progress.client = client = _Client(first)
    lab, failure = None, (1, None)
    try:
        with rundir.run_dir() as run, contextlib.ExitStack() as stack:
            options.logs = stack.enter_context(logs.log_dir(options.logs))
            os.dup2(stack.enter_context(open(options.logs / LOG, "wb")).fileno(), 2)
            listener = stack.enter_context(socket.socket(socket.AF_UNIX))
            listener.bind(str(run / SOCKET))
            lab = make_lab(KeptLab, options, found, run, progress, stack, run, listener)
            lab.adopt(client)
            listener.listen()
            (run / f"{SOCKET}.json").write_text(json.dumps({"key": key, "options": _summary(options)}))
            lab.start()
            failure = _run(lab)
        # The VMs are gone before a client sees the end of its run, unless its run ended before.
        lab.end_with(*failure)
    except Exception as error:  # pylint: disable=broad-exception-caught
        traceback.print_exc()
        reason = str(error) if isinstance(error, (LabError, LabFailure, Interrupted)) else f"{error!r}, see {options.logs / LOG}"
        if lab:
            lab.end_with(failure[0] or 1, failure[1] or reason)
        else:
            client.send("error", reason)
            client.send("end", 2 if isinstance(error, LabError) else 1, str(options.logs))
    return failure[0]


def _run(lab):
    """Return: exit status of the present run, if there is one, and the reason of the lab's end."""
    try:
        lab.run()
        return 0, None
    except LabFailure as failure:
        return 1, str(failure)
    except Interrupted as interrupted:
        return 128 + interrupted.signum, str(interrupted)
    finally:
        for signum in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            signal.signal(signum, signal.SIG_IGN)


def _summary(options):
    words = [count(options.nodes, "node"), f"kernel {options.kernel}", f"driver {options.driver}"]
    if options.hosts > 1:
        words.append(f"{options.hosts} hosts")
    if options.packages:
        words.append(f"packages {','.join(options.packages)}")
    return ", ".join(words)
