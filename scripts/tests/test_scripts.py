# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
"""What the scripts promise to people and to each other, without downloads."""

import os
import subprocess
import tempfile
import textwrap
from pathlib import Path

import pytest
from conftest import SCRIPTS

OURS = ["check", "demo", "deps",
        *(f"bench/{name}" for name in ("apps", "directory", "guest", "hosts", "native", "provider", "report", "vm")),
        *(f"build/{name}" for name in ("debug-kernel", "earlier", "guest-modules", "guest-tests", "host", "module", "provider", "user-module", "user-rdma-core")),
         *(f"checks/{name}" for name in ("abi", "analysis", "checkpatch", "fuzz", "instructions", "layers", "names", "prose", "provider",
                                          "same-code", "style")),
        *(f"fuzz/{name}" for name in ("coverage", "minimise")),
        *(f"fetch/{name}" for name in ("all", "arm64-kernel", "checkpatch", "gcc", "kernel", "libvfio-user", "openmpi", "qemu", "rdma-core", "vmw-pvrdma"))]


def run(*argv, user=None, **env):
    return subprocess.run([str(word) for word in argv], env={**os.environ, **env}, text=True, stdin=subprocess.DEVNULL,
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=60, user=user)


def program(path, text):
    path.write_text("#!/bin/bash\n" + textwrap.dedent(text))
    path.chmod(0o755)
    return path


def with_library(tmp_path, body):
    """Run BODY with lib/common.sh and a cache of its own."""
    script = program(tmp_path / "script", f"set -euo pipefail\n. {SCRIPTS}/lib/common.sh\n" + textwrap.dedent(body))
    return run(script, PVRDMA_CACHE=str(tmp_path / "cache"))


@pytest.mark.parametrize("name", OURS)
def test_help_says_what_it_is_for(name):
    done = run(SCRIPTS / name, "--help")
    assert done.returncode == 0
    assert name in done.stdout.splitlines()[0]
    assert len(done.stdout.splitlines()) >= 3


@pytest.mark.parametrize("name", OURS)
def test_unknown_option_is_one_clear_line(name):
    done = run(SCRIPTS / name, "--no-such-option")
    assert done.returncode != 0
    assert "--no-such-option" in done.stderr.splitlines()[-1]
    assert done.stdout == ""


def test_full_cache_is_named_before_a_download(tmp_path):
    program(tmp_path / "df", "printf '%s\\n' Avail 255\n")
    done = with_library(tmp_path, f"""
        PATH={tmp_path}:$PATH
        fill() {{ echo "it was called"; }}
        cached thing fill
        """)
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.endswith(f"the cache {tmp_path}/cache is full, it has 255 MiB left: free 3 GiB there, "
                                "or set PVRDMA_CACHE to another folder\n")


def test_cache_that_cannot_be_made_is_named(tmp_path):
    (tmp_path / "cache").touch()
    done = with_library(tmp_path, "cached thing false")
    assert done.returncode == 1
    assert done.stderr.endswith(f"cannot write to the cache {tmp_path}/cache: set PVRDMA_CACHE to another folder\n")


def test_fetch_kernel_names_the_versions_it_knows():
    done = run(SCRIPTS / "fetch/kernel", "5.10")
    assert done.returncode != 0
    assert "5.10" in done.stderr and "6.1, 6.12, 7.2, 6.1-debug or 6.1-arm64" in done.stderr


# --- fetch/qemu

FAKE_QEMU = """\
case $1 in
--version) echo "QEMU emulator version {version} (Debian)" ;;
-device) printf 'name "%s", bus PCI\\n' {devices} ;;
-object) echo memory-backend-memfd ;;
esac
"""
DEVICES = "vfio-user-pci virtio-net-pci virtio-blk-pci virtio-9p-pci virtio-serial-pci vmxnet3"


@pytest.mark.parametrize("version, devices, words", [
    pytest.param("7.2.18", DEVICES, ["7.2.18", "10.1", "unset QEMU"], id="too old"),
    pytest.param("10.2.0", DEVICES.split(maxsplit=1)[1], ["vfio-user-pci"], id="without vfio-user"),
    pytest.param(None, "", ["does not run as a QEMU"], id="no program"),
])
def test_bad_qemu_is_refused_in_one_line(tmp_path, version, devices, words):
    qemu = tmp_path / "qemu"
    if version:
        program(qemu, FAKE_QEMU.format(version=version, devices=devices))
    done = run(SCRIPTS / "fetch/qemu", QEMU=str(qemu))
    assert done.returncode != 0
    assert len(done.stderr.splitlines()) == 1
    assert all(word in done.stderr for word in words)


@pytest.mark.parametrize("version", ["10.1", "10.1.0", "10.10.2", "11.1.3"])
def test_new_qemu_named_by_the_user_is_used(tmp_path, version):
    qemu = program(tmp_path / "qemu", FAKE_QEMU.format(version=version, devices=DEVICES))
    done = run(SCRIPTS / "fetch/qemu", QEMU=str(qemu))
    assert (done.returncode, done.stdout.strip()) == (0, str(qemu)), done.stderr


# --- deps

def deps(tmp_path, packages, path, *options, user=None):
    """scripts/deps with another package list, and no command beyond those in PATH."""
    scripts = tmp_path / "scripts"
    (scripts / "lib").mkdir(parents=True)
    for name in ("deps", "lib/common.sh"):
        (scripts / name).write_bytes((SCRIPTS / name).read_bytes())
    (scripts / "packages.txt").write_text(packages)
    (scripts / "deps").chmod(0o755)
    return run(scripts / "deps", *options, user=user, PATH=path)


def test_deps_with_everything_there_is_silent(tmp_path):
    done = deps(tmp_path, "# a comment\n\nbase-files # for all\n", os.environ["PATH"])
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def test_deps_check_names_what_is_missing_and_the_command(tmp_path):
    done = deps(tmp_path, "base-files\npvr-no-such-package\n", os.environ["PATH"], "--check")
    assert done.returncode != 0
    assert done.stderr.endswith("apt-get install --no-install-recommends --yes pvr-no-such-package\n")


def test_deps_knows_of_a_package_that_only_one_target_needs(tmp_path):
    for also, status in (("base-files", 0), ("pvr-no-such-package", 1)):
        folder = tmp_path / also
        folder.mkdir()
        done = deps(folder, "base-files\n", os.environ["PATH"], "--check", "--also", also)
        assert done.returncode == status and (also in done.stderr) == (status != 0)


def test_deps_reads_the_lists_when_apt_lacks_a_package(tmp_path):
    calls = tmp_path / "calls"
    fakes = tmp_path / "bin"
    fakes.mkdir()
    program(fakes / "apt-get", f'echo "$@" >>{calls}; [[ $* != *install* ]] || (( $(grep -c install {calls}) > 1 ))\n')
    program(fakes / "sudo", '[[ $1 != -n ]] || shift; exec "$@"\n')
    done = deps(tmp_path, "pvr-no-such-package\n", f"{fakes}:{os.environ['PATH']}")
    assert done.returncode == 0, done.stderr
    assert [" ".join(line.split()[3:4]) for line in calls.read_text().splitlines()] == ["install", "update", "install"]


def test_deps_without_rights_says_the_command():
    nobody = 65534 if os.geteuid() == 0 else None
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        folder.chmod(0o755)
        program(folder / "sudo", "exit 1\n")
        done = deps(folder, "pvr-no-such-package\n", f"{folder}:{os.environ['PATH']}", user=nobody)
    assert done.returncode != 0
    assert done.stderr.endswith("Run as root: apt-get install --no-install-recommends --yes pvr-no-such-package\n")


# --- lib/common.sh

def test_cached_makes_once_for_many_at_a_time(tmp_path):
    done = with_library(tmp_path, """\
        make() { sleep 0.3; echo made >>"$pvr_cache/log"; touch "$1/file"; }
        mkdir -p "$pvr_cache"
        for n in 1 2 3 4; do (cached thing/key make; [[ -e $result/file ]]) & done
        wait
        cached thing/key make
        cat "$pvr_cache/log"
        """)
    assert done.stdout == "made\n", done.stderr


def test_cached_leaves_nothing_when_making_fails(tmp_path):
    done = with_library(tmp_path, """\
        make() { touch "$1/half"; false; touch "$1/whole"; }
        cached thing/key make
        echo unreached
        """)
    assert done.returncode != 0
    assert "unreached" not in done.stdout
    assert list((tmp_path / "cache" / "thing").iterdir()) == []


def test_copy_keeps_the_time_of_what_did_not_change(tmp_path):
    done = with_library(tmp_path, """\
        cd "$(dirname "$0")"
        mkdir -p in/a out
        echo 1 >in/a/same.c; echo 1 >in/a/changed.c; echo 1 >in/a/gone.c
        cd in
        copy_changed ../out a
        touch -d @1 ../out/a/*
        echo 2 >a/changed.c; rm a/gone.c
        copy_changed ../out a
        prune_copy ../out a
        cd ../out/a
        stat -c '%n %Y' * | sed 's/ [0-9][0-9][0-9]*/ new/'
        """)
    assert done.stdout == "changed.c new\nsame.c 1\n", done.stderr


def test_mirror_can_be_named(tmp_path):
    script = program(tmp_path / "script", f"set -euo pipefail\n. {SCRIPTS}/lib/common.sh\nmirror\n")
    assert run(script, PVRDMA_MIRROR="http://mirror.example/debian").stdout == "http://mirror.example/debian\n"
