# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
"""pvr_verify with each pair of driver and provider: every byte of every operation that the pair offers.

Two CPUs per VM, as QEMU does not make the atomics of a single emulated CPU atomic for anybody else.
"""

import re

import pytest
from steps import Step, guest_programs, run_steps

pytestmark = pytest.mark.slow

VERIFY = "talk 18600 {server} {client} $SHARE/pvr_verify --cpus --seed {seed} {more}"
STEPS = [
    *(Step(f"seed-{seed}", VERIFY.format(server=1, client=2, seed=seed, more=""), 300) for seed in (1, 2)),
    Step("large", VERIFY.format(server=2, client=1, seed=4, more="--bytes-max 1048576 --iterations 200"), 300),
    Step("events", VERIFY.format(server=1, client=2, seed=5, more="-e"), 300),
    Step("both-ends-in-one-vm", "$SHARE/pvr_verify --cpus --both-ends-here --seed $NODE", 300),
]
COMPLAINTS = Step("complaints", "! complaints")

# driver and provider -> what they do not have; everything else runs
NOT_OFFERED = {
    ("pvrdma", "auto"): [],
    ("pvrdma", "debian"): [
        "UC", "inline data", "memory windows of type 1", "memory windows of type 2, SEND_WITH_INV"],
    ("vmw_pvrdma", "auto"): [
        "UC", "inline data", "memory windows of type 1", "memory windows of type 2, SEND_WITH_INV"],
}
ALWAYS = {"RC", "RC at the edges of pages", "UD", "SRQ", "contention"}
OF_OFFERS = {"UC": "UC", "windows of type 1": "memory windows of type 1",
             "windows of type 2": "memory windows of type 2, SEND_WITH_INV"}


@pytest.fixture(scope="module", params=NOT_OFFERED, ids="-".join)
def pair(request):
    return request.param


@pytest.fixture(scope="module")
def run(pair, tmp_path_factory):
    driver, provider = pair
    return run_steps(tmp_path_factory.mktemp(f"verify-{driver}-{provider}-"), [*STEPS, COMPLAINTS], smp=2,
                     driver=driver, provider=provider, files=guest_programs())


@pytest.mark.parametrize("step", [step.name for step in STEPS])
def test_all_bytes_are_right(run, pair, step):
    for outcome in run.check(step):
        missing = re.findall(r"^verify: not offered: (.*)$", outcome.text, re.MULTILINE)
        assert missing == NOT_OFFERED[pair], outcome.tail()
        assert re.search(r"^verify: \d+ operations, \d+ bytes, 0 errors$", outcome.text, re.MULTILINE), outcome.tail()


@pytest.mark.parametrize("step", [step.name for step in STEPS])
def test_nothing_is_left_out(run, pair, step):
    """Each phase says that it ran, each kind of operation at least once, as many SGEs as there can be."""
    expected = ALWAYS | {phase for phase, offer in OF_OFFERS.items() if offer not in NOT_OFFERED[pair]}
    for outcome in run.check(step):
        phases = dict(re.findall(r"^verify: ([\w ]+): (.*)$", outcome.text, re.MULTILINE))
        assert expected <= set(phases), outcome.tail()
        most = int(re.search(r"(\d+) SGEs, ", outcome.text)[1])
        for phase in ("RC", "UD"):
            counts = re.search(r"up to (\d+) SGEs, (\d+) inline:(.*)$", phases[phase])
            assert int(counts[1]) == most, outcome.tail()
            assert (int(counts[2]) > 0) == ("inline data" not in NOT_OFFERED[pair]), outcome.tail()
            assert "0" not in counts[3].split(), outcome.tail()
        contention = [int(number) for number in re.findall(r"\d+", phases["contention"])]
        assert all(contention), outcome.tail()


def test_kernels_have_no_complaints(run, pair):
    if pair[0] == "pvrdma":
        run.check("complaints")


def test_run_ended_well(run):
    run.check_end()
