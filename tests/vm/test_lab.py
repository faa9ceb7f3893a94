# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
"""`pvrdma-lab run`, as developers of RDMA programs use it in CI: faults, own modules and libraries, VMs that are used again."""

import contextlib
import os
import pathlib
import re
import signal
import subprocess

import pytest
from vmlab_lib.process import wait_for
from vmlab_run import ROOT, VMLAB, Result

pytestmark = [pytest.mark.slow, pytest.mark.long]

PINGPONG = """
    barrier up
    if [ $NODE = 1 ]; then
        timeout 30 ibv_rc_pingpong -d $RDMA_DEV -g $GID_INDEX -n 10 || true
    else
        sleep 1
        ibv_rc_pingpong -d $RDMA_DEV -g $GID_INDEX -n 10 $PEER_IP 2>&1 || echo "client: $?"
    fi"""


def run_command(vmlab, script, *args, **options):
    """The words of `vmlab run OPTIONS SCRIPT`."""
    options.setdefault("timeout", 180)
    command = vmlab.command(script, *args, **options)
    at = command.index("--run")
    return [command[0], "run", *command[1:at], command[at + 1]]


def run(vmlab, script, *args, **options):
    command = run_command(vmlab, script, *args, **options)
    done = subprocess.run(command, capture_output=True, text=True, stdin=subprocess.DEVNULL, check=False)
    return Result(done.returncode, done.stdout, done.stderr, vmlab.logs, vmlab.share)


@pytest.mark.parametrize("hosts", [1, 2])
def test_faults_of_a_file_act_from_the_first_message(vmlab, tmp_path, hosts):
    """All messages of node 2 are lost. On two hosts the daemon of host 2 has the fault, for messages to host 1."""
    fault = tmp_path / "faults"
    fault.write_text("# of the client\nfrom=node2 to=node1 drop=100%\n")
    result = run(vmlab, PINGPONG, fault=fault, hosts=hosts).check()
    assert "Failed status transport retry counter exceeded (12)" in result.text(2)
    assert "client: 1" in result.text(2)
    assert f"with the faults of {fault}" in result.stderr
    assert "(kernel 6.1, driver pvrdma, virtio-net-pci, " in result.stderr
    assert ", KVM)" in result.stderr or ", TCG: " in result.stderr


# --- modules and libraries of the user ------------------------------------------------------------

CLIENT = """
    #include <linux/module.h>
    #include <rdma/ib_verbs.h>
    static int add_one(struct ib_device *device) { pr_info("client sees %s\\n", dev_name(&device->dev)); return 0; }
    static void remove_one(struct ib_device *device, void *data) { }
    static struct ib_client client = { .name = "client", .add = add_one, .remove = remove_one };
    static int __init start(void) { return ib_register_client(&client); }
    static void __exit stop(void) { ib_unregister_client(&client); }
    module_init(start);
    module_exit(stop);
    MODULE_LICENSE("GPL");
    """


def build(*words):
    return subprocess.run([ROOT / "scripts" / words[0], *words[1:]], capture_output=True, text=True, check=True).stdout.split()[-1]


def test_module_and_rdma_core_of_the_user(vmlab, tmp_path):
    """A kernel client of verbs from source, the driver as a file, and another libibverbs, with our provider built into it."""
    source = tmp_path / "client"
    source.mkdir()
    (source / "Kbuild").write_text("obj-m := client.o\n")
    (source / "client.c").write_text(CLIENT)
    driver = build("build/module", "6.1")
    tree = build("fetch/rdma-core")
    result = run(vmlab, """
        dmesg | grep -o 'client sees .*'
        readlink /usr/lib/x86_64-linux-gnu/libibverbs.so.1
        ls /etc/libibverbs.d | grep pvrdma
        """ + PINGPONG, module=[driver, source], rdma_core=tree).check()
    for node in (1, 2):
        assert result.nodes[node][:3] == ["client sees pvrdma0", "libibverbs.so.1.14.56.1", "pvrdma.driver"]
    assert "iters in" in result.text(2)
    (source / "client.c").write_text("not C\n")
    broken = run(vmlab, "true", module=source, driver="none")
    assert broken.status == 2
    assert f"{source} does not build for kernel 6.1, see " in broken.error
    assert "client.c:1:1: error: " in broken.stderr


# --- --reuse --------------------------------------------------------------------------------------

def lab(*words):
    return subprocess.run([VMLAB, *words], capture_output=True, text=True, stdin=subprocess.DEVNULL, check=False)


class Reuse:
    """Runs with --reuse. No other test has VMs of this kernel parameter."""

    def __init__(self, vmlab, name):
        self.vmlab = vmlab
        self.options = {"append": f"test={name}-{os.getpid()}", "idle_timeout": 300}
        self.number = None

    def command(self, script, **options):
        command = run_command(self.vmlab, script, "--reuse", **self.options, **options)
        at = command.index("--share")
        return command[:at] + command[at + 2:]

    def __call__(self, script, **options):
        done = subprocess.run(self.command(script, **options), capture_output=True, text=True, stdin=subprocess.DEVNULL, check=False)
        result = Result(done.returncode, done.stdout, done.stderr, self.vmlab.logs, self.vmlab.share)
        self.number = used(result.stderr) or self.number
        return result


def used(stderr):
    """The number of the lab whose VMs a run has used again."""
    found = re.search(r"using the VMs of lab (\d+)", stderr)
    return found and found[1]


def is_kept(number):
    return any(line.split()[0] == number for line in lab("list").stdout.splitlines())


@pytest.fixture
def reuse(vmlab, request):
    made = Reuse(vmlab, request.node.name)
    yield made
    if made.number and is_kept(made.number):
        assert lab("stop", made.number).returncode == 0


CLEAN = """
    echo "$(ls -A /tmp $SHARE | wc -w) $(pgrep -c sleep) $RESTARTED"
    barrier seen
    touch /tmp/left $SHARE/left-$NODE
    sleep 1000 & setsid sleep 1000 &
    """


def test_vms_are_used_again_after_good_and_bad_runs(reuse, tmp_path):
    """Each run finds nothing of the one before: no file in /tmp and in the share, no process, no fault."""
    first = reuse(CLEAN).check()
    assert not used(first.stderr)
    assert reuse(CLEAN).check().nodes == first.nodes == {1: ["2 0 0"], 2: ["2 0 0"]}
    lab_number = reuse.number
    assert lab_number

    failed = reuse("[ $NODE = 1 ] || exit 7; sleep 1000")
    assert (failed.status, failed.error) == (1, "node2: its script ended with status 7")
    late = reuse("sleep 1000", timeout=1)
    assert late.status == 1 and late.error.startswith("the run took longer than 1 s (--timeout): node1 running")
    with subprocess.Popen(reuse.command("echo up; sleep 1000"), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as child:
        assert child.stdout.readline().endswith("| up\n")
        child.send_signal(signal.SIGINT)
        assert child.wait(20) == 128 + signal.SIGINT
    assert reuse(CLEAN).check().nodes == first.nodes

    fault = tmp_path / "faults"
    fault.write_text("drop=100%\n")
    assert "client: 1" in reuse(PINGPONG, fault=fault).text(2)
    fault.write_text("drop=2\n")
    wrong = reuse(PINGPONG, fault=fault)
    assert wrong.status == 2 and "drop '2' is not a percentage" in wrong.error
    assert "iters in" in reuse(PINGPONG).check().text(2)
    assert "hello" in (reuse("echo hello").check().log("node1.out"))

    assert reuse.number == lab_number
    listed = next(line for line in lab("list").stdout.splitlines() if line.startswith(f"{lab_number} "))
    assert re.fullmatch(r"\d+  idle for \d+ s  runs 10  2 nodes, kernel 6.1, driver pvrdma  logs .*", listed)
    stopped = lab("stop", lab_number)
    assert (stopped.returncode, stopped.stderr) == (0, f"vmlab: lab {lab_number} is stopped\n")
    assert not is_kept(lab_number)
    assert wait_for(lambda: not pathlib.Path(f"/proc/{lab_number}").exists(), 20)  # until init has its status
    assert not list(pathlib.Path("/tmp").glob(f"vmlab-{lab_number}-*"))


def test_replaced_node_is_kept_and_a_killed_one_ends_the_lab(reuse):
    reuse.options["driver"] = "none"
    replace = """
        echo "restarted $RESTARTED"
        [ $NODE = 2 ] && [ $RESTARTED = 0 ] && sleep 1000
        [ $NODE = 2 ] || { sleep 1; labctl kill-node 2; labctl start-node 2; }
        barrier both"""
    assert reuse(replace).check().nodes == {1: ["restarted 0"], 2: ["restarted 0", "restarted 1"]}
    assert reuse("echo $RESTARTED").check().nodes == {1: ["0"], 2: ["0"]}
    ended = reuse("[ $NODE = 1 ] && { sleep 1; labctl kill-node 2; } || sleep 1000").check()
    assert "the VMs end: node2 was killed and not started again" in ended.stderr
    assert wait_for(lambda: not pathlib.Path(f"/proc/{reuse.number}").exists(), 20)


def test_kernel_warning_ends_the_lab(reuse):
    reuse.options["driver"], reuse.options["nodes"] = "none", 1
    reuse("true").check()
    result = reuse("echo '<4>WARNING: CPU: 0 PID: 1 at drivers/some.c:1 pvrdma_probe+0x1/0x2' >/dev/kmsg; sleep 1000")
    assert result.status == 1
    assert result.error.startswith("node1: its kernel says: WARNING: CPU: 0 PID: 1 at drivers/some.c")
    assert wait_for(lambda: not pathlib.Path(f"/proc/{reuse.number}").exists(), 20)


def test_second_run_at_the_same_time_has_vms_of_its_own(reuse):
    reuse.options["driver"], reuse.options["nodes"] = "none", 1
    with subprocess.Popen(reuse.command("echo up; until [ -e $SHARE/over ]; do sleep 0.1; done"), stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, text=True) as child:
        assert child.stdout.readline() == "node1| up\n"
        other = reuse("echo other").check()
        number = re.search(r"lab (\d+) is in use by another run", other.stderr)[1]
        assert other.nodes == {1: ["other"]} and not used(other.stderr)
        assert lab("stop", number).returncode == 0
        _, stderr = child.communicate(timeout=20)
        assert child.returncode == 1
        assert stderr.endswith("vmlab: error: the lab was stopped\n")
    reuse("true").check()
    assert reuse.number and reuse.number != number


def test_vms_end_when_idle_and_with_their_process(reuse):
    reuse.options |= {"driver": "none", "nodes": 1, "idle_timeout": 1}
    reuse("true").check()
    assert wait_for(lambda: not kept_with(reuse), 20)
    reuse.options["idle_timeout"] = 300
    reuse("true").check()
    number, = kept_with(reuse)
    qemus = pathlib.Path(f"/proc/{number}/task/{number}/children").read_text().split()
    assert qemus
    os.kill(int(number), signal.SIGKILL)
    assert wait_for(lambda: not any(pathlib.Path(f"/proc/{pid}").exists() for pid in qemus), 20)
    assert not kept_with(reuse)


def kept_with(reuse):
    """The numbers of labs whose QEMU has the kernel parameter of this test."""
    found = []
    for line in lab("list").stdout.splitlines():
        number = line.split()[0]
        with contextlib.suppress(OSError):  # it ends at this moment
            children = pathlib.Path(f"/proc/{number}/task/{number}/children").read_text().split()
            lines = [pathlib.Path(f"/proc/{pid}/cmdline").read_bytes() for pid in children]
            if any(reuse.options["append"].encode() in text for text in lines):
                found.append(number)
    return found
