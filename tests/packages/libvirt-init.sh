#!/bin/busybox sh
# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
# shellcheck shell=dash
# First program of a domain of libvirt.sh, in the place of vmlab's initramfs-init: all that the VM needs is on its two disks,
# because QEMU migrates and saves no VM that has a 9p share.

bb=/bin/busybox
$bb mount -t proc proc /proc
$bb mount -t sysfs sys /sys
$bb mount -t devtmpfs dev /dev
for module in /modules/*.ko; do
	[ ! -e "$module" ] || $bb insmod "$module"
done
$bb mkdir /lower /upper
$bb mount -t squashfs -o ro /dev/vda /lower
$bb mount -t tmpfs upper /upper
$bb mkdir /upper/data /upper/work
$bb mount -t overlay -o lowerdir=/lower,upperdir=/upper/data,workdir=/upper/work root /root
$bb mkdir -p /root/parts
$bb mount -t squashfs -o ro /dev/vdb /root/parts
for mount in proc sys dev; do
	$bb mount --move /$mount /root/$mount
done
exec $bb switch_root /root /parts/guest.sh
