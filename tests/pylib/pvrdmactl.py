# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
"""Steps and watchers that query the pvrdmad of a run of vmlab, and checks that no objects are left."""

import json
import pathlib
import subprocess

from steps import Step, pids_of
from vmlab_run import ROOT

OBJECTS = ("contexts", "pds", "mrs", "cqs", "qps", "srqs")
# In a step: the watcher of the flag "now" runs.
NOW = "[ $NODE != 1 ] || { raise now; await now.seen; }"


def pvrdmactl(*words):
    """A watcher for run_steps: pvrdmactl WORDS at the daemon of that vmlab."""
    def run(vmlab_pid):
        daemon, = pids_of(vmlab_pid, "pvrdmad")
        argv = pathlib.Path(f"/proc/{daemon}/cmdline").read_text().split("\0")
        control = argv[argv.index("--control") + 1]
        done = subprocess.run([ROOT / "build" / "host" / "pvrdmactl", "--control", control, *words],
                              capture_output=True, text=True, timeout=20, check=False)
        return done.returncode, done.stdout + done.stderr
    return run


def at_now(steps, *words):
    """For run_steps: the watchers of the flag "now" in these steps."""
    return {f"{step.name}.now": pvrdmactl(*words) for step in steps}


def stats_at_now(*steps):
    return at_now(steps, "--json", "stats")


def reply(run, step):
    """The JSON that a watcher of the flag "now" got in this step."""
    status, text = run.seen[f"{step.name}.now"]
    assert status == 0, text
    return json.loads(text)


def objects(run, step, what):
    """How many of them each adapter has in the daemon: {name: number}."""
    return {adapter["name"]: adapter[what] for adapter in reply(run, step)["adapters"]}


def noted(name):
    """A step for the objects in the daemon. The kernels' own objects, those of QP1, are always there."""
    return Step(name, NOW)


def nothing_left(name, idle="qp 1 cm_id 0 mr 0 ctx 0", query=NOW):
    """Check that the guests have no more objects than those, and query the daemon's."""
    return Step(name, f"""
        gone() {{ [ ! -e "/sys/class/infiniband/$RDMA_DEV" ] || rdma resource | grep -q "{idle}"; }}
        until_true 100 gone
        status=$?
        rdma resource; rdma resource show qp; rdma resource show cm_id
        grep pvrdma-cmd /proc/interrupts
        {query}
        exit $status""")


def check_daemon_is_as_before(run, before, after, what):
    """After the step nothing_left() the daemon has as many objects of each adapter as in the step noted()."""
    run.check(after)
    objects_before = objects(run, before, what)
    assert len(objects_before) == run.nodes and objects(run, after, what) == objects_before
