# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
"""Several instances of pvrdmad on one host, each for some fabrics: pvrdmactl finds them, and libvirt's hook chooses."""

import json
import os
import subprocess

import pytest

from daemon_process import PATIENCE, PVRDMACTL, Daemon, Successor, mac, run_pvrdmad
from domains import DOMAIN, MAC

FABRICS = {"": None, "blue": "blue, sky", "red": "red"}
FOLDERS = {"": "pvrdma", "blue": "pvrdma-blue", "red": "pvrdma-red"}


class Host:
    """/etc/pvrdma and /run of a host below `root`, and its instances."""

    def __init__(self, root):
        self.root, self.running = root, {}
        (root / "etc/pvrdma").mkdir(parents=True)

    def folder(self, name):
        return self.root / "run" / FOLDERS[name]

    def config(self, name):
        return self.root / "etc/pvrdma" / (f"pvrdmad@{name}.conf" if name else "pvrdmad.conf")

    def configure(self, name, **settings):
        self.config(name).write_text("".join(f"{key} = {value}\n" for key, value in settings.items()))

    def start(self, name):
        self.folder(name).mkdir(parents=True, exist_ok=True)
        self.running[name] = Daemon(self.folder(name), adapters=0, args=["--config", self.config(name)])

    def ctl(self, *args, **kwargs):
        env = {key: value for key, value in os.environ.items() if key != "PVRDMA_CONTROL"}
        return subprocess.run([PVRDMACTL, *args], capture_output=True, text=True, timeout=PATIENCE, check=False,
                              env={**env, "PVRDMA_SYSROOT": str(self.root)}, **kwargs)

    def must(self, *args, **kwargs):
        done = self.ctl(*args, **kwargs)
        assert done.returncode == 0, done.stderr
        return done.stdout

    def adapters(self):
        reply = json.loads(self.must("--all", "--json", "adapters"))
        return {service: [row["name"] for row in part["adapters"]] for service, part in reply.items()}

    def domain(self, name, fabric, folder):
        adapter = f"name={name},socket={self.folder(folder)}/{name}.sock,mac={MAC},fabric={fabric}"
        return self.must("domain-xml", "--vm", "-", adapter, input=DOMAIN)

    def hook(self, text, operation="prepare", step="begin"):
        return self.ctl("libvirt-hook", "guest", operation, step, "-", input=text)


@pytest.fixture
def host(tmp_path):
    made = Host(tmp_path)
    for name, fabrics in FABRICS.items():
        made.configure(name, **({"fabrics": fabrics} if fabrics else {}))
    try:
        yield made
    finally:
        for daemon in made.running.values():
            assert daemon.stop() == 0


@pytest.fixture
def all_run(host):
    for name in FABRICS:
        host.start(name)
    return host


def test_instance_is_selected_by_its_name(all_run):
    all_run.must("--instance", "red", "add-adapter", f"name=vm,socket={all_run.folder('red')}/vm,mac={mac(1)},fabric=red")
    assert all_run.adapters() == {"pvrdmad": [], "pvrdmad@blue": [], "pvrdmad@red": ["vm"]}
    assert "vm" in all_run.must("--instance", "red", "adapters")
    assert "vm" not in all_run.must("--control", str(all_run.running[""].control), "adapters")


def test_all_prints_each_instance_below_its_name(all_run):
    lines = all_run.must("--all", "workers").splitlines()
    assert [line for line in lines if line.startswith("pvrdmad")] == ["pvrdmad:", "pvrdmad@blue:", "pvrdmad@red:"]


def test_all_upgrades_each_instance(all_run):
    before = {name: daemon.child.pid for name, daemon in all_run.running.items()}
    replies = json.loads(all_run.must("--all", "--json", "upgrade"))
    after = {"": "pvrdmad", "blue": "pvrdmad@blue", "red": "pvrdmad@red"}
    for name, daemon in all_run.running.items():
        reply = replies[after[name]]
        assert reply["changed"] and reply["pid"] != before[name]
        assert daemon.child.wait(PATIENCE) == 0
        daemon.child = Successor(reply["pid"])


def test_instance_that_does_not_run_is_an_error_and_the_others_answer(host):
    host.start("")
    host.start("red")
    done = host.ctl("--all", "version")
    assert done.returncode == 1
    assert [line.split(":")[0] for line in done.stderr.splitlines()] == ["pvrdmactl"]
    assert f"no pvrdmad at {host.folder('blue')}/control" in done.stderr
    assert "'systemctl start pvrdmad@blue'" in done.stderr
    assert "pvrdmad:\n" in done.stdout and "pvrdmad@red:\n" in done.stdout


@pytest.mark.parametrize("args, text", [
    (("--all", "top"), "'top' is for one instance: give --instance NAME instead of --all"),
    (("--all", "remove-adapter", "vm"), "is for one instance"),
    (("--all", "--instance", "red", "adapters"), "give one of --control, --instance and --all"),
    (("--control", "/x", "--all", "adapters"), "give one of --control, --instance and --all"),
    (("--instance", "../red", "adapters"), "instance '../red' has characters other than letters"),
    (("--instance", "green", "adapters"), "/etc/pvrdma/pvrdmad@green.conf"),
    (("--instance", "", "adapters"), "instance"),
])
def test_wrong_choice_of_instances_is_refused(host, args, text):
    done = host.ctl(*args)
    assert (done.returncode, done.stdout) == (2, "")
    line, = done.stderr.splitlines()
    assert text in line


def test_adapter_of_another_fabric_is_refused(all_run):
    for args, fabric in ((("--instance", "red"), "blue"), (("--instance", "red"), "default")):
        done = all_run.ctl(*args, "add-adapter", f"name=vm,socket={all_run.folder('red')}/vm,mac={mac(1)},fabric={fabric}")
        assert done.returncode == 1
        assert f"adapter 'vm' has the fabric '{fabric}', but this pvrdmad serves \"red\"" in done.stderr
    for fabric in ("blue", "sky"):
        all_run.must("--instance", "blue", "add-adapter",
                     f"name={fabric},socket={all_run.folder('blue')}/{fabric},mac={mac(1)},fabric={fabric}")


def test_adapter_of_another_fabric_in_the_file_is_refused(tmp_path):
    config = tmp_path / "conf"
    config.write_text(f"fabrics = red\n[adapter vm]\nsocket = {tmp_path}/vm\nmac = {mac(1)}\n")
    done = run_pvrdmad("--config", config, "--control", tmp_path / "control")
    assert done.returncode == 1
    assert "adapter 'vm' has the fabric 'default', but this pvrdmad serves \"red\"" in done.stderr


@pytest.mark.parametrize("value, text", [("red/blue", "fabric 'red/blue' has characters other than"), ("", "fabrics"),
                                         ("x" * 1024, "fabrics")])
def test_wrong_list_of_fabrics_is_refused(tmp_path, value, text):
    done = run_pvrdmad("--fabrics", value, "--control", tmp_path / "control")
    assert done.returncode == 2
    assert text in done.stderr


def test_hook_chooses_the_instance_of_the_fabric(all_run):
    for fabric, folder, service in (("red", "red", "pvrdmad@red"), ("sky", "blue", "pvrdmad@blue"), ("green", "", "pvrdmad")):
        text = all_run.domain("hooked", fabric, folder)
        done = all_run.hook(text)
        assert (done.returncode, done.stdout) == (0, ""), done.stderr
        assert all_run.adapters() == {**{name: [] for name in ("pvrdmad", "pvrdmad@blue", "pvrdmad@red")}, service: ["hooked"]}
        done = all_run.hook(text, "release", "end")
        assert done.returncode == 0
        assert not any(all_run.adapters().values())


def test_hook_does_not_use_another_instance_if_the_right_one_is_down(host):
    host.start("")
    done = host.hook(host.domain("hooked", "red", "red"))
    assert done.returncode == 1
    assert f"no pvrdmad at {host.folder('red')}/control" in done.stderr
    assert "hooked" not in host.must("--control", str(host.running[""].control), "adapters")


def test_hook_refuses_a_fabric_of_two_instances(all_run):
    all_run.configure("blue", fabrics="blue red")
    done = all_run.hook(all_run.domain("hooked", "red", "red"))
    assert done.returncode == 1
    assert "pvrdmad@blue and pvrdmad@red both list the fabric 'red'" in done.stderr


def test_file_with_an_error_concerns_its_instance_only(all_run):
    all_run.config("blue").write_text("fabrics = blue\nnonsense\n")
    done = all_run.hook(all_run.domain("hooked", "red", "red"))
    assert done.returncode == 0
    assert f"note: {all_run.config('blue')} is left out: " in done.stderr
    done = all_run.hook(all_run.domain("other", "blue", "blue"))
    assert done.returncode == 1
    assert "no instance lists the fabric 'blue', but a configuration file has an error" in done.stderr


def test_hook_finds_an_adapter_of_a_file_in_any_instance(all_run):
    socket = all_run.folder("red") / "fixed.sock"
    all_run.must("--instance", "red", "add-adapter", f"name=fixed,socket={socket},mac={MAC},fabric=red")
    text = all_run.must("--instance", "red", "domain-xml", "--vm", "-", "fixed", input=DOMAIN)
    assert all_run.hook(text).returncode == 0
    all_run.must("--instance", "red", "remove-adapter", "fixed")
    done = all_run.hook(text)
    assert done.returncode == 1
    assert "pvrdmad has no adapter 'fixed'" in done.stderr


def test_metrics_targets_are_those_of_the_files(host):
    host.configure("", metrics="127.0.0.1:9471")
    host.configure("red", fabrics="red", metrics="[::1]:9472")
    host.configure("blue", fabrics="blue", metrics=f"unix:{host.root}/metrics")
    done = host.ctl("metrics-targets")
    assert done.returncode == 0
    assert json.loads(done.stdout) == [
        {"targets": ["127.0.0.1:9471"], "labels": {"service": "pvrdmad"}},
        {"targets": ["[::1]:9472"], "labels": {"service": "pvrdmad@red"}},
    ]
    assert done.stderr == 'pvrdmactl: note: pvrdmad@blue has no "metrics" = ADDRESS:PORT\n'
