# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
"""Child processes that never outlive vmlab."""

import ctypes
import os
import resource
import signal
import subprocess
import time

from .errors import LabError

_PR_SET_PDEATHSIG = 1
_CPUCLOCK_SCHED = 2  # the low bits of a clock that is the CPU time of process ~(id >> 3)
_libc = ctypes.CDLL(None, use_errno=True)


def die_with_parent(parent):
    """Runs in a new child: be killed when `parent` ends, however it ends."""
    _libc.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:
        os.kill(os.getpid(), signal.SIGKILL)


def spawn(argv, data_limit=None, **kwargs):
    """Start a child in a session of its own, so that stop() reaches its children too.

    data_limit: how much private memory, in bytes, it may have.
    """
    parent = os.getpid()

    def prepare():
        die_with_parent(parent)
        if data_limit is not None:
            resource.setrlimit(resource.RLIMIT_DATA, (data_limit, data_limit))

    kwargs.setdefault("stdin", subprocess.DEVNULL)
    return subprocess.Popen([str(arg) for arg in argv], start_new_session=True,
                            preexec_fn=prepare, **kwargs)


def stop(child, grace=5.0):
    """End a child and its process group: SIGTERM, and SIGKILL after `grace` seconds."""
    if child.poll() is None and grace > 0:
        _signal_group(child.pid, signal.SIGTERM)
        try:
            child.wait(grace)
        except subprocess.TimeoutExpired:
            pass
    _signal_group(child.pid, signal.SIGKILL)
    child.wait()


def _signal_group(pid, signum):
    # The group lives on after its leader as long as it has members, and its
    # number is not given out again until then.
    try:
        os.killpg(pid, signum)
    except ProcessLookupError:
        pass


def cpu_nanoseconds(pid):
    """CPU time of all threads of the process, including those that have ended."""
    return time.clock_gettime_ns((~pid << 3) | _CPUCLOCK_SCHED)


def run_step(argv, progress, timeout=1800):
    """Run a helper script; return the last line of its stdout.

    Its stderr is shown as progress. When it fails, its last line of stderr is the reason.
    """
    name = os.path.basename(str(argv[0]))
    try:
        child = spawn(argv, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    except OSError as err:
        raise LabError(f"cannot run {argv[0]}: {err.strerror}") from err
    try:
        reason = _show_but_last(child.stderr, progress)
        lines = child.stdout.read().split("\n")
        status = child.wait(timeout)
    finally:
        stop(child)
    if status != 0:
        raise LabError(reason or f"{name} ended with status {status}")
    if reason:
        progress.say(reason)
    lines = [line for line in lines if line.strip()]
    return lines[-1] if lines else ""


def _show_but_last(stream, progress):
    last = ""
    for line in stream:
        if not line.strip():
            continue
        if last:
            progress.say(last)
        last = line.rstrip()
    return last


def wait_for(condition, seconds, interval=0.02):
    """Poll until condition() is true; False when `seconds` pass first."""
    end = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > end:
            return False
        time.sleep(interval)
    return True
