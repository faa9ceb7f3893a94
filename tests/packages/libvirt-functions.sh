#!/bin/sh
# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
# Functions of the scripts in clean roots with libvirtd. $cache, $emulator, $image and $clock are set, the commands of the
# document are /job/doc/NAME, and $more has further settings of adapters for them.
# shellcheck disable=SC2154
# shellcheck source=tests/packages/functions.sh
. /tests/functions.sh

fail()
{
	echo "FAILED: $*"
	for file in /var/log/libvirt/qemu/*.log /job/*.console /tmp/libvirtd.log; do
		[ ! -e "$file" ] || { echo "== $file"; tail -n 25 "$file"; }
	done
	exit 1
}

rule()
{
	echo "ok $*"
}

# refused TEXT COMMAND...: it fails with this text.
refused()
{
	text=$1
	shift
	if "$@" >/tmp/refused 2>&1; then fail "accepted: $*"; fi
	grep -q -- "$text" /tmp/refused || fail "$*: $(cat /tmp/refused); expected: $text"
}

# doc NAME [DOMAIN]: a command of the document, for this domain, and with $more settings of its adapter.
doc()
{
	case ${2:-vm1} in
	vm1) mac=52:54:00:12:34:56 ;;
	*) mac=52:54:00:12:34:57 ;;
	esac
	sed "s/vm1/${2:-vm1}/g; s/52:54:00:12:34:56/$mac$more/" "/job/doc/$1" >/tmp/command
	sh -e /tmp/command
}

# The answer of a domain to the command before.
answer()
{
	timeout 200 sh -c 'read -r status && [ "$status" = 0 ]' <"/job/$1.out" || fail "$1: ${2:-set up} failed"
}

# guest DOMAIN COMMAND: see libvirt-guest.sh.
guest()
{
	echo "$2" >"/job/$1.in"
	answer "$1" "$2"
}

# define NODE [GROUP]: without an adapter. The NIC of node 1 connects to that of node 2, or both are in a multicast group.
define()
{
	segment=${2:-127.0.0.1}
	case ${2:-}$1 in
	1) side=client ;;
	2) side=server ;;
	*) side=mcast ;;
	esac
	[ -p "/job/vm$1.in" ] || mkfifo -m 666 "/job/vm$1.in" "/job/vm$1.out"
	sed "s|NAME|vm$1|; s|EMULATOR|$emulator|; s|IMAGE|$image|; s|SIDE|$side|; s|SEGMENT|$segment|; s|5ADDRESS|5$((5 + $1))|; s|CLOCK|$clock|
		s|NODE|$1|; s|/job/NAME|/job/vm$1|" /tests/libvirt-domain.xml >"/tmp/new.xml"
	virsh --quiet define /tmp/new.xml
}

has_adapter()
{
	pvrdmactl adapters | grep -q "^$1 "
}

has_no_adapter()
{
	! has_adapter "$1"
}

has_no_device()
{
	! virsh qemu-monitor-command "$1" '{"execute":"qom-list","arguments":{"path":"/machine/peripheral"}}' | grep -q "\"pvrdma-$1\""
}

answers()
{
	virsh --quiet list >/dev/null 2>&1
}

start_libvirtd()
{
	libvirtd >>/tmp/libvirtd.log 2>&1 &
	libvirtd=$!
	until_true 60 answers
}

# As after a restart of the service. Domains go on.
restart_libvirtd()
{
	kill "$libvirtd"
	wait "$libvirtd" || true
	start_libvirtd
}

pingpong()
{
	guest vm1 active
	guest vm2 active
	guest vm1 serve_checked
	guest vm2 connect_checked
	guest vm1 served
}

# What libvirtd needs before its start, and the packages of /debs.
set_up_root()
{
	# The folders of the cache, and /job, are also for libvirt's user.
	open_folders "$cache"
	chmod 755 /job
	mkdir -p /sys /run/lock
	mount -t sysfs sys /sys
	{
		echo 'cgroup_controllers = []'
		echo 'namespaces = []'
		# The image is in the cache, and keeps its owner.
		echo 'dynamic_ownership = 0'
	} >>/etc/libvirt/qemu.conf
	apt-get --yes --quiet install /debs/pvrdmad_*.deb >/tmp/install.log 2>&1 || fail "$(cat /tmp/install.log)"
}
