# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
"""bench/guest on outputs made up for it."""

import os
import subprocess

import pytest
from bench_lib import table
from bench_lib.guest import main, plan, rows, syscalls
from bench_lib.vm.output import Unreadable

SERVER = "node1 port 18600: ...\ncost messages=100 instructions=50.0 user_instructions=40.0 accesses=0 interrupts=20 halts=10 empty_polls=3 program_instructions=0.0\n"
CLIENT = "cost messages=100 instructions=10000.0 user_instructions=9000.0 accesses=100 interrupts=0 halts=0 empty_polls=7 program_instructions=20.5\n"


def counts(instructions, accesses=0.0, syscalls=0.0):
    guests = {"instructions": instructions, "user_instructions": instructions - 10, "accesses": accesses, "interrupts": 0.0, "halts": 0.0}
    calls = None if syscalls is None else {rows.PVRDMAD: syscalls, rows.QEMU: 0.0}
    return rows.Counts(guests=guests, client=guests, program=20, syscalls=calls)


def test_counts_are_per_message_of_both_guests():
    found = plan.read((SERVER, CLIENT), {rows.PVRDMAD: 300, rows.QEMU: 100})
    assert found.guests == {"instructions": 100.5, "user_instructions": 90.4, "accesses": 1.0, "interrupts": 0.2, "halts": 0.1}
    assert found.client["instructions"] == 100 and found.syscalls == {rows.PVRDMAD: 3, rows.QEMU: 1}
    assert found.program == 20.5


def test_program_without_counts_is_an_error():
    with pytest.raises(Unreadable, match="pvr_cost printed no counts"):
        plan.read((SERVER, "pvr_cost: no case is called x\n"), None)


def test_rows_compare_with_soft_roce():
    found = {row["name"]: row for row in rows.entries("write_stream", {"pvrdma": counts(100, 0), "rxe": counts(50000, 2)})}
    assert found["guest.insn.write_stream"]["ratio"] == 100 / 50000
    assert found["guest.accesses.write_stream"]["peer_value"] == 2
    assert found["guest.insn_post_poll.write_stream"]["value"] == 70
    assert set(found) == {f"guest.{kind}.write_stream" for kind in rows.KINDS}


def test_line_of_a_row_whose_peer_is_zero_has_no_ratio():
    found = rows.entries("write_stream", {"pvrdma": counts(100, syscalls=3), "rxe": counts(50000)})
    line = next(table.line(row) for row in found if row["name"] == "guest.syscalls_pvrdmad.write_stream")
    assert "Soft-RoCE 0" in line and " x" not in line


def test_rows_of_system_calls_are_left_out_if_they_were_not_counted():
    found = rows.entries("write_single", {"pvrdma": counts(100, syscalls=None), "rxe": counts(5000, syscalls=None)})
    assert "guest.syscalls.write_single" not in [row["name"] for row in found]


def test_model_adds_the_cost_of_each_count():
    plain, trapped = (rows.model(counts(1000, accesses), "rxe") for accesses in (0, 1))
    assert plain == pytest.approx(1000 * rows.INSTRUCTION * 1e-9)
    assert trapped - plain == pytest.approx(rows.EXIT * 1e-9)
    assert rows.model(counts(1000), "pvrdma") - plain == pytest.approx(rows.DEVICE * 1e-9)


def test_other_processes_of_the_lab_are_not_counted():
    with subprocess.Popen(["/bin/sleep", "60"]) as child:
        try:
            assert child.pid in main._children(os.getpid())
            assert main._group(child.pid) is None
        finally:
            child.kill()


def test_system_calls_of_another_process_are_counted():
    with subprocess.Popen(["/bin/sh", "-c", "read x; for i in 1 2 3; do kill -0 $$; done; read x"], stdin=subprocess.PIPE) as child:
        try:
            counter = syscalls.Counter({child.pid: "sh"})
        except syscalls.CannotCount as why:
            child.stdin.close()
            pytest.skip(str(why))
        child.stdin.write(b"\n")
        child.stdin.close()
        child.wait()
        assert counter.read()["sh"] >= 4
        counter.close()
