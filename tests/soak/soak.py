#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
"""Random traffic and random faults between hosts, for a given time: "make soak TIME=3600".

Hosts are network namespaces with a pvrdmad each, joined by TLS and etcd, with fake guests at their adapters. In each
round, pairs of guests on one host and on two write, send, read and add with a check of each byte, and some random
faults happen beside hostile guests: VMs are killed and stopped, daemons are killed, the network is cut, connections are reset, adapters are
unplugged, keys are rotated, etcd is killed or loses its data, clients and hosts send random bytes.

Invariants: no wrong byte; no queue pair fails unless a fault concerns it; one pair, the witness, is never concerned;
after each round no daemon holds an object, a mapping or a descriptor of a VM that is gone, and memory is flat.

At the same time vms.py disturbs real VMs, without hosts: see there.

The last lines are JSON: rounds, faults by name, checked steps and bytes. The seed repeats the sequence of faults, not
their timing. The exit status is not 0 after a violation, and the folder of the run is kept.
"""

import argparse
import collections
import json
import random
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

sys.dont_write_bytecode = True
HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent / "hosts")]

from lab import LIMIT, Lab  # noqa: E402
from faults import Faults  # noqa: E402
from invariants import Invariants, Violation, check_run  # noqa: E402

HOSTS = 3
GUESTS = 5  # per host; of the last two, one is hostile, and one is never in use
ROUND_SECONDS = (3, 10)
FAULTS = (1, 3)  # per round
# Queue pairs fail after 8 times 2.1 s: later than any interruption that they must survive.
RETRIES = {"timeout": 17, "retries": 7}
STREAMS = (1, 2, 8)
SIZES = (64, 4096, 65536, 262144)


class Soak:
    """The lab, and the runs of one round."""

    def __init__(self, folder, seed, workers):
        self.rng = random.Random(seed)
        self.lab = Lab(folder, hosts=HOSTS, pipe="tls", etcd=True, guests_per_host=GUESTS, args=["--workers", workers])
        self.invariants = Invariants(self.lab)
        self.faults = Faults(self, self.rng)
        self.runs, self.monkey, self.hit = [], None, set()
        self.begin = time.monotonic()
        self.log = open(folder / "faults.log", "w", buffering=1, encoding="utf-8")
        self.totals = collections.Counter()
        self.injected = collections.Counter()

    @property
    def tenants(self):
        """Runs that faults may end: all but the witness."""
        return self.runs[1:]

    def spare(self, daemon):
        """The guest of this host that is never in use."""
        return sorted(daemon.guests)[-1]

    def hostile(self, daemon):
        """The guest of this host that hosts_monkey drives."""
        return sorted(daemon.guests)[-2]

    def mark(self, guests):
        """A fault concerns these guests."""
        self.hit |= set(guests)

    def _begin_run(self, one, other):
        run = self.lab.begin_verify(one, other, may_fail=True, streams=self.rng.choice(STREAMS),
                                    max_write=self.rng.choice(SIZES), **RETRIES)
        run.guests, run.killed = (one, other), False
        self.runs.append(run)

    def _begin_monkey(self):
        """Hostile guests of the first two hosts: one has the daemon of the witness."""
        guests = [self.hostile(self.lab.daemons[number]) for number in (1, 2)]
        over = self.lab.folder / f"monkeys.{self.totals['rounds']}"
        self.monkey = self.lab.begin_with("hosts_monkey", guests, "--seed", self.rng.randrange(1 << 31), "--seconds", LIMIT,
                                          "--until", over, over=over)
        self.monkey.guests, self.monkey.killed = tuple(guests), False

    def _end_monkey(self):
        """It ends early if a fault concerns it."""
        if self.hit & set(self.monkey.guests):
            self.monkey.stop()
        else:
            self.totals["hostile steps"] += self.monkey.end()["steps"]

    def _begin_runs(self):
        """The witness is on host 1: no fault kills that daemon."""
        witness = sorted(self.lab.daemons[1].guests)[:2]
        guests = [guest for daemon in self.lab.daemons.values() for guest in daemon.guests
                  if guest not in witness and guest not in (self.spare(daemon), self.hostile(daemon))]
        self.rng.shuffle(guests)
        self.runs, self.hit = [], set()
        self._begin_monkey()
        self._begin_run(*witness)
        for one, other in zip(guests[::2], guests[1::2]):
            self._begin_run(one, other)
        for run in self.runs:
            run.wait_begun()

    def _end_run(self, run):
        if run.killed:
            run.stop()
            return
        result = run.end()
        check_run(run, result, bool(self.hit & set(run.guests)))
        self.totals.update(steps=result["steps"], bytes=result["bytes"], runs=1, failed=len(result["failed"]))

    def close(self):
        self.lab.close()
        self.log.close()

    def round(self):
        """Return: the names of the faults."""
        self._begin_runs()
        end = time.monotonic() + self.rng.uniform(*ROUND_SECONDS)
        names = []
        for _ in range(self.rng.randint(*FAULTS)):
            time.sleep(self.rng.uniform(0, 1))
            names.append(self.faults.inject())
            self.log.write(f"{time.monotonic() - self.begin:.1f}: round {self.totals['rounds'] + 1}: {names[-1]}, "
                           f"hit {sorted(self.hit)}\n")
        time.sleep(max(0, end - time.monotonic()))
        self._end_monkey()
        for run in self.runs:
            self._end_run(run)
        self.lab.runs.clear()
        self.invariants.check()
        self.injected.update(names)
        self.totals["rounds"] += 1
        return names


def soak(folder, seconds, seed, workers):
    """Return: the report."""
    this = Soak(folder, seed, workers)
    try:
        this.lab.start()
        this.invariants.begin()
        while not this.totals["rounds"] or time.monotonic() - this.begin < seconds:
            names = this.round()
            print(f"[{time.monotonic() - this.begin:5.0f}s] round {this.totals['rounds']}: {', '.join(names)}; "
                  f"{this.totals['steps']} steps, {this.totals['bytes'] >> 20} MiB checked", flush=True)
    finally:
        this.close()
    return {"seed": seed, "seconds": round(time.monotonic() - this.begin), **this.totals, "faults": dict(this.injected),
            "resident_kib": this.invariants.memory()}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--time", type=float, default=600, metavar="SECONDS", help="default: 600")
    parser.add_argument("--seed", type=int, default=random.SystemRandom().randrange(1 << 32), help="default: random")
    parser.add_argument("--workers", type=int, default=2, help="of each daemon (default: 2)")
    parser.add_argument("--no-vms", action="store_true", help="only hosts with fake guests, without virtual machines")
    options = parser.parse_args()
    vms = None
    if not options.no_vms:
        vms = subprocess.Popen([HERE / "vms.py", "--time", str(options.time), "--seed", str(options.seed)])
    status = soak_hosts(options)
    return (vms.wait() if vms else 0) or status


def soak_hosts(options):
    """Return: an exit status."""
    folder = Path(tempfile.mkdtemp(prefix="pvrdma-soak."))
    print(f"soak: seed {options.seed}, {options.time:.0f} s, in {folder}", flush=True)
    try:
        report = soak(folder, options.time, options.seed, options.workers)
    except (Violation, AssertionError) as error:
        print(f"soak: seed {options.seed}: {error}\nsoak: see {folder}", file=sys.stderr)
        return 1
    shutil.rmtree(folder)
    print(json.dumps(report))
    return 0


if __name__ == "__main__":
    sys.exit(main())
