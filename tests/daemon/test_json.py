# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
"""pvrdmactl --json: each command that prints has its facts in JSON, too."""

import json
import re
import subprocess
from pathlib import Path

import pytest

from daemon_process import PATIENCE, PVRDMACTL, PVRDMAD
from sender import sender_at

VERIFY = Path(PVRDMAD).parent / "tests/hosts/hosts_verify"
# The words of each command's text that are no facts: titles, units, and what surrounds the facts.
COMMANDS = {
    "adapters": "ADAPTER FABRIC MAC HW ROCE UAR STATE LINK QEMU RAM LIMIT WORKER SOCKET none up down",
    "paths": "<-> fabric path messages host rtt us sent received",
    "peers": "this host is TLS: HOST ADDRESS STATE OUT IN VERBS RTT/US TLS -",
    "qp node1 QPN": "queue pair -",
    "qps": "QPN TYPE STATE PEER SENT RECEIVED BYTES BY TCP TIMEOUTS WAITS FOR -",
    "stats": "",
    "qos": "NAME BYTES/S MESSAGES/S BURST WEIGHT FABRIC WAITS WAITED US none auto fabrics:",
    "workers": "WORKER CPUS ADAPTERS CPU/MS MESSAGES BLOCKED POLL WINDOW/US WINDOWS FOUND SLEEPS BACKOFFS CROWDED",
    "fault list": "ID MESSAGES DROPPED DELAYED FAILED RNR SEQ REORDERED DOUBLED CORRUPTED DOWN STALLED REFUSED FAULT",
    "reload": "read again:",
    "version": "pvrdmactl pvrdmad device version features",
}
# Command, its text; another such command, its JSON. In this order.
CHANGES = [
    ("fault add --from node1 drop=2%", "fault 2\n", "fault add --from node1 delay=1ms", {"ids": [3]}),
    ("fault load FOLDER/one", "fault 4\n", "fault load FOLDER/other", {"ids": [5]}),
    ("fault clear 2", "1 cleared\n", "fault clear", {"cleared": 4}),
    ("qos set node1 weight=50", "", "qos set node1 weight=60", {}),
    ("link node1 down", "", "link node1 up", {}),
    ("adapter stop node1", "", "adapter start node1", {}),
    ("log-level debug", "", "log-level info", {}),
    ("add-adapter name=more,socket=FOLDER/m1,mac=52:54:00:00:77:01", "", "add-adapter name=most,socket=FOLDER/m2,mac=52:54:00:00:77:02", {}),
    ("move-adapter more 0", "", "move-adapter most 0", {}),
    ("remove-adapter more", "", "remove-adapter most", {}),
]
# capture writes packets, libvirt-hook prints nothing; test_top.py, test_domain_xml.py and test_upgrade.py have the others.
ELSEWHERE = {"capture", "libvirt-hook", "top", "domain-xml", "upgrade", "metrics-targets"}


def leaves(value):
    if isinstance(value, (dict, list)):
        for key in value:
            yield from leaves(value[key] if isinstance(value, dict) else key)
            if isinstance(value, dict):
                yield key
    else:
        yield value


def humanized(number):
    """As pvr_print_bytes()."""
    for unit in ("B", "KiB", "MiB", "GiB", "TiB"):
        if number < 1024:
            return f"{number:.0f} B" if unit == "B" else f"{number:.1f} {unit}"
        number /= 1024
    return f"{number:.1f} PiB"


def words(text):
    return [word.strip("(),:") for word in text.split()]


def facts(reply):
    """The words by which a text can show the values and keys of the reply. A path has the sums of both directions."""
    found = set()
    paths = reply.get("paths", [])
    sums = [path[key] + other[key] for path in paths for other in paths for key in ("messages", "bytes")]
    for leaf in [*leaves(reply), *sums]:
        text = json.dumps(leaf) if isinstance(leaf, (bool, float)) else str(leaf)
        found |= {*words(text)}
        if isinstance(leaf, int):
            found |= {*humanized(leaf).split(), f"{leaf:#x}"}
    return found


def commands_of_help():
    done = subprocess.run([PVRDMACTL, "--help"], capture_output=True, text=True, check=True)
    return set(re.findall(r"^  ([a-z]+(?:-[a-z]+)*)\b", done.stdout, re.M))


@pytest.fixture
def daemon(start, ca):
    """h1 of two hosts, whose VMs have talked, with a fault and limits."""
    one = start(1, 2, args=[*ca.options("h1"), "--faults", "allowed"])
    two = start(2, 1, args=[*ca.options("h2"), "--faults", "allowed"])
    for number, each in enumerate((one, two), 1):
        each.add_adapter("node1", number, socket=each.socket())
    one.must("fault", "add", "--from", "node1", "corrupt=1e-15")
    one.must("qos", "set", "--fabric", "default", "rate=100Gbit")
    one.must("qos", "set", "node1", "rate=50Gbit", "burst=1M", "messages=10M")
    subprocess.run([VERIFY, "--seconds", "0.1", f"1={one.socket(1)}", f"2={two.socket(1)}"], stdin=subprocess.DEVNULL,
                   capture_output=True, timeout=2 * PATIENCE, check=True)
    return one


def test_each_command_is_here_or_elsewhere():
    here = {command.split()[0] for command in [*COMMANDS, *(change[0] for change in CHANGES)]}
    assert here | ELSEWHERE == commands_of_help()


def difference(daemon, arguments, frame):
    """The words of the text that are neither facts of the JSON nor of the frame."""
    text, reply = daemon.must(*arguments), daemon.query(*arguments)
    assert reply.pop("ok") is True and text
    known = facts(reply) | set(words(frame))
    return [word for word in words(text) if word not in known]


def test_json_has_the_facts_of_the_text(daemon):
    with sender_at(daemon.socket(1)) as sender:
        for command, frame in COMMANDS.items():
            arguments = command.replace("QPN", str(sender.qpn)).split()
            # Counters can change between the two forms.
            unknown = [difference(daemon, arguments, frame) for _ in range(3)]
            assert [] in unknown, f"{command}: {unknown}"


def test_changes_have_a_reply_in_json(daemon, tmp_path):
    (tmp_path / "one").write_text("to=h2 drop=3%\n")
    (tmp_path / "other").write_text("to=h2 delay=3ms\n")
    for command, text, other, reply in CHANGES:
        assert daemon.must(*command.replace("FOLDER", str(tmp_path)).split()) == text, command
        assert daemon.query(*other.replace("FOLDER", str(tmp_path)).split()) == {"ok": True, **reply}, other


def test_refusal_is_in_json_and_on_standard_error(daemon):
    done = daemon.ctl("--json", "link", "nix", "up")
    reply = json.loads(done.stdout)
    assert done.returncode == 1 and reply["ok"] is False and reply["error"] in done.stderr


def test_domain_has_its_xml_in_json(daemon):
    reply = daemon.query("domain-xml", "node1")
    assert reply == {"ok": True, "xml": daemon.must("domain-xml", "node1")}
