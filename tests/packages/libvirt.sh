#!/bin/sh
# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
# libvirt.sh CACHE EMULATOR IMAGE CLOCK TIMES: runs in a clean root with libvirtd. Installs pvrdmad of /debs, and does what
# docs/libvirt.md says with two domains, whose parts are in /job. The commands of the document are /job/doc/NAME. The
# device is unplugged and plugged in TIMES times under traffic. Prints lines "ok RULE"; the first failure ends it.
set -eu
daemon=
# shellcheck source=tests/packages/daemon.sh
. /tests/daemon.sh
# shellcheck source=tests/packages/libvirt-functions.sh
. /tests/libvirt-functions.sh

cache=$1
emulator=$2
image=$3
clock=$4
times=$5
user=libvirt-qemu
more=

# served_by_pvrdmad USER GROUP: pvrdmad answers a client of this user: VERSION of vfio-user.
served_by_pvrdmad()
{
	setpriv --reuid "$1" --regid "$2" --clear-groups perl -MSocket -e '
		socket(my $s, AF_UNIX, SOCK_STREAM, 0) or exit 1;
		connect($s, sockaddr_un("/run/pvrdma/other.sock")) or exit 1;
		my $text = "{}\0";
		syswrite($s, pack("SSLLLSS", 1, 1, 16 + 4 + length($text), 0, 0, 0, 1) . $text) or exit 1;
		exit(!sysread($s, my $answer, 1));'
}

set_up_root
virtlogd -d
start_libvirtd
virsh version || true
define 1
define 2
cd /tmp
doc dumpxml
doc insert
doc define
doc dumpxml vm2
doc insert vm2
doc define vm2

# ------------------------------------------------------------------- without pvrdmad, without the hook

refused 'no pvrdmad at /run/pvrdma/control: start it with' doc start
rule "a domain does not start without pvrdmad"
start_pvrdmad

mv /etc/libvirt/hooks/qemu.d/pvrdma /tmp/hook
restart_libvirtd
doc insert 2>/tmp/note
grep -q '^pvrdmactl: note: /etc/libvirt/hooks/qemu.d/pvrdma is not installed: ' /tmp/note || fail "no note: $(cat /tmp/note)"
refused '/run/pvrdma/vm1.sock' virsh start vm1
rule "a domain does not start without the hook"
mv /tmp/hook /etc/libvirt/hooks/qemu.d/pvrdma
doc insert 2>/tmp/note
[ ! -s /tmp/note ] || fail "$(cat /tmp/note)"
restart_libvirtd

# -------------------------------------------------------------------------- a domain with an adapter

doc start vm2
answer vm2
process=$(cat /run/libvirt/qemu/vm2.pid)
[ "$(stat -c %U "/proc/$process")" = $user ] || fail "QEMU's user is $(stat -c %U "/proc/$process")"
has_adapter vm2 || fail "$(pvrdmactl adapters)"
rule "a domain starts with the adapter that the hook made"
virsh --quiet destroy vm2
until_true 20 has_no_adapter vm2
rule "the hook removes the adapter when the domain ends"

more=,interrupts=msi
for domain in vm1 vm2; do
	doc dumpxml $domain
	doc user $domain
	doc define $domain
done
# The NIC of vm1 connects to that of vm2.
doc start vm2
doc start vm1
answer vm1
answer vm2
pingpong
rule "ibv_rc_pingpong between two domains"

# ----------------------------------------------------------------------------------- permissions

[ "$(stat -c '%G %a' /run/pvrdma/vm1.sock)" = "kvm 770" ] || fail "$(ls -l /run/pvrdma)"
pvrdmactl add-adapter "name=other,socket=/run/pvrdma/other.sock,mac=52:54:00:12:34:99,user=$user"
served_by_pvrdmad $user kvm || fail "$user cannot use an adapter with user=$user"
! served_by_pvrdmad nobody kvm || fail "pvrdmad answers the user nobody of the group kvm at an adapter with user=$user"
! served_by_pvrdmad nobody nogroup || fail "pvrdmad answers the user nobody of the group nogroup"
pvrdmactl remove-adapter other
rule "libvirt's user connects, and no other user"
case $(virsh --version) in
9.*) doc apparmor ;;
esac
printf '#include <tunables/global>\nprofile test { #include <abstractions/libvirt-qemu> }\n' >/tmp/profile
apparmor_parser --skip-kernel-load --skip-cache --preprocess /tmp/profile >/tmp/profile.all || fail "AppArmor refuses the rules"
grep -q 'run/pvrdma/\*.sock rw' /tmp/profile.all || fail "libvirt's profile of QEMU has no rule for the sockets"
apparmor_parser --skip-kernel-load --skip-cache --quiet /tmp/profile || fail "AppArmor cannot compile the rules"
rule "AppArmor's profile of QEMU has the rules"

# ------------------------------------------------------------------------------------- hot plug

round=0
while [ $round -lt "$times" ]; do
	round=$((round + 1))
	guest vm1 serve
	guest vm2 connect
	doc unplug >/tmp/virsh.log
	guest vm1 gone
	until_true 60 has_no_device vm1
	guest vm1 end
	guest vm2 end
	doc plug >/tmp/virsh.log
	guest vm1 active
done
pingpong
guest vm1 no_complaint
guest vm2 no_complaint
rule "$times times unplugged and plugged in by virsh under traffic"

# ------------------------------------------------------------------------------ migration and save

refusal="'pvrdma-is-plugged' does not support live migration"
refused "$refusal" virsh save vm1 /job/saved
refused error: virsh snapshot-create vm1
[ "$(virsh domstate vm1)" = running ] || fail "vm1 is $(virsh domstate vm1)"
pingpong
rule "a domain with its device is not saved, and continues"

unplug()
{
	doc unplugged
	doc unplug
	guest vm1 gone
	until_true 60 has_no_device vm1
	doc unguard
}

save_and_restore()
{
	unplug
	virsh --quiet save --xml unplugged.xml vm1 /job/saved
	until_true 20 has_no_adapter vm1
	virsh --quiet restore --bypass-cache /job/saved
	has_adapter vm1 || fail "$(pvrdmactl adapters)"
	doc plug
	doc guard
	pingpong
	guest vm1 no_complaint
	refused "$refusal" virsh save vm1 /job/saved
	rule "a domain is saved without its device, restored, and gets the device back"
	doc unguard vm2
	virsh --quiet save vm2 /job/saved2
	refused 'cannot migrate, save or restore the RDMA device' virsh restore /job/saved2
	rule "the hook refuses to restore a domain with its device"
}

case $(virsh --version) in
# It calls QEMU 11.1's "migrate" with a parameter that was removed, for each VM.
9.*)
	unplug
	refused "Parameter 'detach' is unexpected" virsh save --xml unplugged.xml vm1 /job/saved
	virsh --quiet destroy vm2
	;;
*) save_and_restore ;;
esac
virsh --quiet destroy vm1
until_true 20 has_no_adapter vm1
[ "$(pvrdmactl --json adapters | grep -c '"name"')" = 0 ] || fail "$(pvrdmactl adapters)"
kill "$libvirtd" "$daemon"
