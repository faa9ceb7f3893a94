# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
# shellcheck shell=bash
# Sourced by the scripts that make kernels for VMs. Wants common.sh.

# unpack_vmlinux VMLINUZ VMLINUX: the ELF image in a compressed kernel, which QEMU boots through its PVH entry. Emulated CPUs
# unpack it in five seconds, this CPU in one.
unpack_vmlinux()
{
	local from=$1 to=$2 at

	need xz xz-utils
	need zstd zstd
	for at in $(LC_ALL=C grep -abo $'\xfd7zXZ' -- "$from" | cut -d: -f1); do
		tail -c "+$((at + 1))" -- "$from" | xz -dc >"$to" 2>/dev/null || true # more follows the stream
		! is_elf "$to" || return 0
	done
	for at in $(LC_ALL=C grep -abo $'\x28\xb5\x2f\xfd' -- "$from" | cut -d: -f1); do
		tail -c "+$((at + 1))" -- "$from" | zstd -dc >"$to" 2>/dev/null || true
		! is_elf "$to" || return 0
	done
	die "$from has no kernel that xz or zstd unpacks"
}

is_elf()
{
	[[ $(head -c 4 -- "$1") == $'\x7fELF' ]]
}
