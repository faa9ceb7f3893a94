#!/bin/sh
# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
# Runs as root in a plain VM, from the share /mnt: programs between node 1 and node 2. Then node 1 installs the package of
# a host, whose service systemd starts, and node 2 removes the packages of a VM. Prints lines "ok RULE"; the first failure
# ends it. /mnt/add-adapter is the command of docs/install.md.
set -eu
# shellcheck source=tests/packages/functions.sh
. /mnt/functions.sh

node=$(tail -c 2 /proc/sys/kernel/hostname)
address=192.0.2.$node

fail()
{
	echo "FAILED: $*"
	dmesg | tail -n 40
	exit 1
}

rule()
{
	echo "ok $*"
}

has_gid()
{
	grep -l "ffff:c000:020$node" /sys/class/infiniband/*/ports/1/gids/* >/tmp/gid 2>/dev/null
}

listens()
{
	ss -ltn | grep -q :18515
}

dkms status >/tmp/dkms
grep -q "^pvrdma/.*$(uname -r).*: installed" /tmp/dkms || fail "dkms status: $(cat /tmp/dkms)"
until_true 60 test -e /sys/module/pvrdma
[ ! -e /sys/module/vmw_pvrdma ] || fail "vmw_pvrdma is loaded"
rule "the driver is loaded at boot instead of vmw_pvrdma"
for net in /sys/class/net/*; do
	[ "$(cat "$net/address")" != "52:54:00:00:00:0$node" ] || break
done
ip address add "$address/24" dev "${net##*/}"
ip link set "${net##*/}" up
until_true 60 has_gid
# udev loads the modules of user space after the driver.
until_true 60 test -c /dev/infiniband/uverbs0
until_true 60 test -c /dev/infiniband/rdma_cm
gid=$(head -n 1 /tmp/gid)
device=${gid#/sys/class/infiniband/}
device=${device%%/*}
touch "/mnt/up$node"
until_true 600 test -e "/mnt/up$((3 - node))"

if [ "$node" = 1 ]; then
	ibv_rc_pingpong -d "$device" -g "${gid##*/}" -n 1000 &
	until_true 60 listens
	grep -q libpvrdma-rdmav34 /proc/$!/maps || fail "maps: $(cat /proc/$!/maps)"
	rule "the provider is loaded"
	touch /mnt/pingpong
	wait $!
else
	until_true 600 test -e /mnt/pingpong
	ibv_rc_pingpong -d "$device" -g "${gid##*/}" -n 1000 192.0.2.1
fi
rule "ibv_rc_pingpong"
if [ "$node" = 1 ]; then
	touch /mnt/rping
	rping -s -a "$address" -C 100
else
	until_true 600 test -e /mnt/rping
	until_true 20 rping -c -a 192.0.2.1 -C 100
fi
rule "rping"

if [ "$node" = 1 ]; then
	# Systemd applies all restrictions of the unit.
	apt-get --yes --quiet install /mnt/pvrdmad_*.deb
	systemctl start pvrdmad || fail "$(journalctl --unit pvrdmad)"
	sh -e /mnt/add-adapter || fail "$(journalctl --unit pvrdmad)"
	[ -S /run/pvrdma/vm1.sock ] || fail "/run/pvrdma: $(ls -l /run/pvrdma)"
	[ "$(stat -c %G /run/pvrdma/vm1.sock)" = kvm ] || fail "$(ls -l /run/pvrdma)"
	systemctl is-active pvrdmad
	rule "the service runs and adds an adapter"
	apt-get --yes --quiet purge pvrdmad
	[ ! -e /run/pvrdma ] || fail "/run/pvrdma: $(ls -l /run/pvrdma)"
	rule "removal stops the service"
else
	apt-get --yes --quiet purge pvrdma-dkms pvrdma-provider
	! modinfo pvrdma || fail "the driver is still installed"
	[ -e /etc/libibverbs.d/vmw_pvrdma.driver ] || fail "the stock provider is not back"
	rule "removal beside the loaded driver"
fi
