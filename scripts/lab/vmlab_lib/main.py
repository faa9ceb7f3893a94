# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
"""From the command line to the exit status: 0 all well, 1 a node failed, 2 no lab came about."""

import contextlib
import shutil
import signal

from . import options as command_line
from . import faults, logs, parts, qemu, rundir, shell, ssh
from .daemon import Daemon, adapter_mac
from .errors import Interrupted, LabError, LabFailure
from .fleet import Fleet
from .initramfs import GUEST_SCRIPTS
from .lab import Lab
from .node import Vm
from .progress import Progress
from .segment import Segment


def main(argv):
    progress = Progress()
    for signum in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(signum, _interrupt)
    try:
        options = command_line.parse(argv)
        progress.quiet = options.quiet
        if options.attach:
            shell.attach(options.attach)
        else:
            _run(options, progress)
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
    found = parts.gather(options, progress)
    options.qemu = found.qemu
    if options.build_only:
        progress.say(f"all is there: image {found.image}")
        return
    with rundir.run_dir() as run, contextlib.ExitStack() as stack:
        options.logs = stack.enter_context(logs.log_dir(options.logs))
        service = _start_daemon(options, run, progress, stack)
        segment = Segment(options.nodes, run)
        stack.callback(segment.close)
        options.macs = {n: _mac(options, n) for n in range(1, options.nodes + 1)}
        control = _fill_control(options, found, run)
        make_vm = _vm_maker(options, found, run, control, segment)
        lab = Lab(options, make_vm, control, progress, service)
        stack.callback(lab.close)
        progress.say(f"booting {_count(options.nodes, 'VM')} "
                     f"(kernel {options.kernel}, driver {options.driver}, {options.nic}, {_accelerator()})")
        lab.start()
        if options.shell:
            _serve_shell(lab, run, progress)
        else:
            lab.run()
            progress.say(f"{_count(options.nodes, 'node')} ended well; logs are in {options.logs}")


def _accelerator():
    reason = qemu.why_no_kvm()
    return f"TCG: {reason}" if reason else "KVM"


def _count(number, what):
    return f"{number} {what}" if number == 1 else f"{number} {what}s"


def _start_daemon(options, run, progress, stack):
    if not options.needs_daemon or options.adapters:
        return None
    if options.hosts > 1:
        service = Fleet(options, run)
    else:
        service = Daemon(options.pvrdmad, range(1, options.nodes + 1), run, options.logs, options.pvrdmad_log_level,
                         options.adapter_settings, options.per_node, options.fabrics, args=options.daemon_args)
    stack.callback(_close_daemon, service)
    service.start()
    options.controls = service.controls
    options.adapters = [(path, "") for path in service.sockets.values()]
    options.more = service.more
    if options.fault:
        faults.load(options, run, options.fault)
    progress.say(f"pvrdmad serves {options.nodes * options.per_node} adapters" +
                 (f" on {options.hosts} hosts" if options.hosts > 1 else "") +
                 (f", with the faults of {options.fault}" if options.fault else ""))
    return service


def _close_daemon(service):
    failure = service.close()
    if failure:
        raise LabFailure(failure)


def _mac(options, number):
    if options.adapters:
        return options.adapters[number - 1][1] or adapter_mac(number)
    return adapter_mac(number)


def _fill_control(options, found, run):
    """The read-only share: the guest's scripts, SCRIPT, driver and provider, the nodes' key."""
    control = run / "control"
    control.mkdir()
    shutil.copytree(GUEST_SCRIPTS, control / "guest")
    if options.run:
        shutil.copy(options.run, control / "run")
        (control / "run").chmod(0o755)
    if found.driver:
        (control / "driver").mkdir()
        shutil.copy(found.driver, control / "driver" / f"{options.driver}.ko")
    if found.provider:
        (control / "provider").mkdir()
        for name in parts.PROVIDER_FILES:
            shutil.copy(found.provider / name, control / "provider")
    if ssh.SERVER in options.packages:
        ssh.make_key(control / "ssh")
    return control


def _vm_maker(options, found, run, control, segment):
    share = options.share or run / "share"
    share.mkdir(exist_ok=True)
    shares = [{"tag": "control", "path": control, "readonly": True},
              {"tag": "modules", "path": found.modules, "readonly": True},
              {"tag": "share", "path": share, "readonly": False}]

    def make(number):
        adapter = options.adapters[number - 1][0] if options.adapters else None
        return Vm(
            number=number, kernel=found.kernel, initramfs=found.initramfs, image=found.image,
            driver=options.driver, nic=options.nic, mac=options.macs[number],
            netdev=segment.netdev(number), adapter=adapter, posted=options.posted, shares=shares,
            memory=options.memory, smp=options.smp, append=options.append,
            more=[(adapter_mac(n, nth), path) for (n, nth), path in options.more.items() if n == number],
            shell_path=run / f"shell{number}" if options.shell else None,
            qmp=options.qmp / f"node{number}.qmp" if options.qmp else None)

    return make


def _serve_shell(lab, run, progress):
    """Join the terminal to node 1 until its shell ends; the other nodes wait for visitors."""
    for number in range(2, lab.options.nodes + 1):
        progress.say(f"node{number}: in another terminal, scripts/vmlab --attach "
                     f"{run / f'shell{number}'}")
    progress.say("node1: its shell follows; Ctrl-] or leaving the shell ends the lab")
    lab.serve_terminal(lambda: shell.Terminal(run / "shell1"))
