# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
"""The configuration file: its settings, and the report of a mistake in it."""

import re

import pytest

from daemon_process import refuse

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


def write(tmp_path, text):
    path = tmp_path / "pvrdmad.conf"
    path.write_text(text.format(folder=tmp_path))
    return path


def test_config_makes_adapters(start_daemon, tmp_path):
    daemon = start_daemon(adapters=0, args=["--config", str(write(tmp_path, GOOD))])
    assert "ready, 2 adapters" in daemon.log()
    rows = daemon.ctl("adapters").stdout.splitlines()
    assert re.match(r"node1 +default +52:54:00:00:00:01 .* " + re.escape(f"{tmp_path}/a1"), rows[1])
    assert re.match(r"node2 +red +52:54:00:00:00:02 ", rows[2])


def test_option_beats_config(start_daemon, tmp_path):
    path = write(tmp_path, "control = /nonexistent/control\n")
    start_daemon(adapters=1, args=["--config", str(path)])


@pytest.mark.parametrize("text, line, pattern", [
    ("log-level = info\nlog-livel = info\n", 2, "unknown setting 'log-livel': there are control, user, log-level, poll, workers, worker-cpus, numa-node, name, listen, peer"),
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
])
def test_mistake_names_the_line(tmp_path, text, line, pattern):
    path = write(tmp_path, text)
    refuse(2, f"^pvrdmad: {path}:{line}: .*{pattern}", "--config", path)


def test_no_such_file(tmp_path):
    refuse(2, "cannot read configuration file .*No such file", "--config", tmp_path / "none")
