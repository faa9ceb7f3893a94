# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
"""The newer guest kernels: the driver builds without a warning, and works as on 6.1."""

import re
import shutil
import subprocess

import pytest
from boots import Boot, each_run, step_tests
from counters import IN_USE, QP_COUNTER
from steps import Step, guest_programs, path_from
from traffic import COMPLAINTS, PLACEMENT
from vmlab_run import ROOT

pytestmark = pytest.mark.slow

KERNELS = ("6.12", "7.2")      # the last one, or what has followed it in backports
RELEASE = Step("release", "uname -r")
# As ibv_srq_pingpong waits for its peer: its SRQ, and attributes of both as the device reports them.
RAW = Step("raw-attributes", """
    ibv_srq_pingpong -d $RDMA_DEV -g $GID_INDEX -q 2 -p 18520 >/dev/null & pid=$!
    until_true 100 listening 18520 || exit
    rdma resource show srq dev $RDMA_DEV -dd; rdma resource show qp link $RDMA_DEV/1 -r
    kill $pid
    wait $pid
    true""")
DMABUF = Step("dmabuf", "$SHARE/pvr_dmabuf")
BEFORE_RELOADS = [
    RELEASE,
    Step("rc_pingpong", "pingpong 18515 1 2 -c -s 4096 -n 200 && pingpong 18516 2 1 -c -e -s 65536 -n 50", 240),
    Step("ud_pingpong", "talk 18517 1 2 ibv_ud_pingpong -d $RDMA_DEV -g $GID_INDEX -s 1024 -n 200", 240),
    Step("srq_pingpong", "talk 18518 1 2 ibv_srq_pingpong -d $RDMA_DEV -g $GID_INDEX -q 4 -n 200", 240),
    Step("xsrq_pingpong", "talk 18518 1 2 ibv_xsrq_pingpong -d $RDMA_DEV -g $GID_INDEX -n 200", 240),
    Step("verify", "talk 18600 1 2 $SHARE/pvr_verify --seed 6 --iterations 500", 300),
    PLACEMENT,
    DMABUF,
    RAW,
    Step("rdma_cm", "talk 7174 1 2 rping_end"),
    QP_COUNTER,
    IN_USE,
]


def steps(reloads):
    return [*BEFORE_RELOADS, Step("reload", f"""
        for _ in $(seq {reloads}); do unload && load || exit; done
        pingpong 18519 1 2 -c -s 4096 -n 100""", 300),
            Step("nothing-is-left", "unload && ! grep -w pvrdma /proc/modules && load"),
            COMPLAINTS]


of_6_12_long = Boot("kernel-6.12-", kernel="6.12").part(steps(10), files=guest_programs, long=True)
of_7_2 = Boot("kernel-7.2-", kernel="7.2").part(steps(2), files=guest_programs)
test_step, test_run_ended_well = step_tests(of_6_12_long=steps(10), of_7_2=steps(2))


def build(kernel):
    done = subprocess.run([ROOT / "scripts" / "build/module", kernel], capture_output=True, text=True,
                          stdin=subprocess.DEVNULL, check=False)
    assert done.returncode == 0, done.stderr[-4000:]
    assert not re.search(r"\bwarning:", done.stderr + done.stdout), done.stderr[-4000:]


def test_module_builds_without_warnings():
    """build/module fails where the compiler or sparse has a warning (-Werror, W=1)."""
    build(KERNELS[-1])


@pytest.mark.long
@pytest.mark.parametrize("built", KERNELS[:-1])
def test_module_of_an_older_kernel_builds_without_warnings(built):
    """sparse reads what is compiled, so all is."""
    shutil.rmtree(ROOT / "build" / f"module-{built}", ignore_errors=True)
    build(built)


@pytest.mark.long
def test_checkpatch_has_no_findings():
    """The kernel's own check of its style, --strict. It comes with a source package of 140 MB."""
    done = subprocess.run([ROOT / "scripts" / "checks/checkpatch"], capture_output=True, text=True,
                          stdin=subprocess.DEVNULL, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize("run", each_run("of_6_12_long", "of_7_2"), indirect=True)
def test_flush_is_offered(run):
    for outcome in run.check(PLACEMENT):
        assert "placement: 2000 rounds, 6 refusals, with FLUSH" in outcome.text, run.explain(PLACEMENT)


@pytest.mark.parametrize("run", each_run("of_6_12_long", "of_7_2"), indirect=True)
def test_rdma_resource_shows_srqs_and_raw_attributes(run):
    for outcome in run.check(RAW):
        assert re.search(r"srqn \d+ type BASIC.* drv_handle", outcome.text), outcome.text
        assert len(re.findall(r"^link \S+ [0-9a-f]{100,}", outcome.text, re.MULTILINE)) >= 2, outcome.text


@pytest.mark.parametrize("run", each_run("of_6_12_long", "of_7_2"), indirect=True)
def test_guest_runs_that_kernel(run):
    """It runs the release that fetch/kernel has for this version."""
    release = (path_from("fetch/kernel", run.options["kernel"]) / "release").read_text().strip()
    assert tuple(map(int, re.findall(r"\d+", release)[:2])) >= tuple(map(int, run.options["kernel"].split(".")))
    for outcome in run.check(RELEASE):
        assert outcome.text.strip() == release, outcome.tail()
