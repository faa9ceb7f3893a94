# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
"""The steps of a run: short ones that show how fast each device is, then rounds of all rows, the devices in turns."""

import dataclasses

from vmlab_lib.steps import Step

from .rows import PVRDMA, RXE, TCP, Row

SECONDS = 90        # a step's deadline
CQ_MOD = 100        # perftest's: so many small messages are one completion
COUNTS = "counts"   # the file in the share that says how often
# Minimum and maximum of iterations, by the unit of the kind's value.
BOUNDS = {"B/s": (20, 2_000_000), "1/s": (1000, 5_000_000), "s": (10, 1_000_000)}
PILOT_COUNTS = {"write_rate": 2000, "write_bw": 20, "write_lat": 100, "pingpong": 50, "pingpong_event": 50}
PILOTS = [Row("write_rate", 8), Row("write_bw", 1048576), Row("write_lat", 8), Row("pingpong", 4096),
          Row("pingpong_event", 4096)]


def command(row, device, count):
    """The commands of both nodes. count: a number or a word of bash."""
    kind = row.kind
    if device == TCP:
        return f"qperf -t 1 -uu -m {row.size} node1 {kind.tcp}"
    words = [kind.program, f"-s {row.size}", f"-n {count}"]
    if row.many_qps:
        words.append(f"-q {row.qps}")
    return " ".join([*words, kind.options]).strip()


# Options that shorten a program's work before and after its traffic.
STARTS = [Row("write_bw", 8), Row("read_bw", 8), Row("send_bw", 8), Row("write_lat", 8), Row("send_lat", 8),
          Row("pingpong", 8)]
LEAST_COUNT = 5


def _step(name, row, devices, count_of):
    lines = [f"measure {device} {command(row, device, count_of(device))} || status=1" for device in devices]
    return Step(name, "\n".join(['. "$SHARE/bench.sh"', "status=0", *lines, "exit $status"]), SECONDS)


def pilot_name(row):
    return f"pilot.{row.name}"


def start_name(number, row):
    return f"start{number}.{row.name}"


def start_of(row):
    """The one of STARTS that has the row's program."""
    return next(start for start in STARTS if start.kind.program == row.kind.program)


def round_name(number, row):
    return f"{number}.{row.name}"


def steps(wanted, rounds, starts):
    """All of a run for these rows. starts: how often a program's start is measured."""
    def turned(row, number):
        by = number % len(row.devices)
        return row.devices[by:] + row.devices[:by]

    plan = [Step("setup", '. "$SHARE/bench.sh"; set_up_devices')]
    plan += [_step(pilot_name(row), row, (PVRDMA, RXE), lambda _, row=row: PILOT_COUNTS[row.kind_name]) for row in PILOTS]
    programs = {start_of(row) for row in wanted}
    plan += [_step(start_name(number, row), row, (PVRDMA, RXE), lambda _: LEAST_COUNT)
             for number in range(1, starts + 1) for row in STARTS if row in programs]
    plan.append(Step("plan", '[ $NODE != 1 ] || raise now; await now.seen'))
    for number in range(1, rounds + 1):
        plan += [_step(round_name(number, row), row, turned(row, number),
                       lambda device, row=row: f"$(sed -n s/^{row.name}.{device}=//p $SHARE/{COUNTS})")
                 for row in wanted]
    return plan


@dataclasses.dataclass(frozen=True)
class Speed:
    """A device's, as the pilots found it: in messages and bytes per second, in seconds."""

    rate: float
    bandwidth: float
    latency: float
    pingpong: float
    pingpong_event: float

    def iteration(self, row):
        """About how long one takes."""
        if row.kind_name.startswith("pingpong"):
            return getattr(self, row.kind_name)
        if row.kind.unit == "s":
            return 2 * (self.latency + row.size / self.bandwidth)
        return 1 / self.rate + row.size / self.bandwidth


def speed(pilots):
    """Of {kind's name: Figures}."""
    return Speed(rate=pilots["write_rate"].rate, bandwidth=pilots["write_bw"].bandwidth,
                 latency=pilots["write_lat"].seconds, pingpong=pilots["pingpong"].seconds,
                 pingpong_event=pilots["pingpong_event"].seconds)


def count(row, device_speed, seconds):
    """Return: the number of iterations that take `seconds`, shared by the queue pairs."""
    least, most = BOUNDS[row.kind.unit]
    wanted = min(max(int(seconds / device_speed.iteration(row)), least), most)
    if row.many_qps:
        # With several QPs and a rest of CQ_MOD, perftest waits for ever, on any device.
        return max(1, round(wanted / row.qps / CQ_MOD)) * CQ_MOD
    return wanted


def counts_file(wanted, speeds, seconds):
    """The text of COUNTS. speeds: {device: Speed}."""
    return "".join(f"{row.name}.{device}={count(row, speeds[device], seconds)}\n"
                   for row in wanted for device in row.devices if device in speeds)
