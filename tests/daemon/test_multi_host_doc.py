# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
"""Each command of docs/multi-host.md works: it runs in a network namespace with the addresses of all hosts."""

import os
import re
import subprocess
from pathlib import Path

import pytest

from daemon_process import PVRDMAD, ROOT

DOC = (ROOT / "docs/multi-host.md").read_text()
ROTATING = DOC.split("### Rotating keys")[1].split("\n## ")[0]
PROMPT = re.compile(r"^(host\d|ca)\$ (.*)$", re.M)
# Both hosts are in one namespace: it has the addresses of both.
BEGIN = """\
set -eu
ip addr add 192.0.2.1/32 dev lo
ip addr add 192.0.2.2/32 dev lo
trap 'kill $(jobs -p); wait' EXIT
scp() { cp "$1" "../${2%:}/"; }
enter() { cd "$TOP/$1"; export PVRDMA_CONTROL="$PWD/control"; }
until_up() { for _ in $(seq 600); do "$@" >../out 2>&1 && grep -q ' up ' ../out && break; sleep 0.1; done; cat ../out; }
"""


@pytest.fixture
def run(tmp_path, namespace):
    """A function that runs (host, command) one after the other. Return: their output."""

    def run_all(commands, end=""):
        script = BEGIN
        for host, command in commands:
            (tmp_path / host).mkdir(exist_ok=True)
            command = command.replace("/run/pvrdma/", f"{tmp_path}/")
            script += f"enter {host}\n" + ("until_up " if command.startswith("pvrdmactl") else "") + command + "\n"
        env = {**os.environ, "TOP": str(tmp_path), "PATH": f"{Path(PVRDMAD).resolve().parent}:{os.environ['PATH']}"}
        done = subprocess.run([*namespace, "bash", "-c", script + end], capture_output=True, text=True, env=env,
                              stdin=subprocess.DEVNULL, timeout=120, check=False)
        assert done.returncode == 0, done.stderr
        return done.stdout

    return run_all


def five_commands():
    commands = PROMPT.findall(DOC.split("## Keys")[0])
    assert len(commands) == 5
    return commands


def test_two_hosts_in_five_commands(run):
    shown = run(five_commands()).splitlines()
    promised = DOC[DOC.index("this host is host1"):].splitlines()
    assert shown[0] == promised[0]
    assert shown[1].split() == promised[1].split()

    def row(text):
        return re.sub(r"\b(up +)[012] +[012] +- +\d+", r"\1", " ".join(text.split()))

    assert row(shown[2]) == row(promised[2])


def test_certificates(run):
    commands = [(host, command) for host, command in PROMPT.findall(DOC) if host == "ca"]
    assert len(commands) == 3
    options = re.search(r"`(--tls-ca [^`]+)`", DOC)[1]
    commands += [("ca", command.replace("host1", "host2")) for _, command in commands[1:]]
    for number, other in ((1, 2), (2, 1)):
        keys = options.replace("host1", f"host{number}").replace("ca ca.pem", "ca ../ca/ca.pem").replace(" host", " ../ca/host")
        commands.append((f"host{number}", f"pvrdmad --name host{number} --listen 192.0.2.{number} "
                                          f"--peer host{other}=192.0.2.{other} {keys} &"))
    shown = run([*commands, ("host1", "pvrdmactl peers")])
    assert "this host is host1, TLS: certificates" in shown
    assert re.search(r"^host2 +192.0.2.2:7471 +up .* TLSv1.3, TLS_\w+, certificate$", shown, re.M), shown


def test_rotating_a_pre_shared_key(run):
    commands = PROMPT.findall(ROTATING)
    assert len(commands) == 9
    shown = run([*five_commands(), *commands, ("host1", "pvrdmactl peers")],
                end='cmp pvrdma.key new.key && cmp pvrdma.key ../host2/pvrdma.key\n').splitlines()
    first, cut_off = ROTATING[ROTATING.index("read again: "):].splitlines()[:2]
    assert shown.count("read again: pvrdma.key: 2 pre-shared keys") == 4
    assert shown.count(first) == 2 and shown.count(cut_off) == 1
    row = shown[-1].split()
    assert row[0] == "host2" and row[2] == "up"


def test_log_lines_are_those_of_the_sources():
    sources = "".join(path.read_text() for path in (ROOT / "qemu-device/net").glob("*.c"))
    flat = re.sub(r'"\s*"', "", sources)
    rows = re.search(r"\| line in the log \|.*", DOC, re.S)[0].splitlines()
    for line in re.findall(r"`([^`]+)`", "\n".join(row.split("|")[1] for row in rows)):
        piece = max(re.split(r"'[^']*'|\.\.\.|: certificate has expired", line), key=len).strip()
        assert piece in flat, piece
