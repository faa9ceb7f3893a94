# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
"""vmlab itself: its interface for scripts and for users. No RDMA device needed."""

import os
import pathlib
import signal
import socket
import subprocess

import pytest
from boots import APPS_PACKAGES
from vmlab_lib.main import main
from vmlab_lib.process import wait_for
from vmlab_run import VMLAB, Vmlab

FOREVER = "sleep 1000"


def processes_of(vmlab):
    """The command lines of all processes of this test's lab except vmlab's own."""
    marker = os.fsencode(vmlab.share)
    found = []
    for path in pathlib.Path("/proc").glob("[0-9]*/cmdline"):
        try:
            line = path.read_bytes()
        except OSError:
            continue
        if marker in line and b"vmlab\0" not in line:
            found.append(line)
    return found


# --- environment of a node's script, and its failure -------------------------------------------------

@pytest.fixture(scope="module")
def lab_of_failure(tmp_path_factory):
    return Vmlab(tmp_path_factory.mktemp("failing"))


@pytest.fixture(scope="module")
def failing(lab_of_failure):
    """A script that says what it finds, and fails on node 2."""
    vmlab = lab_of_failure
    vmlab.put(__file__)
    return vmlab("""
        echo "NODE=$NODE NODES=$NODES MY_IP=$MY_IP IPS=$IPS PEER_IP=$PEER_IP"
        echo "RDMA_DEV=$RDMA_DEV. GID_INDEX=$GID_INDEX. memlock $(ulimit -l) on $(hostname)"
        test -s $SHARE/test_vmlab.py
        [ $NODE = 1 ] || sleep 1
        echo "from the node" >$SHARE/wrote-$NODE
        barrier written
        echo "sees $(ls $SHARE | grep -c wrote)"
        ping -c 1 -W 5 $PEER_IP >/dev/null && echo "reaches its peer"
        ping -c 1 -W 5 node$NODES >/dev/null && echo "resolves names"
        echo "MY_IP6=$MY_IP6 IPS6=$IPS6 PEER_IP6=$PEER_IP6"
        ping -c 1 -W 5 $PEER_IP6 >/dev/null && ping -c 1 -W 5 node$NODES-6 >/dev/null && echo "by IPv6, too"
        grep -ow "word=1 other" /proc/cmdline
        configured=$(sed -n 's/.*tsc_early_khz=\\([0-9]*\\).*/\\1/p' /proc/cmdline)
        measured=$(dmesg | sed -n 's/.*tsc: Detected \\([0-9.]*\\) MHz.*/\\1/p' | tail -n 1 | tr -d .)
        [ "$configured" = "$measured" ] || grep -q kvm-clock /sys/devices/system/clocksource/*/current_clocksource &&
            echo "has the frequency of its clock"
        barrier told
        [ $NODE = 1 ] || { echo last words; exit 7; }
        barrier never
        """, driver="none", append="word=1 other")


def test_script_finds_its_environment_barrier_and_share(failing, lab_of_failure):
    for node, peer in ((1, 2), (2, 1)):
        assert failing.nodes[node][:-1] == [
            f"NODE={node} NODES=2 MY_IP=10.77.0.{node} IPS=10.77.0.1 10.77.0.2 PEER_IP=10.77.0.{peer}",
            f"RDMA_DEV=. GID_INDEX=. memlock unlimited on node{node}",
            "sees 2", "reaches its peer", "resolves names",
            f"MY_IP6=fd77::{node} IPS6=fd77::1 fd77::2 PEER_IP6=fd77::{peer}", "by IPv6, too",
            "word=1 other", "has the frequency of its clock"]
        assert (lab_of_failure.share / f"wrote-{node}").read_text() == "from the node\n"


def test_failing_script(failing, lab_of_failure):
    """Its node and status are named; another node that waits at a barrier gets an error."""
    assert failing.status == 1
    assert failing.error == "node2: its script ended with status 7"
    assert failing.nodes[2][-1] == "last words"
    assert failing.nodes[1][-1] == "labctl barrier: never: node2 ended without coming here"
    assert not processes_of(lab_of_failure)


@pytest.mark.long
def test_rxe_on_three_nodes(vmlab):
    """Soft-RoCE finds its GID on each, and all pairs talk through the switch."""
    result = vmlab("""
        echo "uses $RDMA_DEV"
        pair() {
            if [ $NODE = $1 ]; then
                ibv_rc_pingpong -d $RDMA_DEV -g $GID_INDEX -c -n 50 &
                until ss -ltnH 'sport = :18515' | grep -q .; do sleep 0.1; done
            fi
            barrier up-$1-$2
            if [ $NODE = $2 ]; then
                ibv_rc_pingpong -d $RDMA_DEV -g $GID_INDEX -c -n 50 node$1
                echo "pair $1 $2"
            fi
            wait
            barrier down-$1-$2
        }
        pair 1 2; pair 2 3; pair 3 1
        """, driver="rxe", nodes=3).check()
    assert "uses rxe0" in result.text(3)
    pairs = [line for line in result.stdout.splitlines() if "| pair" in line]
    assert pairs == ["node2| pair 1 2", "node3| pair 2 3", "node1| pair 3 1"]


@pytest.mark.long
def test_packages_are_installed(vmlab):
    result = vmlab("hello", driver="none", nodes=1, packages="hello").check()
    assert result.nodes[1] == ["Hello, world!"]


@pytest.mark.long
def test_ssh_without_password(vmlab):
    """Root and the ordinary user, by name, address and to oneself; a password is not even asked for."""
    result = vmlab("""
        barrier up
        ssh="ssh -o ConnectTimeout=20 -o StrictHostKeyChecking=yes"
        [ $NODE = 2 ] || { barrier over; exit; }
        for host in node1 $PEER_IP node2 localhost; do
            echo "root at $host: $($ssh -o BatchMode=yes $host 'hostname; id -un; ulimit -l' | xargs)"
        done
        su user -c "$ssh -o BatchMode=yes node1 'hostname; id -un; pwd'" | xargs
        ! $ssh -o PreferredAuthentications=password,keyboard-interactive root@node1 true 2>&1
        ls -l /home/user/.ssh/id_ed25519 | cut -d ' ' -f 1,3,4
        barrier over
        """, driver="none", packages=APPS_PACKAGES).check()
    assert result.nodes[2] == [
        "root at node1: node1 root unlimited", "root at 10.77.0.1: node1 root unlimited",
        "root at node2: node2 root unlimited", "root at localhost: node2 root unlimited",
        "node1 user /home/user", "root@node1: Permission denied (publickey).", "-rw------- user user"]


@pytest.mark.long
def test_killed_node_is_replaced(vmlab):
    """labctl: a killed node is no failure, its replacement runs the script, refusals have reasons."""
    result = vmlab("""
        if [ $RESTARTED = 1 ]; then echo "is new"; barrier again; exit 0; fi
        barrier start
        [ $NODE = 1 ] || sleep 1000
        labctl start-node 2 2>&1 || true
        labctl kill-node 7 2>&1 || true
        labctl kill-node 2
        barrier alone
        labctl start-node 2
        barrier again
        ping -c 1 -W 5 $PEER_IP >/dev/null && echo "reaches the new one"
        """, driver="none").check()
    assert result.nodes[2] == ["is new"]
    assert result.nodes[1] == [
        "labctl start-node: node2 is running; only a killed node can be started",
        "labctl kill-node: there is no node 7, only 1 to 2", "reaches the new one"]


@pytest.mark.long
def test_request_of_a_killed_process_blocks_no_other(vmlab):
    """Its response, an error when node 2 ends, has no receiver; later responses must arrive."""
    result = vmlab("""
        if [ $NODE = 2 ]; then barrier asked; exit 0; fi
        labctl barrier never & pid=$!
        sleep 1
        kill -KILL $pid
        barrier asked
        sleep 2
        labctl cpu""", driver="none", timeout=60).check()
    assert "node1=" in result.text(1)


@pytest.mark.long
def test_cpu_time_of_the_processes(vmlab):
    """labctl cpu: a busy guest shows in its own QEMU's figure."""
    result = vmlab("""
        labctl cpu
        seq 200000 >/dev/null
        labctl cpu""", nodes=1).check()
    before, after = (dict(word.split("=") for word in line.split()) for line in result.nodes[1])
    assert set(before) == set(after) == {"node1", "pvrdmad"}
    assert int(after["node1"]) - int(before["node1"]) >= 10_000_000
    assert int(after["pvrdmad"]) >= int(before["pvrdmad"]) > 0


@pytest.mark.long
def test_shell_on_node_1_and_attached_to_node_2(vmlab):
    command = vmlab.command("true", driver="none")
    command[command.index("--run"):] = ["--shell"]
    lab = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                           stderr=subprocess.PIPE, text=True)
    lines = []
    while sum(" is up after " in line for line in lines) < 2:
        lines.append(lab.stderr.readline())
        assert lines[-1], lines
    attach = next(line for line in lines if "--attach" in line).split()[-1]
    done = subprocess.run([VMLAB, "--attach", attach], input="echo this-is-$NODE\nexit\n",
                          capture_output=True, text=True, timeout=30, check=True)
    assert "this-is-2" in done.stdout
    stdout, stderr = lab.communicate("echo this-is-$NODE; exit\n", timeout=30)
    assert "this-is-1" in stdout
    assert lab.returncode == 0, stderr
    assert not processes_of(vmlab)


# --- failures -------------------------------------------------------------------------------

@pytest.mark.long
def test_kernel_warning(vmlab):
    result = vmlab("""
        echo '<4>WARNING: CPU: 0 PID: 1 at drivers/some.c:1 pvrdma_probe+0x1/0x2' >/dev/kmsg
        sleep 1000""", driver="none", nodes=1)
    assert result.status == 1
    assert result.error.startswith("node1: its kernel says: WARNING: CPU: 0 PID: 1 at drivers/some.c")
    assert "node1! " in result.stderr


@pytest.mark.long
def test_panic(vmlab):
    result = vmlab("echo c >/proc/sysrq-trigger", driver="none", nodes=1)
    assert result.status == 1
    assert result.error.startswith("node1: its kernel says: Kernel panic")
    assert "Call Trace" in result.log("node1.console")


@pytest.mark.long
def test_timeout_leaves_no_process(vmlab):
    result = vmlab(FOREVER, driver="none", nodes=1, timeout=3)
    assert result.status == 1
    assert result.error.startswith("the lab took longer than 3 s (--timeout): node1 ")
    assert not processes_of(vmlab)


@pytest.mark.long
@pytest.mark.parametrize("signum", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_signal_leaves_no_process(vmlab, signum):
    command = vmlab.command(FOREVER, driver="none", nodes=3)
    child = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert wait_for(lambda: len(processes_of(vmlab)) == 3, 20)
    child.send_signal(signum)
    _, stderr = child.communicate(timeout=20)
    assert wait_for(lambda: not processes_of(vmlab), 20)
    if signum != signal.SIGKILL:
        assert child.returncode == 128 + signum
        assert f"vmlab: error: ended by signal {int(signum)}" in stderr
        assert not list(pathlib.Path("/tmp").glob(f"vmlab-{child.pid}-*"))


@pytest.mark.long
def test_adapter_socket_without_listener_fails(vmlab, tmp_path):
    """QEMU's own words are the reason."""
    path = tmp_path / "adapter"
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(path))
    result = vmlab(FOREVER, driver="pvrdma", provider="debian", nodes=1, adapter_socket=path)
    assert result.status == 1
    assert result.error.startswith("node1: QEMU ended with status 1: ")
    assert str(path) in result.error


# --- bad input ----------------------------------------------------------------------------------

def old_qemu(folder):
    path = folder / "qemu"
    path.write_text("#!/bin/sh\necho QEMU emulator version 7.2.11\n")
    path.chmod(0o755)
    return path


BAD = [
    (["--driver", "mlx5"], "--driver 'mlx5' is unknown; known are pvrdma, vmw_pvrdma, rxe, none"),
    (["--driver", "rxe,mlx5"], "--driver 'mlx5' is unknown; known are pvrdma, vmw_pvrdma, rxe, none"),
    (["--driver", "pvrdma,vmw_pvrdma", "--nic", "virtio-net-pci"], "needs --nic vmxnet3"),
    (["--kernel", "2.4"], "unknown kernel '2.4'"),
    (["--kernel", "new"], "--kernel wants a version such as 6.1"),
    (["--nic", "rtl8139"], "--nic 'rtl8139' is unknown"),
    (["--nodes", "0"], "--nodes wants a number from 1 to 250, not '0'"),
    (["--nodes", "two"], "--nodes wants a number"),
    (["--memory", "lots"], "--memory wants a size such as 512M or 1G, not 'lots'"),
    (["--memory", "16M"], "a guest needs at least 256M"),
    (["--smp", "-1"], "--smp"),
    (["--timeout", "0"], "--timeout wants a positive number of seconds"),
    (["--packages", "Ünsinn"], "is not a name of a Debian package"),
    (["--share", "/nowhere"], "--share /nowhere: there is no such folder"),
    (["--run", "/nowhere"], "--run /nowhere: there is no such script"),
    (["--run", "/etc/passwd"], "is not executable: say chmod +x"),
    (["--qemu", "{old}"], "is QEMU 7.2, but vfio-user needs 10.1 or newer"),
    (["--qemu", "/bin/false"], "does not run as a QEMU"),
    (["--driver", "vmw_pvrdma", "--nic", "virtio-net-pci"], "needs --nic vmxnet3"),
    (["--driver", "vmw_pvrdma", "--posted-writes", "on"], "needs --posted-writes off"),
    (["--driver", "pvrdma", "--adapter-socket", "/nowhere"], "2 nodes need 2 times --adapter-socket"),
    (["--driver", "pvrdma", "--nodes", "1", "--adapter-socket", "/nowhere"],
     "/nowhere is no socket: is pvrdmad running?"),
    (["--driver", "rxe", "--fault", "/etc/passwd"], "--fault acts on adapters of pvrdmad, which --driver rxe does not use"),
    (["--driver", "pvrdma", "--fault", "/nowhere"], "--fault /nowhere: there is no such file"),
    (["--driver", "pvrdma", "--fault", "{fault}"], "/faults: fault 'drop=200%': drop '200%' is not a percentage"),
    (["--driver", "pvrdma", "--nodes", "1", "--adapter-socket", "/nowhere", "--fault", "{fault}"],
     "--fault wants a pvrdmad of vmlab's own"),
    (["--module", "/nowhere"], "--module /nowhere: there is no such file or folder"),
    (["--module", "/etc/passwd"], "--module /etc/passwd: is no kernel module"),
    (["--module", "/etc"], "build/user-module: /etc has no Kbuild and no Makefile"),
    (["--rdma-core", "/nowhere"], "--rdma-core /nowhere: there is no such folder"),
    (["--rdma-core", "/etc"], "build/user-rdma-core: /etc is no source tree of rdma-core"),
    (["--frobnicate"], "unrecognized arguments: --frobnicate"),
]


@pytest.fixture
def in_this_process(capfd):
    """in_this_process(arguments): what scripts/vmlab calls. Return: exit status, output and errors."""
    signals = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)}

    def run(args):
        capfd.readouterr()
        return main(args), *capfd.readouterr()

    yield run
    for number, handler in signals.items():
        signal.signal(number, handler)


@pytest.mark.parametrize("args, message", BAD, ids=[" ".join(args) for args, _ in BAD])
def test_bad_input_gets_one_clear_line(vmlab, tmp_path, in_this_process, args, message):
    fault = tmp_path / "faults"
    fault.write_text("drop=200%\n")
    args = [arg.replace("{old}", str(old_qemu(tmp_path))).replace("{fault}", str(fault)) for arg in args]
    status, out, err = in_this_process([*vmlab.command("true", driver="none")[1:], *args])
    assert (status, out) == (2, "")
    assert err.count("\n") == 1, err
    assert message in err


def test_nothing_to_do():
    done = subprocess.run([VMLAB, "--driver", "none"], capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert done.stderr == "vmlab: error: what shall the VMs do? Give --run SCRIPT or --shell\n"


def test_run_wants_a_script():
    done = subprocess.run([VMLAB, "run", "--driver", "none"], capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert done.stderr == "vmlab: error: the following arguments are required: SCRIPT (see scripts/vmlab --help)\n"


@pytest.mark.parametrize("words, message", [
    (["stop", "0"], "there is no lab 0; see `scripts/vmlab list`"),
    (["list", "--all"], "unrecognized arguments: --all (see scripts/vmlab --help)"),
    (["--reuse", "--run", "/bin/true"], "unrecognized arguments: --reuse (see scripts/vmlab --help)"),
    (["run", "--reuse", "--nodes", "1", "--adapter-socket", "/nowhere", "/bin/true"], "--reuse wants a pvrdmad of vmlab's own"),
    (["run", "--reuse", "--idle-timeout", "soon", "/bin/true"], "--idle-timeout wants a positive number of seconds"),
])
def test_kept_labs_refuse_bad_input(in_this_process, words, message):
    assert in_this_process(words) == (2, "", f"vmlab: error: {message}\n")
