# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
"""The man pages and --help have every option, setting and command that there is, and no other."""

import re

import pytest
from conftest import ROOT

DAEMON = ROOT / "qemu-device" / "daemon"
MAN = ROOT / "docs" / "man"
TABLES = ("daemon/settings.c", "net/net_settings.c")


def initializers(path, name):
    """The first string of each element of a table of C."""
    table = re.search(rf"{name}\[\] = {{\n(.*?)^}};", path.read_text(), re.M | re.S)[1]
    return re.findall(r'(?:^\t|\},[\t ]+){ "([^"]+)",', table, re.M)


def help_of(path):
    return re.search(r"help\[\] =\n(.*?);\n\n", path.read_text(), re.S)[1]


def section(page, name):
    return re.search(rf'^\.Sh "?{name}"?\n(.*?)(?=^\.Sh |\Z)', (MAN / page).read_text(), re.M | re.S)[1]


def options_in(text):
    return set(re.findall(r"Fl Fl ([a-z-]+)", text))


def items(text):
    """What .It lines describe."""
    return [line for line in text.splitlines() if line.startswith(".It ")]


OPTIONS = set(initializers(DAEMON / "options.c", "long_options"))
COMMANDS = initializers(DAEMON / "ctl.c", "commands")


def settings():
    keys = [key for table in TABLES for key in initializers(ROOT / "qemu-device" / table, "keys")]
    header = (ROOT / "qemu-device" / "directory" / "directory_options.h").read_text()
    defined = re.search(r"#define PVR_DIRECTORY_KEYS(.*?)\n\n", header, re.S)[1]
    return keys + re.findall(r"[a-z][a-z-]+", defined)


def test_tables_are_found():
    assert {"adapter", "peer", "version"} <= OPTIONS
    assert {"log-level", "listen", "dscp", "peers", "advertise"} <= set(settings())
    assert "add-adapter" in COMMANDS


def test_help_of_the_daemon():
    assert set(re.findall(r"--([a-z-]+)", help_of(DAEMON / "options.c"))) == OPTIONS


def test_synopsis_of_the_daemon():
    assert options_in(section("pvrdmad.8", "SYNOPSIS")) == OPTIONS


def test_options_of_the_daemon_are_described():
    described = set().union(*(options_in(item) for item in items(section("pvrdmad.8", "DESCRIPTION"))))
    assert described == OPTIONS - {"help", "version"}


@pytest.mark.parametrize("key", settings())
def test_settings_are_described_and_are_options(key):
    described = items(section("pvrdmad.conf.5", "DESCRIPTION"))
    assert any(re.search(rf"[ ,]{key}(?![\w-])", item) for item in described)
    assert key in OPTIONS


@pytest.mark.parametrize("command", COMMANDS)
def test_commands_are_described(command):
    assert f'"  {command}' in help_of(DAEMON / "ctl.c").replace("\\n", "")
    assert any(item.startswith(f".It Cm {command}") for item in items(section("pvrdmactl.8", "DESCRIPTION")))


def test_options_of_pvrdmactl():
    has = set(initializers(DAEMON / "ctl.c", "options"))
    assert set(re.findall(r"--([a-z-]+)", help_of(DAEMON / "ctl.c"))) == has
    assert options_in(section("pvrdmactl.8", "SYNOPSIS")) == has
