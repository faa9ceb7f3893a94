#!/bin/sh
# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
# Runs as root at each boot of a plain VM with pvrdmad, libvirtd and the domain of boot-domain.sh, from the share /mnt, and
# then the VM switches itself off. Prints lines "ok RULE"; the first failure ends it.
set -eu
# shellcheck source=tests/packages/functions.sh
. /mnt/functions.sh

fail()
{
	echo "FAILED: $*"
	systemctl status pvrdmad libvirtd libvirt-guests --no-pager || true
	virsh list --all || true
	journalctl --no-pager --unit pvrdmad --unit libvirtd --unit libvirt-guests | tail -n 80
	tail -n 30 /var/log/libvirt/qemu/vm1.log || true
	exit 1
}

rule()
{
	echo "ok $*"
}

is_running()
{
	[ "$(virsh domstate vm1)" = running ]
}

# Its boot sector has enabled the event: PM1_EN. An earlier one is lost.
awaits_button()
{
	virsh qemu-monitor-command --hmp vm1 'i /h 0x602' | grep -q 0x0100
}

# before TEXT TEXT: the order of two lines of the last boot's log.
before()
{
	first=$(grep -n -- "$1" /tmp/journal | tail -n 1 | cut -d: -f1)
	second=$(grep -n -- "$2" /tmp/journal | tail -n 1 | cut -d: -f1)
	if [ -z "$first" ] || [ -z "$second" ] || [ "$first" -gt "$second" ]; then
		cat /tmp/journal
		fail "at shutdown '$1' is in line '$first', and '$2' in line '$second'"
	fi
}

until_true 120 is_running
pvrdmactl --control /run/pvrdma/control adapters | grep '^vm1 ' || fail "no adapter"
rule "libvirt has started the domain at boot, with its adapter"
if [ -e /var/tmp/booted ]; then
	journalctl --no-pager --boot -1 --unit pvrdmad --unit libvirtd --unit libvirt-guests >/tmp/journal
	grep -q 'reason=shutdown' /var/log/libvirt/qemu/vm1.log || fail "libvirt has not shut the domain down"
	before 'Stopping.*libvirt-guests' 'vm1: QEMU .* has disconnected'
	before 'vm1: QEMU .* has disconnected' 'Stopping.*pvrdmad'
	before 'Stopped.*libvirt-guests' 'Stopping.*pvrdmad'
	rule "at shutdown libvirt-guests has ended the domain, and then the service has stopped"
fi
until_true 300 awaits_button
touch /var/tmp/booted
