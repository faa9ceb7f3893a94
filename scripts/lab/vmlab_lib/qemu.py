# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
"""QEMU's version and command line."""

import functools
import json
import os
import re
import subprocess

from . import tsc
from .errors import LabError

OLDEST = (10, 1)
ACCELERATORS = ("auto", "kvm", "tcg")
_CHOICE = "PVRDMA_ACCEL"
HUB = 1  # joins the NICs of a VM. Hub 0 is a segment of one VM: a hub that is joined with itself never ends
RECONNECT_MS = 100  # until pvrdmad listens
_CMDLINE = [
    "console=ttyS0", "loglevel=5", "panic=-1", "rdinit=/init",
    # a guest under TCG must not be slowed by what it does not need ...
    "mitigations=off", "tsc=reliable", "no_timer_check", "random.trust_cpu=on", "audit=0",
    # ... nor be blamed for a host that is busy
    "rcupdate.rcu_cpu_stall_timeout=120", "watchdog_thresh=60",
]


# BARs of an adapter that is plugged in later. The default of a port is 2 MiB, fewer than BAR 2 has.
HOT_PLUG_MEMORY = 16 << 20


def check_version(path):
    """Refuse a QEMU without -device vfio-user-pci."""
    try:
        text = subprocess.run([path, "--version"], capture_output=True, text=True, check=True,
                              stdin=subprocess.DEVNULL).stdout
    except (OSError, subprocess.CalledProcessError) as err:
        raise LabError(f"{path} does not run as a QEMU: {err}") from err
    found = re.search(r"version (\d+)\.(\d+)", text)
    if not found:
        raise LabError(f"{path} does not say which version of QEMU it is")
    version = tuple(int(part) for part in found.groups())
    if version < OLDEST:
        raise LabError(f"{path} is QEMU {version[0]}.{version[1]}, but vfio-user needs "
                       f"{OLDEST[0]}.{OLDEST[1]} or newer: leave out --qemu to fetch one")


def why_no_kvm(device="/dev/kvm", cpuinfo="/proc/cpuinfo"):
    """Return: the reason not to use KVM, or None. Some hosts without vmx and svm have a /dev/kvm that hangs at boot."""
    with open(cpuinfo) as file:
        able = re.search(r"^flags\s*:.*\b(vmx|svm)\b", file.read(), re.MULTILINE)
    if not able:
        return "the CPU has no hardware virtualization"
    if not os.path.exists(device):
        return f"there is no {device}"
    if not os.access(device, os.R_OK | os.W_OK):
        return f"no access to {device}; the group kvm usually has it"
    return None


def choose_accelerator(choice=None):
    """Make `choice`, of ACCELERATORS, that of this process and its children. Without one, $PVRDMA_ACCEL is it, else auto."""
    choice = choice or os.environ.get(_CHOICE) or "auto"
    if choice not in ACCELERATORS:
        raise LabError(f"--accel '{choice}' is unknown; known are {', '.join(ACCELERATORS)} (also of ${_CHOICE})")
    reason = why_no_kvm() if choice == "kvm" else None
    if reason:
        raise LabError(f"--accel kvm: {reason}; --accel auto uses TCG then")
    os.environ[_CHOICE] = choice


def why_tcg():
    """Return: the reason to use TCG, or None."""
    return f"chosen by --accel or ${_CHOICE}" if os.environ.get(_CHOICE) == "tcg" else why_no_kvm()


def accelerator():
    if why_tcg():
        return ["-accel", "tcg,thread=multi", "-cpu", "max"]
    return ["-accel", "kvm", "-cpu", "host"]


@functools.cache
def _clock():
    """Kernel parameters for a clock that is right however busy the host is while the VM boots. KVM has one."""
    frequency = tsc.khz() if "kvm" not in accelerator() else None
    return [f"tsc_early_khz={frequency}"] if frequency else []


def arguments(vm):
    """The command line for `vm` (see machine.Vm), without QEMU itself."""
    args = [
        *accelerator(),
        "-machine", "q35,memory-backend=mem,vmport=off", "-smp", str(vm.smp), "-m", f"{vm.memory}B",
        "-object", f"memory-backend-memfd,id=mem,size={vm.memory},share=on",
        "-nodefaults", "-no-user-config", "-display", "none", "-no-reboot",
        "-kernel", str(vm.kernel), "-initrd", str(vm.initramfs),
        "-append", " ".join([*_CMDLINE, *_clock(), *vm.append.split(), f"vmlab.node={vm.number}"]),
        "-drive", f"if=none,id=root,file={vm.image},format=raw,readonly=on",
        "-device", "virtio-blk-pci,drive=root",
        "-chardev", f"socket,id=console,fd={vm.console_fd}", "-serial", "chardev:console",
        "-device", "virtio-serial-pci",
    ]
    for name, fd in (("ctl", vm.control_fd), ("out", vm.output_fd)):
        args += ["-chardev", f"socket,id={name},fd={fd}",
                 "-device", f"virtserialport,chardev={name},name=vmlab.{name}"]
    if vm.incoming:
        args += ["-incoming", vm.incoming]
    if vm.qmp:
        args += ["-qmp", f"unix:{vm.qmp},server=on,wait=off"]
    if vm.shell_path:
        args += ["-chardev", f"socket,id=shell,path={vm.shell_path},server=on,wait=off",
                 "-device", "virtconsole,chardev=shell"]
    for share in vm.shares:
        args += _share(**share)
    args += ["-netdev", json.dumps(vm.netdev), *_hub(vm), *_pcap(vm), *_devices(vm)]
    return args


def _pcap(vm):
    return ["-object", f"filter-dump,id=pcap,netdev=net,file={str(vm.pcap).replace(',', ',,')}"] if vm.pcap else []


def _share(tag, path, readonly):
    escaped = str(path).replace(",", ",,")
    flag = ",readonly=on" if readonly else ""
    return ["-fsdev", f"local,id={tag},path={escaped},security_model=none,multidevs=remap{flag}",
            "-device", f"virtio-9p-pci,fsdev={tag},mount_tag={tag}"]


def _adapter(vm, path):
    if vm.device == "pvrdma":
        return {"driver": "pvrdma", "path": str(path)}
    return {"driver": vm.device, "socket": {"type": "unix", "path": str(path)}}


def _devices(vm):
    nic = {"driver": vm.nic, "netdev": "port1" if _has_hub(vm) else "net", "mac": vm.mac, "romfile": "", "addr": "6.0"}
    if not vm.adapter:
        return ["-device", json.dumps(nic)]
    adapter = _adapter(vm, vm.adapter)
    if vm.driver == "vmw_pvrdma":
        # That driver finds its NIC at function 0 of its own slot.
        nic["multifunction"] = True
        adapter["addr"] = "6.1"
    elif vm.hot_plug:
        adapter |= {"id": "adapter", "bus": "adapter-port"}
    else:
        adapter["addr"] = "7.0"
    if not vm.posted:
        adapter["x-no-posted-writes"] = True
    return ["-device", json.dumps(nic), *_hot_plug_ports(vm), "-device", json.dumps(adapter), *_more_devices(vm)]


def _hot_plug_ports(vm):
    """The adapter's port, and one into which another adapter can be plugged."""
    ports = [{"driver": "pcie-root-port", "id": name, "chassis": number, "addr": f"{6 + number:x}.0",
              "mem-reserve": HOT_PLUG_MEMORY}
             for number, name in enumerate(("adapter-port", "spare-port"), 1)]
    return [word for port in ports if vm.hot_plug for word in ("-device", json.dumps(port))]


def _has_hub(vm):
    return bool(vm.more or vm.wire)


def _hub(vm):
    """The hub that joins the first NIC, the segment, the adapter's wire and further NICs."""
    if not _has_hub(vm):
        return []
    wire = {"type": "stream", "id": "wire", "server": False, "reconnect-ms": RECONNECT_MS,
            "addr": {"type": "unix", "path": str(vm.wire)}}
    ports = ["-netdev", json.dumps(wire), "-netdev",
             json.dumps({"type": "hubport", "id": "portw", "hubid": HUB, "netdev": "wire"})] if vm.wire else []
    return [*ports,"-netdev", json.dumps({"type": "hubport", "id": "port0", "hubid": HUB, "netdev": "net"}),
            "-netdev", json.dumps({"type": "hubport", "id": "port1", "hubid": HUB})]


def _more_devices(vm):
    """Further adapters, behind the first one in the order of probing. A hub joins their NICs to the segment."""
    args = []
    for nth, (mac, path) in enumerate(vm.more, 2):
        slot = 2 * nth + 4
        nic = {"driver": vm.nic, "netdev": f"port{nth}", "mac": mac, "romfile": "", "addr": f"{slot:x}.0"}
        adapter = _adapter(vm, path) | {"addr": f"{slot + 1:x}.0"}
        if not vm.posted:
            adapter["x-no-posted-writes"] = True
        args += ["-netdev", json.dumps({"type": "hubport", "id": f"port{nth}", "hubid": HUB}),
                 "-device", json.dumps(nic), "-device", json.dumps(adapter)]
    return args
