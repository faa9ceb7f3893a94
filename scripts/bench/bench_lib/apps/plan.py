# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
"""The steps of a run: rounds of all applications, each on its devices in turns; and what they printed."""

import re

from bench_lib.vm.output import Unreadable
from vmlab_lib.steps import Step

SWITCH_SECONDS = 30


def turned(devices, number):
    by = number % len(devices)
    return devices[by:] + devices[:by]


def name(number, app):
    return f"{number}.{app.name}"


def step(number, app):
    lines = [f"run_app {device} {app.name} || status=1" for device in turned(app.devices, number)]
    return Step(name(number, app), "\n".join(['. "$SHARE/bench-apps.sh"', "status=0", *lines, "exit $status"]),
                len(lines) * (app.seconds + SWITCH_SECONDS))


def steps(apps, rounds):
    return [Step("setup", '. "$SHARE/bench-apps.sh"; set_up_apps', 60),
            *(step(number, app) for number in range(1, rounds + 1) for app in apps if number <= app.rounds)]


def _parts(text):
    """{device: (status, what it printed)} of a node's output."""
    parts = {}
    for chunk in re.split(r"^(?=@run )", text, flags=re.MULTILINE):
        begin = re.match(r"@run (\w+)\n", chunk)
        end = re.search(r"^@end (\d+)$", chunk, re.MULTILINE)
        if begin:
            parts[begin[1]] = int(end[1]) if end else None, chunk
    return parts


def read(app, texts):
    """({device: {row's name: value}}, [what went wrong, ...]) of what the nodes printed in a step."""
    nodes = [_parts(text) for text in texts]
    client = nodes[1]
    found, failures = {}, []
    for device in app.devices:
        states = [parts.get(device, (None, ""))[0] for parts in nodes]
        if any(state != 0 for state in states):
            ends = ", ".join(f"{state} on node{node}" for node, state in enumerate(states, 1))
            failures.append(f"{app.name} on {device}: ended with {ends}")
            continue
        try:
            found[device] = app.read(client[device][1])
        except Unreadable as why:
            failures.append(f"{app.name} on {device}: {why}")
    return found, failures
