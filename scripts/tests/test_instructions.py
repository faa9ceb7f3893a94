# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
"""The guard of instruction counts: it can fail, says why, and never passes without having compared."""

import json
import re
import textwrap

import pytest
from conftest import ROOT, load


from bench_lib import insn
from bench_lib.baseline import Baseline, as_json, compare

BASELINE = ROOT / "tests" / "bench" / "instructions.json"
# What scripts/packages.txt installs on the machine that CI runs on.
CI_KEY = "gcc 12.2.0 x86_64"

CALLGRIND = textwrap.dedent("""\
    version: 1
    desc: Timerange: Basic block 0 - 7
    desc: Trigger: Client Request: write.8 10
    positions: line
    events: Ir
    ob=(1) /build/bench_insn
    fl=(1) /src/qemu-device/core/wq.c
    fn=(1) fetch
    10 100
    +2 20
    fi=(2) /src/qemu-device/core/shm.h
    4 30
    fe=(1)
    cob=(2) /lib/x86_64-linux-gnu/libc.so.6
    cfi=(3) string.c
    cfn=(2) memcpy
    calls=20 0
    * 9999

    fl=(4) /src/tests/lib/fg_host.c
    fn=(3) fg_run
    1 777
    cfi=(1)
    cfn=(1)
    calls=10 -4
    * 8888

    ob=(2)
    fl=(3)
    fn=(2)
    7 40
    """)


def counts(**functions):
    return insn.Counts(functions)


def verdicts(before, after):
    return {finding.case: finding for finding in compare({case: as_json(count) for case, count in before.items()}, after)}


# --- reading


def test_self_cost_by_function_per_operation():
    case, count = insn.parse(CALLGRIND)
    assert case == "write.8"
    assert count.functions == {"wq.c:fetch": 15.0, "libc": 4.0}
    assert (count.total, count.device) == (19.0, 15.0)


# --- comparing


@pytest.mark.parametrize("now,passes", [(100, True), (109, True), (111, False), (200, False), (91, True), (50, True)])
def test_more_than_a_tenth_up_fails(now, passes):
    assert verdicts({"w": counts(f=100)}, {"w": counts(f=now)})["w"].passed is passes


def test_a_rise_names_the_functions_and_the_way_out():
    before = {"w": counts(fetch=100, copy=50, idle=30)}
    finding = verdicts(before, {"w": counts(fetch=101, copy=90, idle=25, fresh=7)})["w"]
    assert not finding.passed
    text = "\n".join(finding.reasons)
    assert text.index("copy: 50.0 -> 90.0") < text.index("fresh: 0.0 -> 7.0") < text.index("fetch: 100.0 -> 101.0")
    assert "idle" not in text and "make bench-baseline" in text


def test_the_c_library_hides_no_rise():
    """A copy of a thousand instructions is no room for a hundred others."""
    before, after = {"w": counts(f=300, libc=1000)}, {"w": counts(f=350, libc=1000)}
    assert not verdicts(before, after)["w"].passed


def test_a_rise_of_the_c_library_fails():
    """Work that is moved there is work."""
    assert not verdicts({"w": counts(f=100, libc=10)}, {"w": counts(f=60, libc=90)})["w"].passed


def test_a_fall_passes_and_asks_for_renewal():
    finding = verdicts({"w": counts(f=100)}, {"w": counts(f=80)})["w"]
    assert finding.passed and "make bench-baseline" in finding.reasons[0]
    assert not verdicts({"w": counts(f=100)}, {"w": counts(f=95)})["w"].reasons


def test_new_and_lost_cases_fail():
    both = verdicts({"old": counts(f=1)}, {"new": counts(f=1)})
    assert not both["old"].passed and not both["new"].passed


# --- the script


def run_script(monkeypatch, tmp_path, before, after, *arguments, key="cc 1"):
    script, path = load("checks/instructions"), tmp_path / "instructions.json"
    baseline = Baseline(path)
    baseline.renew("cc 1", before)
    monkeypatch.setattr(script.insn, "key", lambda build: key)
    monkeypatch.setattr(script.insn, "measure", lambda build: after)
    return script.main([*arguments, "--baseline", str(path)]), path


@pytest.mark.parametrize("now, status, words", [
    pytest.param(150, 1, ["not ok 1 - instructions_w", "f: 100.0 -> 150.0", "1..1"], id="fails on a rise"),
    pytest.param(100, 0, ["ok 1 - instructions_w", "1..1"], id="passes what has not changed"),
])
def test_script_compares(monkeypatch, tmp_path, capsys, now, status, words):
    assert run_script(monkeypatch, tmp_path, {"w": counts(f=100)}, {"w": counts(f=now)})[0] == status
    out = capsys.readouterr().out
    assert all(word in out for word in words) and out.startswith(words[0])


def test_renewed_counts_pass(monkeypatch, tmp_path):
    status, path = run_script(monkeypatch, tmp_path, {"w": counts(f=100)}, {"w": counts(f=150)}, "--renew")
    assert status == 0 and json.loads(path.read_text())["cc 1"]["w"]["total"] == 150


def test_other_compilers_stay_when_one_is_renewed(monkeypatch, tmp_path):
    _, path = run_script(monkeypatch, tmp_path, {"w": counts(f=100)}, {"w": counts(f=7)}, "--renew", key="cc 2")
    assert {key: cases["w"]["total"] for key, cases in json.loads(path.read_text()).items()} == {"cc 1": 100, "cc 2": 7}


def test_unknown_compiler_is_skipped_with_the_reason(monkeypatch, tmp_path, capsys):
    with pytest.raises(SystemExit) as end:
        run_script(monkeypatch, tmp_path, {"w": counts(f=100)}, {"w": counts(f=100)}, key="cc 99")
    assert end.value.code == 77
    last = capsys.readouterr().out.splitlines()[-1]
    assert "cc 99" in last and "cc 1" in last and "make bench-baseline" in last


def test_missing_valgrind_is_skipped_with_the_reason(monkeypatch, tmp_path, capsys):
    script = load("checks/instructions")
    monkeypatch.setattr(script.insn.shutil, "which", lambda name: None)
    monkeypatch.setattr(script.insn, "key", lambda build: CI_KEY)
    with pytest.raises(SystemExit) as end:
        script.main([])
    assert end.value.code == 77 and "valgrind" in capsys.readouterr().out


# --- the committed file


def test_ci_compares_every_case():
    source = (ROOT / "tests" / "bench" / "insn.c").read_text()
    table = re.search(r"cases\[\] = \{(.*?)\n\};", source, re.DOTALL)[1]
    assert sorted(re.findall(r'\{ "([\w.]+)"', table)) == sorted(Baseline(BASELINE).keys[CI_KEY])
