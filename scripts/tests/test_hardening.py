# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
"""pvrdmad and pvrdmactl of build/host have the marks of each hardening option of meson.build."""

import re
import subprocess

import pytest
from conftest import ROOT

PROGRAMS = ["pvrdmad", "pvrdmactl"]


def readelf(program, *options):
    path = ROOT / "build/host" / program
    assert path.exists(), f"there is no {path}: scripts/build/host makes it"
    return subprocess.run(["readelf", "-W", *options, path], capture_output=True, text=True, check=True).stdout


def arguments(program, source):
    """The compiler's arguments for `source` of `program`."""
    lines = (ROOT / "build/host/compile_commands.json").read_text().splitlines()
    command, = (line for line in lines if '"command"' in line and f"{program}.p/" in line and source in line)
    return command.split()


@pytest.mark.parametrize("program", PROGRAMS)
def test_program_is_position_independent(program):
    assert re.search(r"Type:\s+DYN \(Position-Independent Executable", readelf(program, "-h"))
    assert re.search(r"\(FLAGS_1\).* PIE", readelf(program, "-d"))


@pytest.mark.parametrize("program", PROGRAMS)
def test_relocations_are_read_only(program):
    assert "GNU_RELRO" in readelf(program, "-l")
    assert re.search(r"\(FLAGS(_1)?\).* (BIND_)?NOW", readelf(program, "-d"))


@pytest.mark.parametrize("program", PROGRAMS)
def test_no_memory_is_writable_and_executable(program):
    stack = re.search(r"GNU_STACK.* (RWE?) ", readelf(program, "-l"))
    assert stack and stack[1] == "RW"
    assert not re.search(r"LOAD .* RWE ", readelf(program, "-l"))


@pytest.mark.parametrize("program", PROGRAMS)
def test_stack_is_protected(program):
    assert "__stack_chk_fail" in readelf(program, "--dyn-syms")


@pytest.mark.parametrize("program", PROGRAMS)
def test_library_calls_are_fortified(program):
    """Level 3 has no mark of its own."""
    assert re.search(r"__\w+_chk@", readelf(program, "--dyn-syms").replace("__stack_chk_fail", ""))


@pytest.mark.parametrize("program, source", [("pvrdmad", "daemon.c"), ("pvrdmactl", "ctl.c")])
def test_compiler_is_told(program, source):
    """Options that leave no mark."""
    told = arguments(program, f"daemon_{source}")
    assert "-D_FORTIFY_SOURCE=3" in told
    assert {"-fstack-clash-protection", "-fstack-protector-strong"} <= set(told)
    assert "-ftrivial-auto-var-init=zero" in told
