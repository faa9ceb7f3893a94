# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
"""Completion of command lines by bash, as a user sees it, and its words against the sources."""

import re
import subprocess

import pytest
from conftest import ROOT

BASH = ROOT / "packaging" / "completion" / "bash"
ZSH = ROOT / "packaging" / "completion" / "zsh"
DAEMON = ROOT / "qemu-device" / "daemon"

FAKE = """\
pvrdmactl() { [[ $* == "$EXPECTED" ]] && echo '{ "adapters": [ { "name": "vm1", "fabric": "x" }, { "name": "vm2" } ] }'; }
pvrdma-lab() { echo '  --nodes N'; [[ $1 == run ]] && echo '  --reuse' || echo '  --run SCRIPT   run, see --nodes'; }
pvrdmad() { echo '  --adapter name=NAME'; echo '  --config FILE      read, see --etcd'; }
"""


def complete(command, *words, expected="--json adapters"):
    """Return: the proposals for the last word."""
    function = f"_{command.replace('-', '_')}"
    script = f"{FAKE}\nsource {BASH / command}\nCOMP_WORDS=({command} \"$@\"); COMP_CWORD=$#; {function}\nprintf '%s\\n' \"${{COMPREPLY[@]}}\""
    done = subprocess.run(["bash", "-c", script, "bash", *words], capture_output=True, text=True, check=True,
                          env={"PATH": "/usr/bin:/bin", "EXPECTED": expected})
    assert done.stderr == ""
    return done.stdout.split()


COMMANDS = re.findall(r'^\t{ "([a-z-]+)", \d', (DAEMON / "ctl.c").read_text(), re.M)


@pytest.mark.parametrize("words, proposals", [
    ([""], COMMANDS),
    (["--json", "p"], ["paths", "peers"]),
    (["--"], ["--control", "--instance", "--all", "--json", "--help", "--version"]),
    (["qps", ""], ["vm1", "vm2"]),
    (["link", "vm1", ""], ["up", "down"]),
    (["adapter", ""], ["stop", "start", "reclaim"]),
    (["top", "-n", "3", ""], ["vm1", "vm2"]),
    (["top", "--b"], ["--batch"]),
    (["top", "--sort", "tx_b"], ["tx_bytes_rate"]),
    (["log-level", "w"], ["warn"]),
    (["fault", "l"], ["load", "list"]),
    (["domain-xml", "--vm", "x", ""], ["vm1", "vm2"]),
    (["domain-xml", "--v"], ["--version", "--vm"]),
    (["add-adapter", "name=vm3,ma"], ["name=vm3,mac="]),
    (["qos", "set", ""], ["vm1", "vm2"]),
    (["qos", "set", "vm1", "w"], ["weight="]),
    (["qos", "set", "--fab"], ["--fabric"]),
    (["version", ""], []),
])
def test_pvrdmactl(words, proposals):
    assert complete("pvrdmactl", *words) == proposals


def test_names_are_those_of_the_instance_that_the_option_names():
    assert complete("pvrdmactl", "--instance", "red", "stats", "", expected="--instance red --json adapters") == ["vm1", "vm2"]


def test_names_are_those_of_the_daemon_that_the_option_names():
    assert complete("pvrdmactl", "--control", "/x/control", "stats", "", expected="--control /x/control --json adapters") == ["vm1", "vm2"]


@pytest.mark.parametrize("words, proposals", [
    (["--"], ["--adapter", "--config", "--etcd"]),
    (["--log-level", ""], ["error", "warn", "info", "debug"]),
    (["--seccomp", "o"], ["on", "off"]),
    (["--log-format", "j"], ["json"]),
    (["--metrics", "u"], ["unix:/run/pvrdma/metrics"]),
])
def test_pvrdmad(words, proposals):
    assert complete("pvrdmad", *words) == proposals


@pytest.mark.parametrize("words, proposals", [
    (["r"], ["run"]),
    (["s"], ["stop"]),
    (["run", "--r"], ["--reuse"]),
    (["--"], ["--nodes", "--run"]),
    (["run", "--n"], ["--nodes"]),
    (["run", "--driver", "r"], ["rxe"]),
    (["run", "/etc/host.c"], ["/etc/host.conf"]),
    (["run", "--fault", "/etc/host.c"], ["/etc/host.conf"]),
])
def test_pvrdma_lab(words, proposals):
    assert complete("pvrdma-lab", *words) == proposals


def test_zsh_has_all_commands():
    assert re.findall(r"^\t'([a-z-]+):", (ZSH / "_pvrdmactl").read_text(), re.M) == COMMANDS


def test_columns_are_those_of_top():
    """Bash and zsh propose each column of pvrdmactl top."""
    columns = set(re.findall(r'\{ "[^"]+", "([a-z_]+)", [A-Z_]+,\s', (DAEMON / "ctl_top.c").read_text()))
    assert {"tx_rate", "retry_rate", "wait", "path"} <= columns
    assert set(complete("pvrdmactl", "top", "--sort", "")) == columns
    assert set(re.search(r":column:\(([^)]*)\)", (ZSH / "_pvrdmactl").read_text())[1].split()) == columns
