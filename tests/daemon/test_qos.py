# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
"""Quality of service: rate=, messages=, burst= and weight= of adapters and fabrics."""

import json
import socket
import time

import pytest

from daemon_idle import cpu, sleeps
from daemon_process import wait_until
from sender import WQES, sender_at

ADAPTER = "[adapter node1]\nsocket = {folder}/a1\nmac = 52:54:00:00:00:01\n"


@pytest.fixture
def sender(daemon):
    """A guest at node1 with a queue pair."""
    with sender_at(daemon.socket(1)) as made:
        yield made


def qos_of(daemon, name="node1"):
    reply = daemon.query("qos")
    return next(row for row in reply["adapters"] + reply["fabrics"] if row["name"] == name)


def stats_of(daemon):
    return daemon.query("stats", "node1")["adapters"][0]


def ask(daemon, request):
    """The reply to a request of the control protocol."""
    with socket.socket(socket.AF_UNIX) as sock:
        sock.connect(str(daemon.control))
        sock.sendall(json.dumps(request).encode() + b"\n")
        with sock.makefile() as lines:
            return json.loads(lines.readline())


def post_all(sender):
    for _ in range(WQES):
        sender.put()
    sender.ring()


def test_there_are_no_limits_by_default(daemon):
    assert qos_of(daemon) == {"name": "node1", "fabric": "default", "rate": 0, "messages": 0, "burst": 0, "weight": 100, "waits": 0, "wait_us": 0}
    assert daemon.query("qos")["fabrics"] == []


def test_set_and_list(daemon):
    assert daemon.must("qos", "set", "node1", "rate=1Gbit", "messages=100K", "burst=1M", "weight=300") == ""
    assert daemon.must("qos", "set", "--fabric", "default", "rate=2G") == ""
    table, fabrics = daemon.must("qos").split("\nfabrics:\n")
    assert [row.split() for row in table.splitlines()] == [
        ["NAME", "BYTES/S", "MESSAGES/S", "BURST", "WEIGHT", "FABRIC", "WAITS", "WAITED", "US"],
        ["node1", "125000000", "100000", "1048576", "300", "default", "0", "0"],
        ["node2", "none", "none", "auto", "100", "default", "0", "0"]]
    assert [row.split() for row in fabrics.splitlines()] == [
        ["NAME", "BYTES/S", "MESSAGES/S", "BURST"], ["default", "2000000000", "none", "auto"]]


def test_other_settings_stay(daemon):
    daemon.must("qos", "set", "node1", "rate=1M", "burst=64K", "weight=50")
    daemon.must("qos", "set", "node1", "messages=7")
    assert [qos_of(daemon)[key] for key in ("rate", "messages", "burst", "weight")] == [1000000, 7, 65536, 50]
    daemon.must("qos", "set", "node1", "rate=none", "weight=100")
    assert [qos_of(daemon)[key] for key in ("rate", "messages", "burst", "weight")] == [0, 7, 0, 100]


def test_settings_of_the_command_line(start_daemon, tmp_path):
    daemon = start_daemon(adapters=0, args=["--adapter", f"name=node1,socket={tmp_path}/a1,mac=52:54:00:00:00:01,rate=1G,messages=5,burst=2K,weight=10"])
    assert [qos_of(daemon)[key] for key in ("rate", "messages", "burst", "weight")] == [10**9, 5, 2048, 10]


def test_settings_of_the_file(start_daemon, write_config, tmp_path):
    text = "[fabric default]\nmessages = 9\n" + ADAPTER.format(folder=tmp_path) + "rate = 8kbit\n[fabric red]\nrate = 1M\nburst = 4K\n"
    daemon = start_daemon(adapters=0, args=[write_config(text)])
    assert qos_of(daemon)["rate"] == 1000
    assert qos_of(daemon, "default") == {"name": "default", "rate": 0, "messages": 9, "burst": 0}
    assert qos_of(daemon, "red") == {"name": "red", "rate": 1000000, "messages": 0, "burst": 4096}


def test_added_adapter_has_its_settings(daemon):
    daemon.must("add-adapter", f"name=late,socket={daemon.folder}/late,mac=52:54:00:00:00:77,messages=3")
    assert qos_of(daemon, "late")["messages"] == 3


@pytest.mark.parametrize("setting, complaint", [
    ("rate=0", "rate '0' is not a number of bytes per second"),
    ("rate=1", "rate '1' is not a number of bytes per second"),
    ("rate=7kbit", "from 8kbit to 8000Gbit"),
    ("rate=8001Gbit", "from 8kbit to 8000Gbit"),
    ("rate=1T", "rate '1T' is not"),
    ("rate=-1", "rate '-1' is not"),
    ("rate=1 M", "rate '1 M' is not"),
    ("rate=99999999999999999999999", "rate '99999999999999999999999' is not"),
    ("rate=", "rate '' is not"),
    ("messages=0", "messages '0' is not a number per second"),
    ("messages=1001M", "from 1 to 1000M"),
    ("burst=4096", "burst '4096' is not a number of bytes with K, M or G"),
    ("burst=5G", "from 1K to 4G"),
    ("burst=1M", "burst is of no use without rate"),
    ("weight=9", "weight '9' is not a number from 10 to 1000"),
    ("weight=1001", "weight '1001' is not"),
    ("weight=none", "weight 'none' is not"),
    ("speed=1", "unknown setting 'speed': there are rate, messages, burst and weight"),
])
def test_bad_setting_is_refused(daemon, setting, complaint):
    done = daemon.ctl("qos", "set", "node1", "messages=1", setting)
    assert done.returncode == 1 and complaint in done.stderr, done.stderr
    assert len(done.stderr.splitlines()) == 1
    assert qos_of(daemon)["messages"] == 0


@pytest.mark.parametrize("args, status, complaint", [
    (("set",), 2, "'qos set' needs an adapter or --fabric, and a setting"),
    (("set", "node1"), 2, "'qos set' needs an adapter or --fabric, and a setting"),
    (("set", "node1", "rate"), 2, "'rate' is not KEY=VALUE"),
    (("set", "node1", "name=node2"), 2, "there is no setting 'name'"),
    (("clear", "node1"), 2, "unknown command 'qos clear'"),
    (("set", "--from", "node1", "rate=1M"), 2, "'qos set' has no options --from"),
    (("--fabric", "red"), 2, "unknown command 'qos --fabric'"),
    (("set", "nowhere", "rate=1M"), 1, "there is no adapter 'nowhere'"),
    (("set", "--fabric", "a/b", "rate=1M"), 1, "fabric 'a/b' has characters other than"),
    (("set", "--fabric", "red", "weight=100"), 1, "unknown setting 'weight' of a fabric"),
])
def test_bad_command_is_refused(daemon, args, status, complaint):
    done = daemon.ctl("qos", *args)
    assert done.returncode == status and complaint in done.stderr, done.stderr


@pytest.mark.parametrize("text, line, pattern", [
    ("[fabric red]\nweight = 100\n", 2, "unknown setting 'weight' of a fabric: there are rate, messages and burst"),
    ("[fabric red]\nrate = fast\n", 2, "rate 'fast' is not a number"),
    ("[fabric red]\nburst = 1M\n", 1, "burst is of no use without rate"),
    ("[fabric red]\nrate = 1M\n[fabric red]\nrate = 2M\n", 3, "the fabric 'red' has settings twice"),
    ("[fabric a/b]\n", 1, "fabric 'a/b' has characters other than"),
    ("[fabrics red]\n", 1, r"expected \[adapter NAME\] or \[fabric NAME\]"),
    (ADAPTER + "burst = 1M\n", 1, "adapter 'node1': burst is of no use without rate"),
])
def test_mistake_in_the_file_names_the_line(refuse, write_config, tmp_path, text, line, pattern):
    refuse(2, f"^pvrdmad: {tmp_path}/pvrdmad.conf:{line}: .*{pattern}", write_config(text.format(folder=tmp_path)))


def test_number_of_fabrics_has_a_limit(daemon):
    for number in range(256):
        assert ask(daemon, {"command": "qos-set", "fabric": f"f{number}", "rate": "1M"})["ok"]
    reply = ask(daemon, {"command": "qos-set", "fabric": "more", "rate": "1M"})
    assert reply == {"ok": False, "error": "more than 256 fabrics with settings"}
    assert ask(daemon, {"command": "qos-set", "fabric": "f7", "rate": "2M"})["ok"]


@pytest.mark.parametrize("request_of", [
    {}, {"name": "node1", "fabric": "red", "rate": "1M"}, {"name": 1, "rate": "1M"}, {"name": "node1", "rate": 1}, {"name": "node1"},
], ids=json.dumps)
def test_bad_request_is_refused(daemon, request_of):
    reply = ask(daemon, {"command": "qos-set", **request_of})
    assert not reply["ok"] and reply["error"]


def test_messages_are_limited(daemon, sender):
    """The first 0.01 s of messages come at once."""
    daemon.must("qos", "set", "node1", "messages=10")
    begin = time.monotonic()
    post_all(sender)
    sender.wait()
    seconds = time.monotonic() - begin
    assert seconds >= 0.98 * (WQES - 1 - 0.1) / 10
    stats = stats_of(daemon)
    assert stats["tx_messages"] == WQES and WQES - 2 <= stats["qos_waits"] <= WQES
    assert 0.9e9 * (WQES - 2) / 10 <= stats["qos_wait_ns"] <= 1e9 * seconds


def test_wait_uses_no_cpu(daemon, sender):
    """The worker wakes up about once for each message. CPU time is in ticks of 10 ms."""
    daemon.must("qos", "set", "node1", "messages=2")
    post_all(sender)
    wait_until(lambda: stats_of(daemon)["tx_messages"] > 1, "the first messages")
    begin, used, slept, sent = time.monotonic(), cpu(daemon), sleeps(daemon, "/"), stats_of(daemon)["tx_messages"]
    wait_until(lambda: stats_of(daemon)["tx_messages"] >= sent + 4, "four more")
    assert sleeps(daemon, "/") - slept <= 20
    assert cpu(daemon) - used <= 2 + 5 * (time.monotonic() - begin)


def test_removed_limit_ends_the_wait(daemon, sender):
    daemon.must("qos", "set", "--fabric", "default", "messages=1")
    post_all(sender)
    wait_until(lambda: stats_of(daemon)["qos_waits"], "a wait")
    daemon.must("qos", "set", "--fabric", "default", "messages=none")
    sender.wait()
    assert daemon.query("qos")["fabrics"] == []


def test_limited_adapter_is_removed_while_it_waits(daemon, sender):
    daemon.must("qos", "set", "node1", "messages=1")
    post_all(sender)
    wait_until(lambda: stats_of(daemon)["qos_waits"], "a wait")
    daemon.must("remove-adapter", "node1")
    assert [row["name"] for row in daemon.query("qos")["adapters"]] == ["node2"]
