# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
"""A lab of given options and parts, ready to boot: its daemon, its segment, its shares."""

import shutil

from . import faults, parts, qemu, ssh
from .bridge import Bridge
from .daemon import Daemon, adapter_mac
from .errors import LabFailure
from .fleet import Fleet
from .initramfs import GUEST_SCRIPTS
from .machine import Vm
from .segment import Segment


def make_lab(kind, options, found, run, progress, stack, *args):
    """Return a Lab, or a `kind` of it, in the folder `run`; `stack` ends all that belongs to it."""
    wired = _wired(options)
    segment = _make_segment(options, run, wired)
    stack.callback(segment.close)
    service = _start_daemon(options, {number: segment.wire(number) for number in wired}, segment.enter(), run, progress, stack)
    options.macs = {n: _mac(options, n) for n in range(1, options.nodes + 1)}
    control = _fill_control(options, found, run)
    make_vm = _migratable_vm_maker if options.migratable else _vm_maker
    lab = kind(options, make_vm(options, found, run, control, segment, service), control, progress, service, *args)
    stack.callback(lab.close)
    progress.say(f"booting {count(options.nodes, 'VM')} "
                 f"(kernel {options.kernel}, driver {options.driver}, {_nics(options)}, {_accelerator()})")
    return lab


def _accelerator():
    reason = qemu.why_tcg()
    return f"TCG: {reason}" if reason else "KVM"


def count(number, what):
    return f"{number} {what}" if number == 1 else f"{number} {what}s"


def _wired(options):
    """The nodes whose adapters speak RoCE on the segment: there are nodes with Soft-RoCE, and one pvrdmad of our own."""
    if "rxe" not in options.drivers or options.hosts > 1 or options.adapters:
        return []
    return [number for number, device in options.devices.items() if device.driver == "pvrdma"]


def _make_segment(options, run, wired):
    return Bridge(options.nodes, wired) if options.segment == "bridge" else Segment(options.nodes, run, options.migratable, wired)


def _start_daemon(options, wires, prefix, run, progress, stack):
    if not options.needs_daemon or options.adapters:
        return None
    if options.hosts > 1:
        service = Fleet(options, run)
    else:
        service = Daemon(options.pvrdmad, range(1, options.nodes + 1), run, options.logs, options.pvrdmad_log_level,
                         options.adapter_settings, options.per_node, options.fabrics, prefix=prefix, args=options.daemon_args, wires=wires)
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


def _nics(options):
    return ",".join(dict.fromkeys(device.nic for device in options.devices.values()))


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
    for driver, module in found.drivers.items():
        (control / "driver").mkdir(exist_ok=True)
        shutil.copy(module, control / "driver" / f"{driver}.ko")
    if found.extra:
        (control / "modules").mkdir()
        for number, module in enumerate(found.extra):
            shutil.copy(module, control / "modules" / f"{number:02}-{module.name}")
    if found.rdma_core:
        shutil.copytree(found.rdma_core, control / "rdma-core", symlinks=True)
    if found.provider:
        (control / "provider").mkdir()
        for name in parts.PROVIDER_FILES:
            shutil.copy(found.provider / name, control / "provider")
    if ssh.SERVER in options.packages:
        ssh.make_key(control / "ssh")
    return control


def _vm_maker(options, found, run, control, segment, _service):
    share = options.share or run / "share"
    share.mkdir(exist_ok=True)
    shares = [{"tag": "control", "path": control, "readonly": True},
              {"tag": "modules", "path": found.modules, "readonly": True},
              {"tag": "share", "path": share, "readonly": False}]

    def make(number):
        device = options.devices[number]
        adapter = options.adapters[number - 1][0] if options.adapters and device.has_adapter else None
        return Vm(
            number=number, kernel=found.kernel, initramfs=found.initramfs, image=found.image,
            driver=device.driver, nic=device.nic, mac=options.macs[number],
            netdev=segment.netdev(number), wire=segment.wire_socket(number), prefix=segment.enter(), adapter=adapter,
            posted=device.posted, shares=shares, pcap=options.logs / f"node{number}.pcap" if options.pcap else None,
            memory=options.memory, smp=options.smp, append=options.append, device=options.device,
            more=[(adapter_mac(n, nth), path) for (n, nth), path in options.more.items() if n == number],
            shell_path=run / f"shell{number}" if options.shell else None,
            qmp=options.qmp / f"node{number}.qmp" if options.qmp else None, hot_plug=bool(options.qmp))

    return make


def _migratable_vm_maker(options, found, run, control, segment, service):
    """make(number, host): the VM where it boots, and with a host: one that waits there for the state of the node."""
    make_vm = _vm_maker(options, found, run, control, segment, service)
    made = dict.fromkeys(options.devices, 0)

    def make(number, host=None):
        vm = make_vm(number)
        made[number] += 1
        name = f"node{number}.{made[number]}"
        vm.qmp = run / f"{name}.qmp"
        vm.host = host or (number - 1) % options.hosts + 1
        vm.adapter = service.socket(number, vm.host)
        if host:
            vm.incoming = f"unix:{run / name}.incoming"
        return vm

    return make
