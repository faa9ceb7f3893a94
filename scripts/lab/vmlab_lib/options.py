# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
"""The command line of vmlab, and what is wrong with it."""

import argparse
import dataclasses
import os
import pathlib
import re

from . import qemu
from .errors import LabError
from .fleet import PIPES
from .hosts import MAX_HOSTS

ROOT = pathlib.Path(__file__).resolve().parents[3]
SCRIPTS = ROOT / "scripts"
# As in lib/common.sh. The installed command has no folder of its own to build in, and uses the installed daemon.
BUILD = pathlib.Path(os.environ.get("PVRDMA_BUILD") or ROOT / "build")
INSTALLED = bool(os.environ.get("PVRDMA_LAB_INSTALLED"))
COMMAND = "pvrdma-lab" if INSTALLED else "scripts/vmlab"
NAME = pathlib.PurePath(COMMAND).name
DRIVERS = ("pvrdma", "vmw_pvrdma", "rxe", "none")
NICS = ("virtio-net-pci", "vmxnet3")
SEGMENTS = ("sockets", "bridge")
PROVIDERS = ("auto", "pvrdma", "debian")
OVERLAY = "pvrdma"  # --qemu of this name is the QEMU that scripts/build/qemu builds, whose device has the same name
MAX_NODES = 250
MAX_ADAPTERS = 16
LEAST_MEMORY = 256 << 20

COMMANDS = ("run", "list", "stop")
_EPILOG = """\
On each node SCRIPT finds NODE (1..N), NODES, MY_IP, IPS, PEER_IP, MY_IP6, IPS6, PEER_IP6, RDMA_DEV,
GID_INDEX and SHARE in its environment, and the commands `barrier NAME` and `labctl`. Details: docs/vmlab.md."""


class _Parser(argparse.ArgumentParser):
    def error(self, message):
        raise LabError(f"{message} (see {COMMAND} --help)")


def parse(argv):
    """Return the checked options, or raise LabError."""
    command = argv[0] if argv and argv[0] in COMMANDS else ""
    if command in ("list", "stop"):
        return _parse_short(command, argv[1:])
    options = _parser(command).parse_args(argv[1:] if command else argv)
    options.command = command
    options.mode = "shell" if options.shell else "serve" if options.reuse else "run"
    options.binaries = pathlib.Path("/usr/sbin") if INSTALLED else BUILD / "host"
    if options.attach:
        return options
    qemu.choose_accelerator(options.accel)
    _check_numbers(options)
    _check_devices(options)
    _check_files(options)
    _check_daemon(options)
    return options


def _parse_short(command, argv):
    """`list` and `stop`."""
    about = {"list": "List the labs of this user that `run --reuse` keeps.",
             "stop": "End the VMs of these labs, or of all that `run --reuse` keeps."}
    parser = _Parser(prog=f"{NAME} {command}", allow_abbrev=False, description=about[command])
    if command == "stop":
        parser.add_argument("labs", nargs="*", metavar="LAB", help=f"a number of `{NAME} list` (default: all)")
    options = parser.parse_args(argv)
    options.command, options.quiet = command, False
    return options


def _usage(command):
    if command:
        return f"{NAME} {command} [OPTION...] SCRIPT"
    lines = [f"{NAME} {what}" for what in ("run [OPTION...] SCRIPT", "list", "stop [LAB...]")]
    lines += [f"{NAME} [OPTION...] {what}" for what in ("--run SCRIPT", "--shell", "--build-only")]
    return "\n       ".join(lines)


def _parser(command):
    parser = _Parser(prog=NAME, allow_abbrev=False, epilog=_EPILOG, usage=_usage(command),
                     description="Boot test VMs on one Ethernet segment and run a script on each.",
                     formatter_class=argparse.RawDescriptionHelpFormatter)
    add = parser.add_argument
    if command == "run":
        add("run", metavar="SCRIPT", help="run SCRIPT on every node")
        add("--reuse", action="store_true", help="use the VMs of an earlier run, and keep them for the next one")
        add("--idle-timeout", default="3600", metavar="SECONDS", help="end kept VMs after so long without a run (default 3600)")
        parser.set_defaults(shell=False, build_only=False, attach=None)
    else:
        parser.set_defaults(reuse=False, idle_timeout="3600")
    add("--nodes", default="2", metavar="N", help="how many VMs (default 2)")
    add("--driver", default="pvrdma", metavar="DRIVER,DRIVER...",
        help=f"RDMA driver in the VMs: {', '.join(DRIVERS)}; several are for the nodes in turn (default pvrdma)")
    add("--kernel", default="6.1", metavar="VERSION", help="a kernel that scripts/fetch/kernel knows (default 6.1)")
    add("--nic", metavar="|".join(NICS),
        help="Ethernet NIC (default virtio-net-pci; vmxnet3 for vmw_pvrdma)")
    add("--packages", default="", metavar="PKG,PKG...", help="more Debian packages for the guest")
    add("--share", metavar="DIR", help="folder seen by host and nodes (default: a temporary one)")
    add("--timeout", default="600", metavar="SECONDS",
        help="how long the VMs may run (default 600)")
    add("--memory", default="1G", metavar="SIZE", help="RAM of each VM (default 1G)")
    add("--smp", default="1", metavar="N", help="CPUs of each VM (default 1)")
    add("--adapters", dest="per_node", default="1", metavar="N", help="NICs with an adapter in each VM (default 1)")
    add("--fabrics", default="1", metavar="N", help="fabrics that the adapters of a VM are on in turns (default 1)")
    add("--hosts", default="1", metavar="H", help="hosts, each with a pvrdmad, over which the VMs are spread (default 1)")
    add("--pipe", default="tcp", metavar="|".join(PIPES), help="what joins the hosts (default tcp)")
    add("--segment", default="sockets", metavar="|".join(SEGMENTS),
        help="what joins the VMs' Ethernet NICs: Unix sockets, or a bridge with taps in a network namespace (default sockets)")
    add("--migratable", action="store_true",
        help="VMs can move to another host, by `labctl migrate-node N HOST`; wants --hosts, implies --qemu pvrdma")
    add("--fault", metavar="FILE", help="make messages fail: a file of `pvrdmactl fault load`; adapters are node1, node2 ...")
    if not command:
        _add_modes(parser.add_mutually_exclusive_group().add_argument)
    add("--accel", metavar="|".join(qemu.ACCELERATORS),
        help="the accelerator of the VMs' CPUs: kvm where it works, else tcg (auto), or one of them (default $PVRDMA_ACCEL, else auto)")
    more = parser.add_argument_group("more options")
    add = more.add_argument
    add("--pvrdmad-control", metavar="PATH",
        help="control socket of a running pvrdmad to use; needs --adapter-socket")
    add("--adapter-socket", action="append", default=[], metavar="PATH[,MAC]",
        help="an adapter of that pvrdmad, once per node in order of nodes")
    add("--pvrdmad-log-level", default="info", metavar="info|debug", help="for our own pvrdmad")
    add("--adapter-settings", default="", metavar="KEY=VALUE,...",
        help="more of what follows pvrdmad's --adapter, for each adapter of our own: hwversion=13")
    add("--pvrdmad", metavar="FILE", help="the pvrdmad to start, instead of the one that is built")
    add("--provider", default="auto", metavar="|".join(PROVIDERS),
        help="user-space provider (default auto: ours with --driver pvrdma, else Debian's)")
    add("--posted-writes", default="auto", metavar="auto|on|off",
        help="whether QEMU posts writes to the device (default auto: with our driver and provider)")
    add("--module", action="append", default=[], metavar="FILE|DIR",
        help="load a kernel module, or build and load that of DIR; a driver of the device replaces ours; may be repeated")
    add("--rdma-core", metavar="DIR", help="build this source tree of rdma-core, and replace the guest's by it")
    add("--append", default="", metavar="WORDS", help="more kernel parameters, as in --append 'init_on_alloc=0 nosmp'")
    add("--qemu", metavar="FILE", help="the QEMU to use, instead of the one that is found or fetched; pvrdma: that of scripts/build/qemu, with -device pvrdma")
    add("--pcap", action="store_true", help="write the frames of each VM's Ethernet to nodeN.pcap beside the logs")
    add("--keep-logs", metavar="DIR", help="folder for logs (default build/vmlab/last)")
    add("--qmp", metavar="DIR",
        help="QEMU's control sockets are DIR/nodeN.qmp, and the adapters, \"adapter\", are in hot-plug slots")
    add("--quiet", action="store_true", help="no progress lines")
    add("--version", action="version", version=f"{NAME} {(ROOT / 'VERSION').read_text().strip()}")
    return parser


def _add_modes(add):
    add("--run", metavar="SCRIPT", help="run SCRIPT on every node")
    add("--shell", action="store_true", help="give a shell on node 1")
    add("--build-only", action="store_true", help="make what the VMs need, boot none")
    add("--attach", metavar="SOCKET", help="connect to another node's shell")


def _check_numbers(options):
    options.nodes = _number("--nodes", options.nodes, 1, MAX_NODES)
    options.smp = _number("--smp", options.smp, 1, 255)
    options.per_node = _number("--adapters", options.per_node, 1, MAX_ADAPTERS)
    options.fabrics = _number("--fabrics", options.fabrics, 1, options.per_node)
    options.hosts = _number("--hosts", options.hosts, 1, min(MAX_HOSTS, options.nodes))
    _choice("--pipe", options.pipe, PIPES)
    _choice("--segment", options.segment, SEGMENTS)
    options.more = {}
    options.timeout = _seconds("--timeout", options.timeout)
    options.idle_timeout = _seconds("--idle-timeout", options.idle_timeout)
    options.memory = parse_size(options.memory)


def _number(name, text, least, most):
    if not text.isdecimal() or not least <= int(text) <= most:
        raise LabError(f"{name} wants a number from {least} to {most}, not '{text}'")
    return int(text)


def _seconds(name, text):
    try:
        seconds = float(text)
    except ValueError:
        seconds = -1
    if not 0 < seconds < 1e7:
        raise LabError(f"{name} wants a positive number of seconds")
    return seconds


def parse_size(text):
    """Bytes in '512M', '1G', ... (a bare number is MiB, as for QEMU)."""
    found = re.fullmatch(r"(\d{1,12})([KMGT]?)(?:i?B)?", text, re.IGNORECASE)
    if not found:
        raise LabError(f"--memory wants a size such as 512M or 1G, not '{text}'")
    shift = {"": 20, "K": 10, "M": 20, "G": 30, "T": 40}[found.group(2).upper()]
    size = int(found.group(1)) << shift
    if size < LEAST_MEMORY or size % (1 << 20):
        raise LabError(f"--memory {text}: a guest needs at least {LEAST_MEMORY >> 20}M, "
                       "in whole MiB")
    return size


def _choice(name, value, choices):
    if value not in choices:
        raise LabError(f"{name} '{value}' is unknown; known are {', '.join(choices)}")


@dataclasses.dataclass(frozen=True)
class Device:
    """What a node has for RDMA."""

    driver: str
    nic: str
    provider: str
    posted: bool             # QEMU posts writes to the adapter

    @property
    def has_adapter(self):
        return self.driver in ("pvrdma", "vmw_pvrdma")


def _device(options, driver):
    _choice("--driver", driver, DRIVERS)
    nic = options.nic or ("vmxnet3" if driver == "vmw_pvrdma" else "virtio-net-pci")
    _choice("--nic", nic, NICS)
    if driver == "vmw_pvrdma" and nic != "vmxnet3":
        raise LabError("--driver vmw_pvrdma needs --nic vmxnet3: it looks for nothing else")
    provider = options.provider
    if provider == "auto":
        provider = "pvrdma" if driver == "pvrdma" else "debian"
    return Device(driver, nic, provider, _posted(options, driver, provider))


def _check_devices(options):
    _choice("--provider", options.provider, PROVIDERS)
    _choice("--pvrdmad-log-level", options.pvrdmad_log_level, ("info", "debug"))
    if not re.fullmatch(r"\d+\.\d+(-debug)?", options.kernel):
        raise LabError(f"--kernel wants a version such as 6.1, not '{options.kernel}'")
    turns = [_device(options, driver) for driver in options.driver.split(",")]
    options.devices = {number: turns[(number - 1) % len(turns)] for number in range(1, options.nodes + 1)}
    options.drivers = sorted({device.driver for device in turns})
    options.providers = {device.provider for device in turns}
    options.packages = [name for name in re.split(r"[,\s]+", options.packages) if name]
    for name in options.packages:
        if not re.fullmatch(r"[a-z0-9][a-z0-9+.-]+", name):
            raise LabError(f"--packages: '{name}' is not a name of a Debian package")


def _settings(options):
    """The value of --adapter-settings, as a dictionary; pvrdmad reports its errors."""
    return dict(part.partition("=")[::2] for part in options.adapter_settings.split(",") if part)


def _posted(options, driver, provider):
    """Only our driver waits for the device by itself, and only our provider can poll without
    a doorbell for each empty poll, which QEMU would queue without limit."""
    _choice("--posted-writes", options.posted_writes, ("auto", "on", "off"))
    if driver == "vmw_pvrdma" and options.posted_writes == "on":
        raise LabError("--driver vmw_pvrdma needs --posted-writes off: it takes a register write "
                       "that is over for one that the device has acted on")
    ours = driver == "pvrdma" and provider == "pvrdma"
    # Without the extensions of the latest revision each empty poll rings, as with stock drivers.
    ours = ours and _settings(options).get("hwversion", "latest") == "latest"
    return ours if options.posted_writes == "auto" else options.posted_writes == "on"


def _check_daemon(options):
    options.needs_daemon = any(device.has_adapter for device in options.devices.values())
    options.adapters = []
    for text in options.adapter_socket:
        path, _, mac = text.partition(",")
        if mac and not re.fullmatch(r"([0-9a-f]{2}:){5}[0-9a-f]{2}", mac, re.IGNORECASE):
            raise LabError(f"--adapter-socket {text}: '{mac}' is not a MAC address")
        options.adapters.append((pathlib.Path(path).absolute(), mac.lower()))
    if options.per_node > 1 and (options.driver != "pvrdma" or options.adapter_socket):
        raise LabError("--adapters wants --driver pvrdma and a pvrdmad of vmlab's own")
    options.controls = [pathlib.Path(options.pvrdmad_control).absolute()] if options.pvrdmad_control else []
    if options.hosts > 1 and (not options.needs_daemon or options.adapters or options.controls):
        raise LabError("--hosts wants a pvrdmad of vmlab's own on each of them")
    if options.fault and not options.needs_daemon:
        raise LabError(f"--fault acts on adapters of pvrdmad, which --driver {options.driver} does not use")
    if options.fault and (options.adapters or options.controls):
        raise LabError("--fault wants a pvrdmad of vmlab's own: say `pvrdmactl fault load` to a running one")
    if options.migratable and (options.hosts < 2 or options.driver != "pvrdma"):
        raise LabError("--migratable wants --hosts 2 or more, and --driver pvrdma")
    for name, value in (("--hosts", options.hosts > 1), ("--adapters", options.per_node > 1), ("--adapter-socket", options.adapters)):
        if options.segment == "bridge" and value:
            raise LabError(f"--segment bridge does not go with {name}")
    for name, value in (("--reuse", options.reuse), ("--shell", options.shell), ("--qmp", options.qmp), ("--pcap", options.pcap),
                        ("--adapters", options.per_node > 1)):
        if options.migratable and value:
            raise LabError(f"--migratable does not go with {name}")
    if options.reuse and (options.adapters or options.controls):
        raise LabError("--reuse wants a pvrdmad of vmlab's own")
    if not options.adapters and not options.controls:
        _check_own_daemon(options)
        return
    if not options.needs_daemon:
        raise LabError(f"--driver {options.driver} uses no pvrdmad: leave out --pvrdmad-control "
                       "and --adapter-socket")
    if len(options.adapters) != options.nodes:
        raise LabError(f"{options.nodes} nodes need {options.nodes} times --adapter-socket, "
                       f"not {len(options.adapters)} times")
    for path in [*options.controls, *(path for path, _ in options.adapters)]:
        if not path.is_socket():
            raise LabError(f"{path} is no socket: is pvrdmad running?")


def _check_own_daemon(options):
    options.daemon_args = ["--faults", "allowed"] if options.fault or options.reuse else []
    program = options.pvrdmad = pathlib.Path(options.pvrdmad or options.binaries / "pvrdmad").absolute()
    if options.needs_daemon and not options.build_only and not os.access(program, os.X_OK):
        raise LabError(f"--driver {options.driver} needs pvrdmad, but there is no {program}: "
                       "say `make` first")


def _check_files(options):
    if not (options.run or options.shell or options.build_only):
        raise LabError("what shall the VMs do? Give --run SCRIPT or --shell")
    if options.run:
        options.run = pathlib.Path(options.run)
        if not options.run.is_file():
            raise LabError(f"--run {options.run}: there is no such script")
        if not os.access(options.run, os.X_OK):
            raise LabError(f"--run {options.run} is not executable: say chmod +x {options.run}")
    if options.share:
        options.share = pathlib.Path(options.share).absolute()
        if not options.share.is_dir():
            raise LabError(f"--share {options.share}: there is no such folder")
        if not os.access(options.share, os.R_OK | os.W_OK | os.X_OK):
            raise LabError(f"--share {options.share}: this user may not write there")
    options.fault = pathlib.Path(options.fault).absolute() if options.fault else None
    if options.fault and not os.access(options.fault, os.R_OK):
        raise LabError(f"--fault {options.fault}: there is no such file, or this user may not read it")
    options.module = [pathlib.Path(module).absolute() for module in options.module]
    for module in options.module:
        if not module.exists():
            raise LabError(f"--module {module}: there is no such file or folder")
    options.rdma_core = pathlib.Path(options.rdma_core).absolute() if options.rdma_core else None
    if options.rdma_core and not options.rdma_core.is_dir():
        raise LabError(f"--rdma-core {options.rdma_core}: there is no such folder")
    if INSTALLED and options.qemu == OVERLAY:
        raise LabError(f"--qemu {OVERLAY} needs the sources of pvrdma: use scripts/vmlab in them, or name a QEMU")
    if options.migratable:
        options.qemu = options.qemu or OVERLAY
    options.device = OVERLAY if options.qemu == OVERLAY or options.migratable else "vfio-user-pci"
    options.qmp = pathlib.Path(options.qmp).absolute() if options.qmp else None
    if options.qmp and options.driver != "pvrdma":
        raise LabError("--qmp wants --driver pvrdma")
    if options.qmp and not options.qmp.is_dir():
        raise LabError(f"--qmp {options.qmp}: there is no such folder")
    options.logs = pathlib.Path(options.keep_logs or BUILD / "vmlab" / "last").absolute()
    if options.reuse:
        # Those of a run are copied to --keep-logs.
        options.logs = BUILD / "vmlab" / "kept"
