#!/bin/sh
# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
# libvirt-migration.sh CACHE EMULATOR IMAGE CLOCK: runs in a clean root. Two hosts, which are namespaces with a libvirtd and
# a pvrdmad each, and two domains with the device that QEMU migrates, as docs/libvirt.md says. The RC queue pairs of a domain
# that moves go on. Prints lines "ok RULE"; the first failure ends it.
set -eu
daemon=
# shellcheck source=tests/packages/daemon.sh
. /tests/daemon.sh
# shellcheck source=tests/packages/libvirt-functions.sh
. /tests/libvirt-functions.sh

cache=$1
emulator=${2:-}
image=${3:-}
clock=${4:-}
more=

# on2 COMMAND...: on host 2
on2()
{
	nsenter --target "$host2" --mount --net --uts -- "$@"
}

# configure HOST OTHER: pvrdmad and libvirtd of a host
configure()
{
	echo "host$1" >/proc/sys/kernel/hostname
	{
		echo "name = host$1"
		echo "listen = 10.9.0.$1"
		echo "peer = host$2=10.9.0.$2"
		echo 'tls-psk-file = /etc/pvrdma/psk'
	} >/etc/pvrdma/pvrdmad.conf
	{
		echo 'listen_tls = 0'
		echo 'listen_tcp = 1'
		echo 'auth_tcp = "none"'
		echo "host_uuid = \"0f1e2d3c-4b5a-6978-8796-00000000000$1\""
	} >>/etc/libvirt/libvirtd.conf
}

# What host 2 has of its own, in its mount namespace. The file /job/host2.ready tells that all of it is there.
begin_host2()
{
	mkdir -p /job/host2
	cp -a /etc/libvirt /etc/pvrdma /var/lib/libvirt /job/host2/
	mount --bind /job/host2/libvirt /etc/libvirt
	mount --bind /job/host2/pvrdma /etc/pvrdma
	mount -t tmpfs run /run
	mount -t tmpfs log /var/log
	mount -t tmpfs lib /var/lib/libvirt
	mount -t tmpfs cache /var/cache/libvirt
	mkdir -p /run/lock /var/log/libvirt/qemu /var/lib/libvirt/qemu
	chown libvirt-qemu:libvirt-qemu /var/lib/libvirt/qemu
	configure 2 1
	: >/job/host2.ready
	until [ -e /job/host2.linked ]; do sleep 0.1; done
	start_pvrdmad
	virtlogd -d
	exec libvirtd --listen >/job/libvirtd2.log 2>&1
}

domains2()
{
	on2 virsh --quiet list >/dev/null 2>&1
}

link_hosts()
{
	ip link add to2 type veth peer name to1
	ip link set to1 netns "$host2"
	ip address add 10.9.0.1/24 dev to2
	ip link set to2 up
	ip route add 224.0.0.0/4 dev to2
	on2 ip link set lo up
	on2 ip address add 10.9.0.2/24 dev to1
	on2 ip link set to1 up
	on2 ip route add 224.0.0.0/4 dev to1
	: >/job/host2.linked
}

# migrate FROM TO: the documented command, by TCP in the place of ssh
migrate()
{
	sed "s|qemu+ssh://host2|qemu+tcp://host$2|" /job/doc/migrate-device >/tmp/migrate
	if [ "$1" = 2 ]; then on2 sh -e /tmp/migrate; else sh -e /tmp/migrate; fi
}

has_no_adapter2()
{
	! on2 pvrdmactl adapters | grep -q "^$1 "
}

# Both programs of the pingpong that was begun before.
goes_on()
{
	guest vm1 running
	guest vm2 running
	guest vm1 no_complaint
	guest vm2 no_complaint
}

if [ "$1" = host2 ]; then
	begin_host2
fi
set_up_root
head -c 32 /dev/urandom | od -An -tx1 | tr -d ' \n' >/etc/pvrdma/psk
chown 61184 /etc/pvrdma/psk
chmod 400 /etc/pvrdma/psk
printf '127.0.0.1 localhost\n10.9.0.1 host1\n10.9.0.2 host2\n' >/etc/hosts
unshare --mount --net --uts sh /tests/libvirt-migration.sh host2 >/job/host2.log 2>&1 &
host2=$!
until_true 20 test -e /job/host2.ready
configure 1 2
link_hosts
start_pvrdmad
virtlogd -d
libvirtd --listen >/tmp/libvirtd.log 2>&1 &
libvirtd=$!
until_true 60 answers
until_true 60 domains2

cd /tmp
for domain in vm1 vm2; do
	define "${domain#vm}" 230.0.0.1
	doc dumpxml $domain
	doc migratable $domain
	doc define $domain
	doc start $domain
done
answer vm1
answer vm2
guest vm1 active
guest vm2 active
guest vm1 serve
guest vm2 connect
goes_on
rule "two domains with the device of QEMU with -device pvrdma"

on2 pvrdmactl add-adapter name=vm1,socket=/run/pvrdma/vm1.sock,mac=52:54:00:12:34:56,hwversion=13
if migrate 1 2 >/tmp/refused 2>&1; then fail "migrated to another version of the device"; fi
[ "$(virsh domstate vm1)" = running ] || fail "vm1 is $(virsh domstate vm1): $(cat /tmp/refused)"
goes_on
rule "a domain whose state is refused goes on at its host"
on2 pvrdmactl remove-adapter vm1 || true
until_true 20 has_no_adapter2 vm1

for round in 1 2; do
	migrate 1 2
	[ "$(on2 virsh domstate vm1)" = running ] || fail "vm1 is $(on2 virsh domstate vm1) at host 2"
	until_true 20 has_no_adapter vm1
	goes_on
	on2 pvrdmactl paths | grep vm1 || fail "host 2 has no path: $(on2 pvrdmactl paths)"
	migrate 2 1
	[ "$(virsh domstate vm1)" = running ] || fail "vm1 is $(virsh domstate vm1)"
	until_true 20 has_no_adapter2 vm1
	goes_on
	echo "round $round"
done
rule "a domain moves there and back twice, and its queue pairs go on"

guest vm1 end
guest vm2 end
pingpong
virsh --quiet save vm1 /job/saved
until_true 20 has_no_adapter vm1
virsh --quiet restore --bypass-cache /job/saved
pingpong
guest vm1 no_complaint
rule "a domain is saved and restored with its device"
virsh --quiet destroy vm1
virsh --quiet destroy vm2
until_true 20 has_no_adapter vm1
kill "$libvirtd" "$daemon" "$host2"
