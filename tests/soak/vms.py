#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
"""Random programs with data checks and random disturbances in VMs, for a given time; a part of "make soak".

Two VMs boot, run a dozen steps, and shut down, again and again: pingpongs and pvr_verify with random options, driver
reloads, unloading and removal of the device under load, netdevs that go away. Each step must succeed, and no kernel may
complain. The last line is JSON.
"""

import argparse
import collections
import dataclasses
import json
import random
import shutil
import sys
import tempfile
import time
from pathlib import Path

sys.dont_write_bytecode = True
ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / folder) for folder in ("tests/pylib", "scripts/lab", "scripts/bench")]

from disturbances import (NETDEV_DOWN, NETDEV_GONE, NETDEV_RENAMED, READDRESSED, UNLOAD_UNDER_LOAD,  # noqa: E402
                          UNLOAD_UNDER_POLLING, UNPLUG_UNDER_LOAD, reloads)
from steps import Step, guest_programs, run_steps  # noqa: E402
from traffic import COMPLAINTS  # noqa: E402

STEPS_PER_BOOT = 12
DISTURBANCES = [reloads(2, 60), NETDEV_DOWN, NETDEV_RENAMED, READDRESSED, UNLOAD_UNDER_LOAD, UNLOAD_UNDER_POLLING,
                UNPLUG_UNDER_LOAD, NETDEV_GONE]
# Other processes share the CPUs.
SLOWNESS = 4


def random_traffic(rng):
    server = rng.choice([1, 2])
    if rng.random() < 0.5:
        return Step("verify", f"talk 18600 {server} {3 - server} $SHARE/pvr_verify --seed {rng.randrange(1 << 30)} "
                              f"--iterations {rng.choice([100, 300])} {rng.choice(['', '-e'])}", 120)
    return Step("pingpong", f"pingpong 18515 {server} {3 - server} -c {rng.choice(['', '-e'])} "
                            f"-s {rng.choice([1, 4096, 65536, 1 << 20])} -n {rng.choice([20, 100])}")


def random_steps(rng):
    """Traffic follows each disturbance."""
    steps = []
    while len(steps) < STEPS_PER_BOOT:
        if rng.random() < 0.5:
            steps.append(rng.choice(DISTURBANCES))
        steps.append(random_traffic(rng))
    named = [dataclasses.replace(step, name=f"{number}-{step.name}", seconds=step.seconds * SLOWNESS)
             for number, step in enumerate(steps)]
    return [*named, COMPLAINTS]


def boot(folder, rng):
    """Return: (names of the steps, why it failed or "")."""
    folder.mkdir()
    steps = random_steps(rng)
    run = run_steps(folder, steps, files=guest_programs(), smp=rng.choice([1, 2]))
    for step in steps:
        if any(outcome.status != 0 for outcome in run[step]):
            return [], run.explain(step)
    if run.result.status:
        return [], f"vmlab: {run.result.error}\n{run.result.stderr[-4000:]}"
    return [step.name.partition("-")[2] for step in steps[:-1]], ""


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--time", type=float, default=600, metavar="SECONDS", help="default: 600")
    parser.add_argument("--seed", type=int, default=random.SystemRandom().randrange(1 << 32), help="default: random")
    options = parser.parse_args()
    rng = random.Random(options.seed)
    folder = Path(tempfile.mkdtemp(prefix="pvrdma-soak-vms."))
    counts, boots, begin = collections.Counter(), 0, time.monotonic()
    while time.monotonic() - begin < options.time:
        names, why = boot(folder / f"boot{boots}", rng)
        if why:
            print(f"VMs: seed {options.seed}, boot {boots + 1}: {why}\nVMs: see {folder}", file=sys.stderr)
            return 1
        counts.update(names)
        shutil.rmtree(folder / f"boot{boots}")
        boots += 1
        print(f"[{time.monotonic() - begin:5.0f}s] VMs: boot {boots}: {', '.join(names)}", flush=True)
    shutil.rmtree(folder)
    print(json.dumps({"vms": {"seed": options.seed, "boots": boots, "steps": dict(counts)}}))
    return 0


if __name__ == "__main__":
    sys.exit(main())
