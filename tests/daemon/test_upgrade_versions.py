# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
"""Upgrade of a running daemon between programs of different versions."""

import os
import subprocess

import pytest

import daemon_process
from daemon_process import ROOT
from upgrading import Traffic, install, install_script, wait_for_messages

# A new pvrdmad with a process between it and the running one, which changes a field of each state.
CHANGED = """
import select
here, there = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
subprocess.Popen(["{program}", *sys.argv[1:]], pass_fds=[there.fileno()],
                 env={{**os.environ, "PVRDMAD_UPGRADE": str(there.fileno())}})
there.close()
while True:
    for source in select.select([here, channel], [], [])[0]:
        try:
            data, fds, _, _ = socket.recv_fds(source, 65536, 253)
        except ConnectionResetError:
            data = b""
        if not data:
            sys.exit(1)
        if json.loads(data)["type"] == "client":
            os.pwrite(fds[1], {value!r}, {offset})
        socket.send_fds(channel if source is here else here, [data], fds)
        for fd in fds:
            os.close(fd)
"""


@pytest.fixture(scope="module")
def earlier():
    """The path of pvrdmad of an earlier commit."""
    done = subprocess.run([ROOT / "scripts/build/earlier"], stdout=subprocess.PIPE, text=True, check=False)
    if done.returncode == 77:
        pytest.skip("the history of this clone does not have the earlier commit")
    assert done.returncode == 0
    return done.stdout.strip()


def runs(daemon, path):
    return os.stat(f"/proc/{daemon.child.pid}/exe").st_size == os.stat(path).st_size


@pytest.mark.long
def test_upgrade_from_an_earlier_version_and_back(earlier, program, start_daemon, tmp_path):
    now = tmp_path / "now"
    install(now, program)
    install(program, earlier)
    daemon = start_daemon()
    traffic = Traffic(daemon, over=tmp_path / "over")
    for path in (now, earlier, now, earlier, now):
        wait_for_messages(daemon)
        install(program, path)
        daemon.upgrade()
        assert runs(daemon, path)
    wait_for_messages(daemon)
    assert traffic.end() > 100


@pytest.mark.parametrize("offset, value, why", [
    (8, b"another!", "this is no state of a pvrdma adapter"),
    (16, b"\2\0\0\0", "format 2, expected 1"),
])
def test_state_of_another_version_leaves_the_old_daemon(program, start_daemon, tmp_path, offset, value, why):
    good = tmp_path / "good"
    install(good, program)
    daemon = start_daemon()
    traffic = Traffic(daemon, over=tmp_path / "over")
    install_script(program, CHANGED.format(program=good, offset=offset, value=value))
    done = daemon.ctl("upgrade")
    assert done.returncode == 1
    assert done.stderr.endswith("which goes on: it ended while it loaded the states of the VMs, see its log\n")
    assert f"upgrade: adapter node1: its state is refused: record 0 (HEAD): {why}" in daemon.log()
    wait_for_messages(daemon)
    install(program, good)
    daemon.upgrade()
    wait_for_messages(daemon)
    assert traffic.end() > 0
