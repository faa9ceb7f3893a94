# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
"""Adapters that an operator stops and starts."""

import pytest

import vfio_user as v
from daemon_process import wait_until
from guest import Guest
from vfio_user import attach


def row(daemon):
    return daemon.query("adapters")["adapters"][0]


def test_operator_stops_and_starts_an_adapter(daemon):
    assert row(daemon)["run_state"] == "running" and "stopped_ms" not in row(daemon)
    daemon.must("adapter", "stop", "node1")
    assert row(daemon)["run_state"] == "stopped"
    assert daemon.table("adapters")[0]["STATE"] == "stopped"
    wait_until(lambda: row(daemon)["stopped_ms"] > 0, "the time counts")
    daemon.must("adapter", "stop", "node1")
    daemon.must("adapter", "start", "node1")
    daemon.must("adapter", "start", "node1")
    assert row(daemon)["run_state"] == "running"


@pytest.mark.parametrize("arguments, text", [
    (("adapter", "halt", "node1"), "none of 'adapter stop', 'start', 'reclaim'"),
    (("adapter", "stop", "node9"), "node9"),
    (("adapter", "stop"), "1 arguments"),
    (("adapter", "reclaim", "node1"), "does not reclaim"),
])
def test_wrong_request_is_refused(daemon, arguments, text):
    assert text in daemon.ctl(*arguments).stderr


def test_commands_of_a_stopped_adapter_fail_until_its_start(daemon, client, guest):
    daemon.must("adapter", "stop", "node1")
    assert guest.query_port()[0] != 0
    daemon.must("adapter", "start", "node1")
    assert guest.query_port()[0] == 0


def test_next_client_starts_the_adapter(daemon):
    with attach(daemon.socket()):
        daemon.must("adapter", "stop", "node1")
    with attach(daemon.socket()) as client:
        Guest(client).start()
        assert row(daemon)["run_state"] == "running"


@pytest.mark.parametrize("state", [v.STOP, v.STOP_COPY, v.RESUMING], ids=["STOP", "STOP_COPY", "RESUMING"])
def test_operator_cannot_start_what_qemu_has_stopped(daemon, client, state):
    client.set_state(state)
    for action in ("stop", "start"):
        assert "migrates or saves the VM" in daemon.ctl("adapter", action, "node1").stderr
    assert row(daemon)["run_state"] != "running" or state == v.RESUMING


def test_qemu_starts_what_the_operator_has_stopped(daemon, client, guest):
    daemon.must("adapter", "stop", "node1")
    client.set_state(v.STOP)
    client.set_state(v.RUNNING)
    assert row(daemon)["run_state"] == "running"
    assert guest.query_port()[0] == 0


@pytest.mark.parametrize("value", ["", "Start", "2"])
def test_bad_silent_source_is_refused(refuse, value):
    refuse(2, f"silent-source '{value}' is neither refuse nor start", "--silent-source", value)


@pytest.mark.parametrize("hold", ["0", "-1", "86401", "1s", ""])
def test_wrong_hold_is_refused(refuse, hold):
    refuse(2, f"hold '{hold}' is no number of seconds from 1 to 86400", "--hold", hold)
