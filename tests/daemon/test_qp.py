# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
"""pvrdmactl qp: all about one queue pair."""

import pytest

from sender import Sender


@pytest.fixture
def sender(client):
    return Sender(client)


@pytest.mark.parametrize("form", ["{}", "{:#x}"])
def test_number_in_either_form(daemon, sender, form):
    found = daemon.query("qp", "node1", form.format(sender.qpn))
    assert found["name"] == "node1" and found["qp"]["qpn"] == sender.qpn


def test_fields(daemon, sender):
    sender.send()
    qp = daemon.query("qp", "node1", str(sender.qpn))["qp"]
    assert (qp["type"], qp["state"], qp["max_sends"], qp["path"], qp["last_error"]) == ("UD", "RTS", 16, "", "")
    in_list, = daemon.query("qps", "node1")["adapters"][0]["qps"]
    assert in_list.items() <= qp.items()


def test_text_has_a_line_for_each_field(daemon, sender):
    head, *lines = daemon.must("qp", "node1", str(sender.qpn)).splitlines()
    assert head == f"node1: queue pair {sender.qpn}"
    fields = {line.split()[0]: line.split(maxsplit=1)[1] for line in lines}
    assert fields["state"] == "RTS" and fields["last_error"] == "-"
    assert fields.keys() == daemon.query("qp", "node1", str(sender.qpn))["qp"].keys()


@pytest.mark.parametrize("args, message", [
    (["nix", "2"], "nix"),
    (["node1", "99"], "adapter 'node1' has no queue pair 99: see 'pvrdmactl qps node1'"),
    (["node1", "two"], "'two' is no queue pair number: give 0 to 16777215, or 0x..."),
    (["node1", "-1"], "unknown option '-1'"),
    (["node1", "16777216"], "'16777216' is no queue pair number"),
    (["node1", ""], "'' is no queue pair number"),
    (["node1"], "'qp' with 1 arguments, see pvrdmactl --help"),
])
def test_bad_arguments(daemon, args, message):
    done = daemon.ctl("qp", *args)
    assert done.returncode != 0 and message in done.stderr, done.stderr
