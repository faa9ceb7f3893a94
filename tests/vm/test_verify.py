# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
"""pvr_verify with each pair of driver and provider: every byte of every operation that the pair offers.

Two CPUs per VM, see the boots.
"""

import re

import pytest
from boots import STOCK, VERIFY, Boot, each_step, step_tests
from steps import Step, guest_programs
from traffic import COMPLAINTS

pytestmark = pytest.mark.slow

COMMAND = "talk 18600 {server} {client} $SHARE/pvr_verify --cpus --seed {seed} {more}"
STEPS = {step.name: step for step in (
    *(Step(f"seed-{seed}", COMMAND.format(server=1, client=2, seed=seed, more=""), 300) for seed in (1, 2)),
    Step("large", COMMAND.format(server=2, client=1, seed=4, more="--bytes-max 1048576 --iterations 200"), 300),
    Step("events", COMMAND.format(server=1, client=2, seed=5, more="-e"), 300),
    Step("both-ends-in-one-vm", "$SHARE/pvr_verify --cpus --both-ends-here --seed $NODE", 300),
)}

# Of Debian's provider and of the kernel's driver.
THEIRS = {("provider", "debian"), ("driver", "vmw_pvrdma")}
NOT_OFFERED = ["UC", "inline data", "memory windows of type 1", "memory windows of type 2, SEND_WITH_INV"]
ALWAYS = {"RC", "RC at the edges of pages", "UD", "SRQ", "contention"}
OF_OFFERS = {"UC": "UC", "windows of type 1": "memory windows of type 1",
             "windows of type 2": "memory windows of type 2, SEND_WITH_INV"}

# The fixture of a run -> its steps of pvr_verify.
RUNS = {
    "ours": ["seed-1", "large", "both-ends-in-one-vm"],
    "ours_long": ["seed-2", "events"],
    "stock": ["seed-1"],
    "stock_long": ["seed-2", "large", "events", "both-ends-in-one-vm"],
    "debians_long": list(STEPS),
}
EACH_STEP = pytest.mark.parametrize("run, step", each_step(**RUNS), indirect=["run"])
# The kernel's own driver warns of invalid requests.
ALL = {run: [*(STEPS[name] for name in names), *([] if run.startswith("stock") else [COMPLAINTS])]
       for run, names in RUNS.items()}

ours = VERIFY.part(ALL["ours"], files=guest_programs)
ours_long = VERIFY.part(ALL["ours_long"], files=guest_programs, long=True)
stock = STOCK.part(ALL["stock"], files=guest_programs)
stock_long = STOCK.part(ALL["stock_long"], files=guest_programs, long=True)
debians_long = Boot("verify-debian", smp=2, provider="debian").part(ALL["debians_long"], files=guest_programs, long=True)
test_step, test_run_ended_well = step_tests(**ALL)


def not_offered(run):
    """The features that this driver or provider lacks. All others run."""
    return NOT_OFFERED if THEIRS & run.options.items() else []


@EACH_STEP
def test_all_bytes_are_right(run, step):
    for outcome in run.check(step):
        missing = re.findall(r"^verify: not offered: (.*)$", outcome.text, re.MULTILINE)
        assert missing == not_offered(run), outcome.tail()
        assert re.search(r"^verify: \d+ operations, \d+ bytes, 0 errors$", outcome.text, re.MULTILINE), outcome.tail()


@EACH_STEP
def test_nothing_is_left_out(run, step):
    """Each phase has run, each kind of operation at least once, up to the maximum number of SGEs."""
    expected = ALWAYS | {phase for phase, offer in OF_OFFERS.items() if offer not in not_offered(run)}
    for outcome in run.check(step):
        phases = dict(re.findall(r"^verify: ([\w ]+): (.*)$", outcome.text, re.MULTILINE))
        assert expected <= set(phases), outcome.tail()
        most = int(re.search(r"(\d+) SGEs, ", outcome.text)[1])
        for phase in ("RC", "UD"):
            counts = re.search(r"up to (\d+) SGEs, (\d+) inline:(.*)$", phases[phase])
            assert int(counts[1]) == most, outcome.tail()
            assert (int(counts[2]) > 0) == ("inline data" not in not_offered(run)), outcome.tail()
            assert "0" not in counts[3].split(), outcome.tail()
        contention = [int(number) for number in re.findall(r"\d+", phases["contention"])]
        assert all(contention), outcome.tail()
