# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
"""From the command line to the exit status: 0 all well, 1 a node failed, 2 no lab came about."""

import contextlib
import signal

from . import logs, parts, reuse, rundir, shell
from . import options as command_line
from .assembly import count, make_lab
from .errors import Interrupted, LabError, LabFailure
from .lab import Lab
from .progress import Progress


def main(argv):
    progress = Progress()
    for signum in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(signum, _interrupt)
    try:
        options = command_line.parse(argv)
        progress.quiet = options.quiet
        if options.command == "list":
            reuse.show(progress)
        elif options.command == "stop":
            reuse.stop(options.labs, progress)
        elif options.attach:
            shell.attach(options.attach)
        else:
            return _run(options, progress)
        return 0
    except LabFailure as failure:
        progress.error(str(failure))
        return 1
    except LabError as error:
        progress.error(str(error))
        return 2
    except Interrupted as interrupted:
        progress.error(str(interrupted))
        return 128 + interrupted.signum


def _interrupt(signum, _frame):
    # Once: what follows is cleaning up, which a second signal must not cut short.
    for each in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(each, signal.SIG_IGN)
    raise Interrupted(signum)


def _run(options, progress):
    """Return the exit status."""
    found = parts.gather(options, progress)
    options.qemu = found.qemu
    if options.build_only:
        progress.say(f"all is there: image {found.image}")
        return 0
    if options.reuse:
        return reuse.run(options, found, progress)
    with rundir.run_dir() as run, contextlib.ExitStack() as stack:
        options.logs = stack.enter_context(logs.log_dir(options.logs))
        lab = make_lab(Lab, options, found, run, progress, stack)
        lab.start()
        if options.shell:
            _serve_shell(lab, run, progress)
        else:
            lab.run()
            progress.say(f"{count(options.nodes, 'node')} ended well; logs are in {options.logs}")
    return 0


def _serve_shell(lab, run, progress):
    """Join the terminal to node 1 until its shell ends; the other nodes wait for visitors."""
    for number in range(2, lab.options.nodes + 1):
        progress.say(f"node{number}: in another terminal, scripts/vmlab --attach "
                     f"{run / f'shell{number}'}")
    progress.say("node1: its shell follows; Ctrl-] or leaving the shell ends the lab")
    lab.serve_terminal(lambda: shell.Terminal(run / "shell1"))
