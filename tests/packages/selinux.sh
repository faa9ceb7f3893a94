#!/bin/sh
# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
# Runs in a clean root with SELinux's policy of Debian: builds the module of /selinux by the commands of docs/libvirt.md in
# /job, and searches the policy with it. Prints lines "ok RULE"; the first failure ends it.
set -eu

fail()
{
	echo "FAILED: $*"
	exit 1
}

rule()
{
	echo "ok $*"
}

# allowed SOURCE TARGET CLASS PERMISSION
allowed()
{
	sesearch --allow --source "$1" --target "$2" --class "$3" --perms "$4" "$policy" | grep -q '^allow '
}

mkdir -p /usr/share/pvrdmad /tmp/module
cp -r /selinux /usr/share/pvrdmad/selinux
cd /tmp/module
# A chroot has no policy in force, which could be replaced.
semodule()
{
	/usr/sbin/semodule --noreload --store default "$@"
}
. /job/commands
semodule --list-modules | grep -q '^pvrdma' || fail "$(semodule --list-modules)"
rule "the module is built and installed"
policy=$(ls /etc/selinux/default/policy/policy.*)

for user in svirt_t virtd_t; do
	allowed $user pvrdmad_t unix_stream_socket connectto || fail "$user cannot connect"
	allowed $user pvrdma_runtime_t sock_file write || fail "$user cannot use a socket"
done
allowed svirt_t pvrdma_tmpfs_t file map || fail "svirt_t cannot map the device's memory"
allowed svirt_t pvrdmad_t fd use || fail "svirt_t cannot use file descriptors"
rule "libvirt and its QEMUs connect"
for user in user_t httpd_t sshd_t container_t dnsmasq_t postfix_master_t; do
	seinfo --type $user "$policy" | grep -q "$user\$" || continue
	! allowed $user pvrdmad_t unix_stream_socket connectto || fail "$user can connect"
	! allowed $user pvrdma_runtime_t sock_file write || fail "$user can use a socket"
	count=$((${count:-0} + 1))
done
[ "${count:-0}" -ge 3 ] || fail "the policy has $count of these types"
rule "other domains do not connect"

for expected in "/usr/sbin/pvrdmad pvrdmad_exec_t --" "/run/pvrdma/vm1.sock pvrdma_runtime_t -s" "/run/pvrdma pvrdma_runtime_t -d"; do
	# shellcheck disable=SC2086  # three words
	set -- $expected
	grep -q ":$2:" /etc/selinux/default/contexts/files/file_contexts || fail "no $2 in file_contexts"
	found=$(matchpathcon -f /etc/selinux/default/contexts/files/file_contexts -n "$1")
	case $found in
	*":$2:"*) ;;
	*) fail "$1 has the context $found, expected $2" ;;
	esac
done
rule "files have their contexts"
