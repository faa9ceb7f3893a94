# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
"""XML of libvirt domains: one as virsh prints it, and what is in one."""

import json
import xml.etree.ElementTree as ElementTree

QEMU = "{http://libvirt.org/schemas/domain/qemu/1.0}"
PVRDMA = "{urn:pvrdma:libvirt:1}"
MAC = "52:54:00:12:34:56"

DOMAIN = f"""\
<domain type='kvm'>
  <name>guest</name>
  <uuid>4dea22b3-1d52-d8f3-2516-782e98ab3fa0</uuid>
  <title>A &lt;title&gt; with &amp; and ü</title>
  <!-- a comment of the operator -->
  <memory unit='KiB'>4194304</memory>
  <vcpu placement='static'>2</vcpu>
  <os>
    <type arch='x86_64' machine='pc-q35-10.1'>hvm</type>
  </os>
  <devices>
    <emulator>/usr/bin/qemu-system-x86_64</emulator>
    <interface type='network'>
      <mac address='52:54:00:00:00:99'/>
    </interface>
    <interface type='network'>
      <mac address='{MAC.upper()}'/>
      <model type='virtio'/>
    </interface>
  </devices>
</domain>
"""


def values(text):
    """The words that a domain adds to QEMU's command line."""
    root = ElementTree.fromstring(text)
    return [arg.get("value") for arg in root.findall(f"{QEMU}commandline/{QEMU}arg")]


def of_option(text, name):
    """The values of an option that are JSON."""
    words = values(text)
    return [json.loads(value) for option, value in zip(words, words[1:]) if option == name and value.startswith("{")]


def devices(text):
    return of_option(text, "-device")


def nodes(text):
    return of_option(text, "-blockdev")


def settings(text):
    """The adapters in a domain's metadata."""
    root = ElementTree.fromstring(text)
    return [node.text for node in root.findall(f"metadata/{PVRDMA}adapters/{PVRDMA}adapter")]
