# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
"""pvr_verify with each pair of driver and provider: every byte of every operation that the pair offers.

Two CPUs per VM, see the boots.
"""

import re

import pytest
from boots import STOCK, VERIFY, each_run, each_step
from steps import Step, guest_programs, run_steps
from traffic import COMPLAINTS

pytestmark = pytest.mark.slow

COMMAND = "talk 18600 {server} {client} $SHARE/pvr_verify --cpus --seed {seed} {more}"
STEPS = {step.name: step for step in (
    *(Step(f"seed-{seed}", COMMAND.format(server=1, client=2, seed=seed, more=""), 300) for seed in (1, 2)),
    Step("large", COMMAND.format(server=2, client=1, seed=4, more="--bytes-max 1048576 --iterations 200"), 300),
    Step("events", COMMAND.format(server=1, client=2, seed=5, more="-e"), 300),
    Step("both-ends-in-one-vm", "$SHARE/pvr_verify --cpus --both-ends-here --seed $NODE", 300),
)}

# driver and provider -> features that they lack; all others run
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

OURS, DEBIANS, STOCKS = NOT_OFFERED
# The fixture of a run -> driver and provider, steps.
RUNS = {
    "ours": (OURS, ["seed-1", "large", "both-ends-in-one-vm"]),
    "ours_long": (OURS, ["seed-2", "events"]),
    "stock": (STOCKS, ["seed-1"]),
    "stock_long": (STOCKS, ["seed-2", "large", "events", "both-ends-in-one-vm"]),
    "debians_long": (DEBIANS, list(STEPS)),
}
EACH_STEP = pytest.mark.parametrize("run, step", each_step(**{name: steps for name, (_, steps) in RUNS.items()}),
                                    indirect=["run"])


def steps_of(run):
    """The kernel's own driver warns of invalid requests."""
    pair, names = RUNS[run]
    return [*(STEPS[name] for name in names), *([] if pair == STOCKS else [COMPLAINTS])]


ours = VERIFY.part(steps_of("ours"), files=guest_programs)
ours_long = VERIFY.part(steps_of("ours_long"), files=guest_programs, long=True)
stock = STOCK.part(steps_of("stock"), files=guest_programs)
stock_long = STOCK.part(steps_of("stock_long"), files=guest_programs, long=True)


@pytest.fixture(scope="module")
def debians_long(tmp_path_factory):
    driver, provider = DEBIANS
    return run_steps(tmp_path_factory.mktemp("verify-debian"), steps_of("debians_long"), smp=2, driver=driver,
                     provider=provider, files=guest_programs())


@pytest.fixture(scope="module")
def run(request):
    run = request.getfixturevalue(request.param)
    run.pair = RUNS[request.param][0]
    return run


@EACH_STEP
def test_all_bytes_are_right(run, step):
    for outcome in run.check(step):
        missing = re.findall(r"^verify: not offered: (.*)$", outcome.text, re.MULTILINE)
        assert missing == NOT_OFFERED[run.pair], outcome.tail()
        assert re.search(r"^verify: \d+ operations, \d+ bytes, 0 errors$", outcome.text, re.MULTILINE), outcome.tail()


@EACH_STEP
def test_nothing_is_left_out(run, step):
    """Each phase has run, each kind of operation at least once, up to the maximum number of SGEs."""
    expected = ALWAYS | {phase for phase, offer in OF_OFFERS.items() if offer not in NOT_OFFERED[run.pair]}
    for outcome in run.check(step):
        phases = dict(re.findall(r"^verify: ([\w ]+): (.*)$", outcome.text, re.MULTILINE))
        assert expected <= set(phases), outcome.tail()
        most = int(re.search(r"(\d+) SGEs, ", outcome.text)[1])
        for phase in ("RC", "UD"):
            counts = re.search(r"up to (\d+) SGEs, (\d+) inline:(.*)$", phases[phase])
            assert int(counts[1]) == most, outcome.tail()
            assert (int(counts[2]) > 0) == ("inline data" not in NOT_OFFERED[run.pair]), outcome.tail()
            assert "0" not in counts[3].split(), outcome.tail()
        contention = [int(number) for number in re.findall(r"\d+", phases["contention"])]
        assert all(contention), outcome.tail()


@pytest.mark.parametrize("run", each_run(*RUNS), indirect=True)
def test_run_ended_well(run):
    if run.pair != STOCKS:
        run.check("complaints")
    run.check_end()
