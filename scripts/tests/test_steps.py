# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
"""The steps of VM runs: what is said of failed ones, and guest/run-steps on this host."""

import os
import subprocess
import threading

import pytest
from vmlab_lib import steps as vmlab_steps
from vmlab_lib.process import wait_for
from vmlab_lib.steps import RUN_STEPS, Outcome, Step


def test_blame_is_one_line_with_the_last_words():
    text = "begin\nfirst\nsecond\n\n  third\nfourth\n"
    assert Outcome(2, 3, 1500, text).blame() == "node2: status 3, 1.5 s: first | second | third | fourth"


def test_blame_has_repeated_words_once():
    text = "what went wrong\n" + "DISCONNECT EVENT...\n" * 60 + "the client ended with status 123\n"
    assert Outcome(1, 123, 0, text).blame().endswith(
        ": what went wrong | DISCONNECT EVENT... | the client ended with status 123")


def test_blame_leaves_out_what_the_kernel_said():
    text = "what went wrong\ndmesg: [    3.8] port 1: active\n"
    assert Outcome(1, 1, 0, text).blame() == "node1: status 1, 0.0 s: what went wrong"


def test_blame_of_a_step_that_did_not_run():
    assert Outcome(1, None, 0, "").blame() == "node1: did not run, 0.0 s: "


def test_tail_says_how_much_it_leaves_out():
    lines = Outcome(1, 0, 0, "\n".join(f"line {i}" for i in range(50))).tail().splitlines()
    assert lines[0] == "node1: status 0, 0.0 s" and lines[1] == "  ... 10 lines before" and lines[-1] == "  line 49"


@pytest.fixture
def run_here(tmp_path):
    """run_here(steps): the outcomes of the only node, which is this host."""
    def run(*steps):
        share = tmp_path / "share"
        share.mkdir()
        vmlab_steps.put(share, steps)
        for script in (share / "steps.sh", tmp_path / "run-steps"):
            text = (RUN_STEPS.parent / script.name).read_text()
            script.write_text(text.replace("/tmp/", f"{tmp_path}/").replace("/run/vmlab/", f"{tmp_path}/"))
        os.mkfifo(tmp_path / "request")
        requests = os.open(tmp_path / "request", os.O_RDWR)
        barriers = threading.Thread(target=let_all_pass, args=(requests, tmp_path, len(steps)))
        barriers.start()
        env = {**os.environ, "SHARE": str(share), "NODE": "1", "RESTARTED": "0", "DRIVER": "none"}
        subprocess.run(["bash", tmp_path / "run-steps"], env=env, stdin=subprocess.DEVNULL, capture_output=True, check=True, timeout=60)
        barriers.join()
        os.close(requests)
        return [vmlab_steps.outcome(share, 1, step.name) for step in steps]

    return run


def let_all_pass(requests, folder, count):
    """What vmlab answers at barriers of a single node."""
    with os.fdopen(os.dup(requests)) as lines:
        for _ in range(count):
            _, number, verb, _ = lines.readline().split()
            assert verb == "barrier"
            (folder / f"reply.{number}").write_text("ok\n")


def test_step_has_a_status_and_an_output(run_here):
    good, bad, killed, last = run_here(Step("good", "echo one; echo two >&2"), Step("bad", "echo $STEP; exit 3"),
                                       Step("killed", "kill -KILL $BASHPID"), Step("last", "raised x || raise x; raised x"))
    assert (good.status, good.text) == (0, "one\ntwo\n")
    assert bad.status == 3 and bad.text.startswith("bad\n")
    assert (killed.status, last.status) == (137, 0)


def test_step_that_hangs_is_killed_with_its_processes(run_here, tmp_path):
    hangs, after = run_here(Step("hangs", f"sleep 100 & echo $! >{tmp_path}/pid; wait", 1), Step("after", "true"))
    assert hangs.status == 124 and "run-steps: hangs on node1 takes longer than 1 s and is killed" in hangs.text
    assert after.status == 0
    assert wait_for(lambda: not is_running((tmp_path / "pid").read_text().strip()), 20)


def test_process_that_a_step_leaves_is_killed(run_here, tmp_path):
    leaves, = run_here(Step("leaves", f"sleep 100 & echo $! >{tmp_path}/pid"))
    assert leaves.status == 0
    assert wait_for(lambda: not is_running((tmp_path / "pid").read_text().strip()), 20)


def is_running(pid):
    try:
        with open(f"/proc/{pid}/stat") as file:
            return file.read().rpartition(")")[2].split()[0] not in "ZX"
    except FileNotFoundError:
        return False


def test_steps_that_end_at_once_are_not_waited_for(run_here):
    assert all(outcome.status == 0 and outcome.milliseconds < 30000 for outcome in run_here(
        *(Step(f"step-{number}", "true") for number in range(30))))


@pytest.mark.parametrize("words, expected", [("until_true 100 listening PORT && echo up", "up\n"), ("listening 1 || echo down", "down\n")])
def test_port_of_a_program_is_seen(run_here, words, expected):
    server = """python3 -c 'import signal, socket; s = socket.create_server(("", 0)); print(s.getsockname()[1], flush=True); signal.pause()' >port &
        until [ -s port ]; do nap 0.1; done
        """
    step = Step("port", f"cd $SHARE; {server}{words.replace('PORT', '$(cat port)')}")
    outcome, = run_here(step)
    assert (outcome.status, outcome.text) == (0, expected)
