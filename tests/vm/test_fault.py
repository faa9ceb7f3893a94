# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
"""Programs in VMs while the operator makes messages fail, with pvrdmactl fault: they see what docs/faults.md has."""

import re

import pytest
from faulty_daemon import NOW, FaultyDaemon
from steps import Step, run_steps

pytestmark = [pytest.mark.slow, pytest.mark.long]

# The client, on node 2, must fail. Its output has the status, as a number of enum ibv_wc_status.
FAILS = NOW + """
    {program}
    status=$?
    [ $NODE = 1 ] || [ $status != 0 ]"""
RPING = """
    server_command=(rping -s -V -C 150)
    client_command=(rping -c -a node1 -V -C 150)
    meet 7174 1 2"""
# There are receive requests for all: the program does not end if a datagram gets lost.
UD = "perftest 18517 1 2 ib_send_bw -c UD -s 1024 -n 1000 -r 1000"


def works(name, program="pingpong 18515 1 2 -c -s 4096 -n 200 && perftest 18516 1 2 ib_write_bw -s 4096 -n 1000"):
    return Step(name, NOW + program)


def fails(name, program="ib_write_bw", size=4096):
    return Step(name, FAILS.format(program=f"perftest 18515 1 2 {program} -s {size} -n 2000"))


def rping_fails(name):
    return Step(name, FAILS.format(program=RPING))


# Step, arguments of pvrdmactl fault add, the status with which the client fails, and counters of the fault that are not 0.
CASES = [
    (works("drop-and-delay"), ["drop=0.5%", "delay=200us+-100us"], None, ["dropped", "delayed"]),
    (works("rnr-nak-and-rate"), ["rnr=every:20", "nak=sequence,every=30", "rate=1Gbit"], None, ["rnr_naks", "seq_naks", "delayed"]),
    (works("port-down"), ["--from", "node2", "port-down=200ms,after=100"], None, ["port_downs"]),
    (works("datagrams", UD), ["--from", "node2", "delay=100us+-50us", "reorder=5%", "duplicate=5%"], None,
     ["reordered", "duplicated", "delayed"]),
    (works("rping", RPING), ["drop=0.5%", "delay=200us+-100us"], None, ["dropped", "delayed"]),
    (fails("drop-all"), ["--from", "node2", "drop=100%"], 12, ["dropped"]),
    (fails("long-port-down"), ["--from", "node2", "port-down=10s,after=100"], 12, ["port_downs"]),
    (works("port-is-up-again", "until_true 200 has_gid && pingpong 18515 1 2 -c -s 4096 -n 200"), None, None, []),
    (fails("stall"), ["--from", "node2", "stall=peer,after=100"], 12, ["stalled"]),
    (fails("rem-access-err"), ["--from", "node2", "error=REM_ACCESS_ERR,after=100"], 10, ["failed"]),
    (fails("rem-inv-req-err"), ["--from", "node2", "error=REM_INV_REQ_ERR,after=100"], 9, ["failed"]),
    (fails("nak-remote-operational"), ["--from", "node2", "nak=remote-operational,after=100"], 11, ["failed"]),
    (fails("loc-prot-err"), ["--from", "node2", "--to", "node1", "error=LOC_PROT_ERR,after=100"], 4, ["failed"]),
    (fails("bad-resp-err"), ["--from", "node2", "error=BAD_RESP_ERR,after=100"], 7, ["failed"]),
    (fails("recv-error", "ib_send_bw"), ["--from", "node2", "recv-error=LOC_PROT_ERR,after=100"], 11, ["failed"]),
    (rping_fails("rping-error"), ["--from", "node2", "error=REM_ACCESS_ERR,after=100"], 10, ["failed"]),
    # The server reads and writes the data that the client compares.
    (rping_fails("rping-corrupt"), ["--from", "node1", "corrupt=1e-3"], None, ["corrupted"]),
    (works("cleared"), None, None, []),
]
STEPS = [step for step, *_ in CASES]


@pytest.fixture(scope="module")
def daemon_and_run(tmp_path_factory):
    folder = tmp_path_factory.mktemp("fault")
    (folder / "run").mkdir()
    daemon = FaultyDaemon(folder)
    watch = {f"{step.name}.now": daemon.change(step, words) for step, words, *_ in CASES}
    try:
        run = run_steps(folder / "run", STEPS, watch, **daemon.options())
        daemon.note()
        yield daemon, run
    finally:
        daemon.stop()


@pytest.fixture(scope="module")
def faulty(daemon_and_run):
    return daemon_and_run[1]


@pytest.mark.parametrize("step", [step.name for step in STEPS])
def test_step(faulty, step):
    faulty.check(step)


@pytest.mark.parametrize("step, status", [(step.name, status) for step, _, status, _ in CASES if status])
def test_program_reports_the_status(faulty, step, status):
    assert re.search(rf"(Failed|failed) status {status}\b", faulty[step][1].text), faulty.explain(step)


@pytest.mark.parametrize("step, counters", [(step.name, counters) for step, *_, counters in CASES if counters])
def test_fault_is_counted(daemon_and_run, step, counters):
    daemon, run = daemon_and_run
    run.check(step)
    fault, = daemon.seen[step]
    assert all(fault[counter] for counter in counters), fault


def test_receiver_reports_the_status_of_its_request(faulty):
    assert re.search(r"(Failed|failed) status 4\b", faulty["recv-error"][0].text), faulty.explain("recv-error")


def test_program_detects_corrupt_data(faulty):
    text = "".join(outcome.text for outcome in faulty["rping-corrupt"])
    assert "data mismatch" in text, faulty.explain("rping-corrupt")


def test_run_ended_well(faulty):
    faulty.check_end()
