# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
"""docs/troubleshooting.md: a test produces each symptom, and each row has a command that shows its cause."""

import re

from conftest import ROOT, table_rows
from test_bad_inputs_doc import TEST, files, runs

DOC = ROOT / "docs" / "troubleshooting.md"
COMMANDS = {"dmesg", "grep", "ibv_devinfo", "ip", "journalctl", "ls", "lsmod", "lspci", "pvrdmactl", "rdma", "systemctl", "ulimit"}
SUBCOMMANDS = set(re.findall(r'^\t\{ "([\w-]+)", \d', (ROOT / "qemu-device/daemon/ctl.c").read_text(), re.M))


def rows(text):
    return [row for row in table_rows(text) if row[0] != "symptom" and set(row[0]) != {"-"}]


def is_command(words):
    """Whether the words begin a command that operators have; those of pvrdmactl are in its table."""
    name, *arguments = [word for word in words.split() if "=" not in word]
    return name in COMMANDS and (name != "pvrdmactl" or arguments[0] in SUBCOMMANDS)


def what_is_wrong(row):
    """A complaint, or None."""
    if len(row) != 4 or not all(row):
        return "not symptom, cause, command and test"
    commands = re.findall(r"`([^`]+)`", row[2])
    if not commands or not all(is_command(words) for words in commands):
        return f"no commands: {row[2]}"
    tests = TEST.findall(row[3])
    if not tests or TEST.sub("", row[3]).strip(", "):
        return "the last cell is no list of `test_file: test_function`"
    missing = [f"{name}: {function}" for name, function, step in tests
               if not any(runs(path, function, step) for path in files(name))]
    return f"no {missing}" if missing else None


def test_each_symptom_has_a_command_and_a_test():
    table = rows(DOC.read_text())
    assert len(table) > 15
    wrong = {row[0]: why for row in table if (why := what_is_wrong(row))}
    assert not wrong


def test_no_symptom_is_there_twice():
    symptoms = [row[0] for row in rows(DOC.read_text())]
    assert len(set(symptoms)) == len(symptoms)


def test_the_check_sees():
    good = ["x", "y", "`pvrdmactl paths`", "`test_net.py: test_paths_show_hosts`"]
    assert what_is_wrong(good) is None
    assert "not symptom" in what_is_wrong(good[:3])
    assert "no commands" in what_is_wrong([*good[:2], "the log", good[3]])
    assert "no commands" in what_is_wrong([*good[:2], "`pvrdmactl path`", good[3]])
    assert "no list" in what_is_wrong([*good[:3], "by hand"])
    assert "no [" in what_is_wrong([*good[:3], "`test_net.py: test_paths_show_host`"])
