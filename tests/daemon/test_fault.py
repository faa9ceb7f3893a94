# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
"""pvrdmactl fault: rules of the operator by which messages between adapters fail."""

import json
import socket
import subprocess
from pathlib import Path

import pytest

from daemon_net import wait_pair
from daemon_process import PATIENCE, PVRDMACTL, PVRDMAD, wait_until
from sender import sender_at

VERIFY = Path(PVRDMAD).parent / "tests/hosts/hosts_verify"


@pytest.fixture
def faulty(start_daemon):
    """A daemon that allows faults, with two adapters on a worker each."""
    return start_daemon(args=["--faults", "allowed", "--workers", "2"])


@pytest.fixture
def attached(faulty):
    """A guest at node1 with a queue pair."""
    with sender_at(faulty.socket(1)) as made:
        yield made


def ctl(*args):
    """pvrdmactl without a daemon."""
    return subprocess.run([PVRDMACTL, "--control", "/nonexistent", *args], capture_output=True, text=True, timeout=PATIENCE, check=False)


def faults_of(daemon):
    return daemon.query("fault", "list")["faults"]


def verify(daemon, *args, one=None, two=None):
    """Two guests exchange WRITEs, SENDs, READs and atomics, check each byte, and end. `daemon`: of the guests, unless `one`
    and `two` are their sockets. Return: the process."""
    argv = [VERIFY, "--seconds", str(2 * PATIENCE), *args, f"1={one or daemon.socket(1)}", f"2={two or daemon.socket(2)}"]
    return subprocess.Popen(argv, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def verify_until(daemon, over, counters, *args, status=0, **sockets):
    """verify(), until each of these counters of the daemon's only fault has counted. Return: the fault, and the result."""
    with verify(daemon, "--until", over, *args, **sockets) as child:
        wait_until(lambda: all(faults_of(daemon)[0][counter] for counter in counters) or child.poll() is not None,
                   f"the fault counts {counters}")
        over.touch()
        out, errors = child.communicate(timeout=2 * PATIENCE)
    assert child.returncode == status, out + errors
    fault, = faults_of(daemon)
    assert all(fault[counter] for counter in counters), fault
    return fault, json.loads(out)


def test_faults_are_refused_by_default(daemon):
    assert daemon.query("fault", "list") == {"allowed": False, "faults": [], "ok": True}
    for args in (("add", "drop=1%"), ("clear",)):
        done = daemon.ctl("fault", *args)
        assert done.returncode == 1
        assert done.stderr == "pvrdmactl: pvrdmad does not allow faults: start it with --faults allowed\n"


def test_setting_of_the_file_allows_faults(start_daemon, write_config):
    assert start_daemon(args=[write_config("faults = allowed\n")]).query("fault", "list")["allowed"]


def test_option_overrides_the_file(start_daemon, write_config):
    daemon = start_daemon(args=["--faults", "refused", write_config("faults = allowed\n")])
    assert not daemon.query("fault", "list")["allowed"]


def test_value_of_the_setting_is_checked(refuse):
    refuse(2, "faults 'maybe' is neither allowed nor refused", "--faults", "maybe")


def test_add_list_and_clear(faulty):
    assert faulty.must("fault", "list") == "there are no faults\n"
    assert faulty.must("fault", "add", "--from", "node1", "--to=node2", "drop=1%", "delay=5ms±2ms") == "fault 1\n"
    assert faulty.must("fault", "add", "--fabric", "default", "--seed", "7", "error=REM_ACCESS_ERR,after=1000") == "fault 2\n"
    assert [row.split() for row in faulty.must("fault", "list").splitlines()] == [
        ["ID", "MESSAGES", "DROPPED", "DELAYED", "FAILED", "RNR", "SEQ", "REORDERED", "DOUBLED", "CORRUPTED", "DOWN", "STALLED", "REFUSED", "FAULT"],
        ["1", *12 * ["0"], "from=node1", "to=node2", "drop=1%", "delay=5ms±2ms"],
        ["2", *12 * ["0"], "fabric=default", "seed=7", "error=REM_ACCESS_ERR,after=1000"]]
    assert faulty.must("fault", "clear", "1") == "1 cleared\n"
    assert [fault["id"] for fault in faults_of(faulty)] == [2]
    assert faulty.must("fault", "add", "drop=2%") == "fault 3\n"
    assert faulty.must("fault", "clear") == "2 cleared\n"
    assert faulty.must("fault", "clear") == "0 cleared\n"
    assert not faults_of(faulty)
    assert "fault 1: from=node1 to=node2 drop=1% delay=5ms±2ms" in faulty.log()


def test_load_adds_all_faults_of_a_file(faulty, tmp_path):
    path = tmp_path / "faults"
    path.write_text("# for the test of the storage\n\nfrom=node1 drop=1%   # one in a hundred\n\tto=node2 delay=1ms")
    assert faulty.must("fault", "load", path) == "fault 1\nfault 2\n"
    assert [fault["fault"] for fault in faults_of(faulty)] == ["from=node1 drop=1%", "to=node2 delay=1ms"]


def test_load_of_a_file_with_a_mistake_adds_none(faulty, tmp_path):
    path = tmp_path / "faults"
    path.write_text("from=node1 drop=1%\nfrom=node3 drop=1%\n")
    done = faulty.ctl("fault", "load", path)
    assert done.returncode == 1
    assert done.stderr == "pvrdmactl: fault 'from=node3 drop=1%': there is no adapter 'node3': see 'pvrdmactl adapters'\n"
    assert not faults_of(faulty)


@pytest.mark.parametrize("content, complaint", [
    ("", "has no fault"),
    ("# nothing\n", "has no fault"),
    ("x" * 2000, ":1: the line is longer than 1022 characters"),
    ("\n" + "drop=1%\n" * 300, ":258: more than 256 faults"),
    (None, "cannot read"),
], ids=["empty", "comment", "long line", "many", "absent"])
def test_file_that_is_no_list_of_faults(tmp_path, content, complaint):
    """pvrdmactl refuses it before it connects to a daemon."""
    path = tmp_path / "faults"
    if content is not None:
        path.write_text(content)
    done = ctl("fault", "load", path)
    assert done.returncode == 2 and complaint in done.stderr, done.stderr
    assert len(done.stderr.splitlines()) == 1


BAD_FAULTS = [
    ([], "fault '': no fault is given: there are drop, delay, reorder, duplicate, corrupt, rate, rnr, nak, error, recv-error, "
     "port-down, cq-overflow and stall"),
    (["nak=remote-access", "error=GENERAL_ERR"], "error and this nak both end the connection: give one"),
    (["error=GENERAL_ERR", "stall=peer"], "of error, recv-error, cq-overflow, port-down and stall a fault has one"),
    (["port-down=2"], "port-down '2' is not TIME or TIME,after=NUMBER"),
    (["stall=me"], "stall 'me' is neither peer nor peer,after=NUMBER"),
    (["corrupt=1"], "corrupt '1' is not the probability of a bit error, from 1e-15 to 0.01, such as 1e-6"),
    (["recv-error=REM_OP_ERR"], "recv-error 'REM_OP_ERR' is none of LOC_LEN_ERR, LOC_QP_OP_ERR, LOC_PROT_ERR"),
    (["reorder=yes"], "reorder 'yes' is not a percentage"),
    (["nak=sequence", "drop=1%"], "nak=sequence leaves no message for the other faults"),
    (["lose=1%"], "unknown word 'lose'"),
    (["drop=200%"], "drop '200%' is not a percentage"),
    (["drop=100%", "delay=1ms"], "drop=100% leaves no message for the other faults"),
    (["drop=1%", "drop=2%"], "drop is given twice"),
    (["--from", "nix", "drop=1%"], "there is no adapter 'nix'"),
    (["--to", "nix", "drop=1%"], "there is no adapter or other host 'nix': see 'pvrdmactl adapters' and 'pvrdmactl peers'"),
    (["--fabric", "nix", "drop=1%"], "no adapter has the fabric 'nix'"),
    (["--fabric", "blue", "--from", "node1", "drop=1%"], "adapter 'node1' is of fabric 'default', not of 'blue'"),
    (["--from", "node1", "--to", "late", "drop=1%"], "adapter 'late' is of fabric 'blue', not of 'default'"),
    (["--qp", "5", "drop=1%"], "qp needs from"),
    (["--from", "node1", "--qp", "5", "drop=1%"], "adapter 'node1' has no queue pair 5: see 'pvrdmactl qps node1'"),
    (["delay=2ms", "--to", "node2"], "contradicts fault 1, which has the same messages and kind"),
]


def test_bad_fault_is_refused(faulty):
    faulty.add_adapter("late", 7, fabric="blue")
    faulty.must("fault", "add", "--to", "node2", "drop=1%", "delay=1ms")
    for args, complaint in BAD_FAULTS:
        done = faulty.ctl("fault", "add", *args)
        assert done.returncode == 1 and complaint in done.stderr, done.stderr
        assert len(done.stderr.splitlines()) == 1
        assert len(faults_of(faulty)) == 1


@pytest.mark.parametrize("args, complaint", [
    (["fault"], "'fault' with 0 arguments"),
    (["fault", "frob"], "unknown command 'fault frob', see pvrdmactl --help"),
    (["fault", "list", "x"], "'fault list' with 1 arguments"),
    (["fault", "load"], "'fault load' with 0 arguments"),
    (["fault", "clear", "1", "2"], "'fault clear' with 2 arguments"),
    (["fault", "list", "--from", "a"], "'fault list' has no options --fabric, --from, --to, --qp, --seed"),
    (["adapters", "--qp", "1"], "'adapters' has no options --fabric, --from, --to, --qp, --seed"),
    (["fault", "add", "--from", "a b", "drop=1%"], "--from 'a b' has a space"),
    (["fault", "add", "--from", "x" * 600, "drop=1%"], "--from is too long"),
    (["fault", "add", "x" * 2000], "the fault is longer than 1023 characters"),
])
def test_usage(args, complaint):
    done = ctl(*args)
    assert done.returncode == 2 and complaint in done.stderr, done.stderr


def test_clear_of_no_fault(faulty):
    faulty.must("fault", "add", "drop=1%")
    for number, complaint in (("9", "there is no fault 9: see 'pvrdmactl fault list'"), ("0", "'0' is not the number of a fault"),
                              ("-1x", "'-1x' is not the number of a fault"),
                              ("4294967297", "'4294967297' is not the number of a fault")):
        done = faulty.ctl("fault", "clear", "--", number)
        assert (done.returncode, done.stderr) == (1, f"pvrdmactl: {complaint}\n")
    assert len(faults_of(faulty)) == 1


def test_request_of_another_form_is_refused(faulty):
    requests = [{"command": "fault-add", **rest} for rest in (
        {}, {"faults": []}, {"faults": "drop=1%"}, {"faults": [None]}, {"faults": ["drop=1%", {"drop": 1}]})]
    with socket.socket(socket.AF_UNIX) as control:
        control.settimeout(PATIENCE)
        control.connect(str(faulty.control))
        lines = control.makefile()
        for request in [*requests, {"command": "fault-clear", "id": 1}]:
            control.sendall(json.dumps(request).encode() + b"\n")
            reply = json.loads(lines.readline())
            assert not reply["ok"] and reply["error"], request
    assert not faults_of(faulty)


def test_number_of_faults_has_a_limit(faulty, tmp_path):
    path = tmp_path / "faults"
    path.write_text("".join(f"from=node{1 + i % 2} seed={i} {'drop=1%' if i < 2 else 'delay=1ms'}\n" for i in range(4)))
    faulty.must("fault", "load", path)
    path.write_text("".join(f"{match} {kind}\n" for match in ("", "fabric=default", "to=node1", "to=node2", "from=node1 to=node2",
                                                              "from=node2 to=node1", "fabric=default from=node1",
                                                              "fabric=default from=node2", "fabric=default to=node1",
                                                              "fabric=default to=node2")
                             for kind in ("drop=1%", "delay=1ms", "error=GENERAL_ERR")))
    done = faulty.ctl("fault", "load", path)
    assert done.returncode == 1 and "more than 32 faults" in done.stderr
    assert len(faults_of(faulty)) == 4


def test_fault_of_a_queue_pair_that_exists(faulty, attached):
    faulty.must("fault", "add", "--from", "node1", "--qp", str(attached.qpn), "drop=1%")
    assert faults_of(faulty)[0]["fault"] == f"from=node1 qp={attached.qpn} drop=1%"


def test_fault_of_connection_managers_needs_no_guest(faulty):
    """Such a fault can be there before the VM."""
    faulty.must("fault", "add", "--from", "node1", "--qp", "1", "drop=100%")
    assert faults_of(faulty)[0]["fault"] == "from=node1 qp=1 drop=100%"


def test_messages_arrive_in_spite_of_drops_and_delays(faulty, tmp_path):
    faulty.must("fault", "add", "drop=10%", "delay=100us+-50us", "rnr=every:10", "nak=sequence,every=7", "rate=10Gbit")
    verify_until(faulty, tmp_path / "over", ["dropped", "delayed", "rnr_naks", "seq_naks"], "--timeout", "10")


def test_corrupt_data_are_noticed(faulty, tmp_path):
    faulty.must("fault", "add", "--from", "node1", "corrupt=1e-5")
    _, result = verify_until(faulty, tmp_path / "over", ["corrupted"], status=1)
    assert result["wrong"]


def test_messages_arrive_in_spite_of_a_port_that_is_down_for_a_while(faulty, tmp_path):
    faulty.must("fault", "add", "--from", "node1", "port-down=50ms,after=20")
    verify_until(faulty, tmp_path / "over", ["port_downs"], "--timeout", "14")
    wait_until(lambda: all(row["link_up"] for row in faulty.query("adapters")["adapters"]), "the port is up again")


def test_error_ends_connections(faulty, tmp_path):
    faulty.must("fault", "add", "--from", "node1", "error=REM_ACCESS_ERR,after=50")
    fault, _ = verify_until(faulty, tmp_path / "over", ["failed"], "--may-fail")
    assert faulty.counters("node2")["access_errors"] == fault["failed"]


def hosts(start, second):
    """Two daemons with an adapter each. The first one allows faults."""
    daemons = start(1, 2, args=["--insecure", "--faults", "allowed"]), start(2, 1, args=["--insecure", "--faults", second])
    for number, daemon in enumerate(daemons, 1):
        daemon.add_adapter("node1", number, socket=daemon.socket())
    wait_pair(*daemons)
    return daemons


@pytest.fixture
def two_hosts(start):
    return hosts(start, "allowed")


def verify_hosts_until(one, two, counters, *args, **kwargs):
    return verify_until(one, one.control.parent / "over", counters, *args, one=one.socket(1), two=two.socket(1), **kwargs)


def test_messages_to_another_host_arrive_in_spite_of_drops(two_hosts):
    one, two = two_hosts
    one.must("fault", "add", "--to", "h2", "drop=10%", "delay=100us")
    verify_hosts_until(one, two, ["dropped", "delayed"], "--timeout", "10")


@pytest.mark.parametrize("words, counter", [
    ("error=REM_ACCESS_ERR,after=50", "access_errors"), ("error=REM_INV_REQ_ERR,after=50", "request_errors"),
    ("nak=remote-operational,after=50", "request_errors")])
def test_error_fails_the_responder_at_another_host(two_hosts, words, counter):
    one, two = two_hosts
    one.must("fault", "add", "--to", "h2", words)
    fault, _ = verify_hosts_until(one, two, ["failed"], "--may-fail")
    assert two.counters("node1")[counter] == fault["failed"]
    assert fault["refused"] == 0


def test_host_that_refuses_faults_keeps_its_responders(start):
    one, two = hosts(start, "refused")
    one.must("fault", "add", "--to", "h2", "error=REM_ACCESS_ERR,after=50")
    fault, _ = verify_hosts_until(one, two, ["failed"], "--may-fail")
    assert fault["failed"] == fault["refused"]
    assert two.counters("node1")["access_errors"] == 0


def test_corrupt_data_at_another_host_are_noticed(two_hosts):
    one, two = two_hosts
    one.must("fault", "add", "--to", "h2", "corrupt=1e-5")
    _, result = verify_hosts_until(one, two, ["corrupted"], status=1)
    assert result["wrong"]


def test_faults_change_under_traffic(faulty, tmp_path):
    """Each change pauses the workers; the guests go on, and no byte is wrong."""
    over = tmp_path / "over"
    with verify(faulty, "--until", over) as child:
        wait_until(lambda: faulty.counters("node1")["tx_messages"] > 100 or child.poll() is not None, "guests send")
        for _ in range(5):
            faulty.must("fault", "add", "delay=1ms")
            wait_until(lambda: faults_of(faulty)[0]["delayed"] or child.poll() is not None, "a delay")
            faulty.must("fault", "clear")
        over.touch()
        output = child.communicate(timeout=2 * PATIENCE)
    assert child.returncode == 0, output
