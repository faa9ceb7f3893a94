# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
"""-device pvrdma in the QEMU of `make qemu`, without a guest: options, migration blockers, and the state in a file."""

import contextlib
import pathlib
import subprocess
import tempfile
from types import SimpleNamespace

import pytest
from daemon_process import PVRDMAD, Daemon, wait_until
from steps import path_from
from vmlab_lib.migration import Migration
from vmlab_lib.qmp import QmpError, connect

pytestmark = [pytest.mark.slow, pytest.mark.long,
              pytest.mark.skipif(not pathlib.Path(PVRDMAD).exists(), reason=f"there is no {PVRDMAD}: run `make`")]

MEMFD = "memory-backend-memfd,id=mem,size=64M,share=on"


@pytest.fixture(scope="session")
def program():
    return path_from("build/qemu")


@pytest.fixture
def folder():
    """A short path, as a socket's has at most 107 characters."""
    with tempfile.TemporaryDirectory(prefix="pvr-") as name:
        yield pathlib.Path(name)


def daemon_in(folder):
    folder.mkdir()
    daemon = Daemon(folder, adapters=1)
    yield daemon
    assert daemon.stop() == 0, daemon.log()


@pytest.fixture
def daemon(folder):
    yield from daemon_in(folder / "host1")


@pytest.fixture
def other(folder):
    """Of another host: with the same adapter."""
    yield from daemon_in(folder / "host2")


@pytest.fixture
def launch(program, folder):
    """Start a QEMU whose guest has no system: launch(device, RAM, options) is what vmlab's Migration takes."""
    with contextlib.ExitStack() as stack:
        numbers = iter(range(1, 9))

        def run(device, memory=MEMFD, options=()):
            control = folder / f"qmp{next(numbers)}"
            argv = [program, "-accel", "tcg", "-nodefaults", "-no-user-config", "-display", "none", "-m", "64M",
                    "-machine", "q35,memory-backend=mem", "-object", memory, "-qmp", f"unix:{control},server=on,wait=off",
                    "-device", device, *options]
            with open(folder / "qemu.log", "ab") as log:
                child = subprocess.Popen(argv, stdin=subprocess.DEVNULL, stdout=log, stderr=log)
            stack.callback(child.wait)
            stack.callback(child.kill)
            return SimpleNamespace(child=child, vm=SimpleNamespace(qmp=control, incoming=f"unix:{folder}/incoming"),
                                   stderr_text=(folder / "qemu.log").read_text)
        yield run


@pytest.fixture
def start(launch):
    """start(device, RAM, options) is the control client of a QEMU."""
    with contextlib.ExitStack() as stack:
        def run(*args, **kwargs):
            machine = launch(*args, **kwargs)
            try:
                return stack.enter_context(connect(machine.vm.qmp, machine.child))
            except ChildProcessError as err:
                raise ChildProcessError(machine.stderr_text()) from err
        yield run


def device_of(daemon, more=""):
    return f"pvrdma,id=adapter,path={daemon.socket()}{more}"


def blockers(qemu):
    return qemu.execute("query-migrate").get("blocked-reasons", [])


def refused(start, *args, **kwargs):
    """Return: the message of a QEMU that does not start."""
    with pytest.raises(ChildProcessError) as failure:
        start(*args, **kwargs)
    return str(failure.value)


def test_path_is_all_that_the_device_needs(start, daemon):
    qemu = start(device_of(daemon))
    assert qemu.execute("qom-get", path="/machine/peripheral/adapter", property="path") == str(daemon.socket(1))
    assert daemon.query("adapters")["adapters"][0]["attached"]


def test_device_without_path(start):
    assert "pvrdma needs path=, the socket of the adapter" in refused(start, "pvrdma")


def test_device_without_daemon(start, folder):
    assert "Failed to connect" in refused(start, f"pvrdma,path={folder / 'nothing'}")


@pytest.mark.parametrize("memory", ["memory-backend-ram,id=mem,size=64M", "memory-backend-memfd,id=mem,size=64M,share=off"])
def test_private_ram_blocks_migration(start, daemon, memory):
    reason, = blockers(start(device_of(daemon), memory))
    assert reason.startswith("pvrdma needs shared RAM: -object memory-backend-memfd,share=on")


def test_migration_can_be_switched_off(start, daemon):
    assert blockers(start(device_of(daemon, ",migrate=off"))) == ["pvrdma: the device has migrate=off"]


def test_migration_that_is_required(start, daemon):
    assert "pvrdma needs shared RAM" in refused(start, device_of(daemon, ",migrate=on"), "memory-backend-ram,id=mem,size=64M")


def test_device_can_be_unplugged_with_its_blocker(start, program, folder):
    """With MSI: QEMU aborts when it unplugs a vfio-user device with MSI-X."""
    (folder / "msi").mkdir()
    daemon = Daemon(folder / "msi", adapters=1, settings=",interrupts=msi")
    try:
        qemu = start("pcie-root-port,id=spare,chassis=1,addr=5.0", options=["-S"])
        for _ in range(2):
            qemu.execute("device_add", driver="pvrdma", id="adapter", bus="spare", path=str(daemon.socket(1)), migrate="off")
            assert len(blockers(qemu)) == 1
            # Without a guest the slot is emptied by a reset.
            qemu.execute("device_del", id="adapter")
            qemu.execute("system_reset")
            qemu.wait_for("DEVICE_DELETED", "adapter")
            assert not blockers(qemu)
    finally:
        daemon.stop()


# ----------------------------------------------------------------------- the state

def migrate(qemu, uri):
    """Return: the result of query-migrate at the end."""
    qemu.execute("migrate", uri=uri)
    state = {}

    def is_over():
        state.update(qemu.execute("query-migrate"))
        return state["status"] in ("completed", "failed", "cancelled")
    wait_until(is_over, "end of the migration")
    return state


def is_running(qemu):
    return qemu.execute("query-status")["status"] == "running"


def test_device_can_be_migrated(start, daemon):
    assert not blockers(start(device_of(daemon)))


def test_device_without_driver_moves(start, daemon, other, folder):
    """There and back; the guest runs the firmware."""
    uri = f"unix:{folder}/incoming"
    source = start(device_of(daemon))
    for here, there in ((daemon, other), (other, daemon)):
        target = start(device_of(there), options=["-incoming", uri])
        assert migrate(source, uri)["status"] == "completed", (folder / "qemu.log").read_text()
        wait_until(lambda vm=target: is_running(vm), "a running VM")
        source.execute("quit")
        source = target
        wait_until(lambda host=here: not host.query("adapters")["adapters"][0]["attached"], "end of the source")


def test_device_is_restored_from_a_file(start, daemon, other, folder):
    source = start(device_of(daemon))
    assert migrate(source, f"file:{folder}/state")["status"] == "completed", (folder / "qemu.log").read_text()
    target = start(device_of(other), options=["-incoming", f"file:{folder}/state"])
    wait_until(lambda: is_running(target), "a running VM")


def test_paused_vm_is_saved(start, daemon, folder):
    """RAM is sent once: the device does not write while the VM is stopped."""
    source = start(device_of(daemon))
    source.execute("stop")
    state = migrate(source, f"file:{folder}/state")
    assert state["status"] == "completed", (folder / "qemu.log").read_text()
    assert (folder / "state").stat().st_size < 128 << 20


def test_migration_that_is_canceled(start, daemon, other, folder):
    """The destination never runs, and the source goes on."""
    source = start(device_of(daemon))
    source.execute("migrate-set-parameters", **{"max-bandwidth": 4096})
    target = start(device_of(other), options=["-incoming", f"unix:{folder}/incoming"])
    source.execute("migrate", uri=f"unix:{folder}/incoming")
    wait_until(lambda: source.execute("query-migrate")["status"] == "active", "a migration")
    source.execute("migrate_cancel")
    wait_until(lambda: source.execute("query-migrate")["status"] == "cancelled", "its end")
    assert is_running(source)
    assert migrate(source, f"file:{folder}/state")["status"] == "completed"
    assert target


def test_destination_that_refuses_the_state(launch, daemon, folder):
    """Its adapter has another hardware version. The source must hear of it, or the VM would run at no host."""
    (folder / "differs").mkdir()
    other = Daemon(folder / "differs", adapters=1, settings=",hwversion=13")
    try:
        source = launch(device_of(daemon))
        target = launch(device_of(other), options=["-incoming", source.vm.incoming])
        migration = Migration(source, target)
        wait_until(lambda: migration.over, "end of the migration")
        assert migration.failure
        assert "the adapter cannot be loaded" in target.stderr_text()
        with connect(source.vm.qmp, source.child) as qemu:
            wait_until(lambda: is_running(qemu), "a VM that goes on at its source")
    finally:
        other.stop()


@pytest.mark.parametrize("capability", ["postcopy-ram", "background-snapshot"])
def test_mode_without_final_ram_is_refused(start, daemon, folder, capability):
    qemu = start(device_of(daemon))
    qemu.execute("migrate-set-capabilities", capabilities=[{"capability": capability, "state": True}])
    with pytest.raises(QmpError, match=f"disable {capability}"):
        qemu.execute("migrate", uri=f"file:{folder}/state")
