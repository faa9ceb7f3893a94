# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
"""The configuration file: its settings, and the report of a mistake in it."""

import pytest

GOOD = """\
# The two VMs of this host.
log-level = debug

[adapter node1]
socket = {folder}/a1
mac = 52:54:00:00:00:01

[adapter node2]
  socket={folder}/a2
  mac = 52:54:00:00:00:02
  fabric = red
"""


def test_config_makes_adapters(start_daemon, write_config, tmp_path):
    daemon = start_daemon(adapters=0, args=[write_config(GOOD.format(folder=tmp_path))])
    assert "ready, 2 adapters" in daemon.log()
    one, two = daemon.query("adapters")["adapters"]
    assert (one["name"], one["fabric"], one["mac"]) == ("node1", "default", "52:54:00:00:00:01")
    assert one["socket"] == f"{tmp_path}/a1"
    assert (two["name"], two["fabric"], two["mac"]) == ("node2", "red", "52:54:00:00:00:02")


@pytest.mark.parametrize("text, args, table, key, value", [
    ("poll = 7", (), "workers", "window_us", 7),
    ("poll = 7", ("--poll", "off"), "workers", "poll", "off"),
    ("workers = 2\n[adapter a]\nsocket = {folder}/a\nmac = 52:54:00:00:00:09\nworker = 1", (), "adapters", "worker", 1),
    ("workers = 2", ("--workers", "4"), "workers", "worker", 3),
    ("[adapter a]\nsocket = {folder}/a\nmac = 52:54:00:00:00:09\nuar = mapped", (), "adapters", "uar", "mapped"),
    ("[adapter a]\nsocket = {folder}/a\nmac = 52:54:00:00:00:09\nmemory = 3G", (), "adapters", "ram_limit_bytes", 3 << 30),
    ("control = /nonexistent/control", (), "adapters", "name", "node1"),
], ids=["poll", "poll by option", "worker", "workers by option", "uar", "memory", "control by option"])
def test_setting_applies_unless_an_option_overrides_it(start_daemon, write_config, tmp_path, text, args, table, key, value):
    """In the last row of a table of pvrdmactl. An adapter of the file precedes those of options."""
    adapters = 0 if "[adapter" in text else 1
    daemon = start_daemon(adapters=adapters, args=[write_config(text.format(folder=tmp_path) + "\n"), *args])
    assert daemon.query(table)[table][-1][key] == value


@pytest.mark.parametrize("text, line, pattern", [
    ("log-level = info\nlog-livel = info\n", 2, "unknown setting 'log-livel': there are control, user, log-level, log-format, poll, seccomp, "
     "workers, worker-cpus, numa-node, faults, fabrics, hold, silent-source, metrics, name, listen, peer"),
    ("\n\nlog-level = loud\n", 3, "log level 'loud' is none of"),
    ("what is this\n", 1, "'what is this' is neither KEY = VALUE nor"),
    ("[adaptor n]\n", 1, r"section '\[adaptor n\]': expected \[adapter NAME\]"),
    ("[adapter n\n", 1, r"expected \[adapter NAME\]"),
    ("[adapter n]\nsocket = /s\nmacc = 1\n", 3, "unknown adapter setting 'macc'"),
    ("[adapter n]\nmac = 1\n", 2, "mac '1' is not a MAC address"),
    ("[adapter n]\nsocket = /s\n\n[adapter m]\n", 1, "adapter 'n' lacks mac=MAC"),
    ("[adapter n]\nsocket = /s\n", 1, "adapter 'n' lacks mac=MAC"),
    (GOOD + "[adapter node1]\nsocket=/x\nmac=52:54:00:00:00:03\n", 12, "two adapters are named 'node1'"),
    (GOOD + "[adapter n]\nsocket=/x\nmac=52:54:00:00:00:01\n", 12, "have the same MAC"),
    ("control = " + "x" * 200 + "\n", 1, "has 200 characters, the limit is 107"),
    ("user =\n", 1, "user is empty"),
    ("name = h1\nlisten = nowhere\n", 2, "'nowhere' is not an IP address"),
    ("peer = x\n", 1, "peer 'x' is not NAME=ADDRESS"),
    ("insecure = maybe\n", 1, "insecure 'maybe' is neither on nor off"),
    ("\nconnections = many\n", 2, "connections 'many' is not a number"),
    ("rdma-unencrypted = yes\n", 1, "rdma-unencrypted 'yes' is neither on nor off"),
    ("rdma-zerocopy = yes\n", 1, "rdma-zerocopy 'yes' is neither on nor off"),
    ("\npoll = sometimes\n", 2, "poll 'sometimes' is none of"),
])
def test_mistake_names_the_line(refuse, write_config, tmp_path, text, line, pattern):
    refuse(2, f"^pvrdmad: {tmp_path}/pvrdmad.conf:{line}: .*{pattern}", write_config(text.format(folder=tmp_path)))


def test_no_such_file(refuse, tmp_path):
    refuse(2, "cannot read configuration file .*No such file", "--config", tmp_path / "none")
