#!/bin/sh
# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
# disk.sh PACKAGE...: runs in the root of a plain system: installs these of our packages, and makes its disk, /out/disk,
# beside its kernel and initial RAM file system. /qemu, if it is there, is a QEMU for the domain of boot-domain.sh. The one
# addition of the test is a service that runs node.sh of the share and then switches the VM off. The packages are installed
# here because TCG takes minutes to compile the driver.
set -eu

files=
for package; do
	files="$files /debs/${package}_*.deb"
done
# shellcheck disable=SC2086  # patterns
apt-get --yes --quiet install $files
if [ -d /qemu ]; then
	cp -a /qemu /opt/qemu
	sh /tests/boot-domain.sh
fi
rm -f /usr/sbin/policy-rc.d
echo '/dev/vda / ext4 errors=remount-ro 0 1' >/etc/fstab
cat >/etc/systemd/system/proof.service <<END
[Unit]
After=multi-user.target
SuccessAction=poweroff
FailureAction=poweroff

[Service]
Type=oneshot
ExecStart=/bin/sh -c 'modprobe 9pnet_virtio && mount -t 9p -o trans=virtio,version=9p2000.L share /mnt && sh /mnt/node.sh >/mnt/node\$(cat /proc/sys/kernel/hostname | tail -c 2).out 2>&1'

[Install]
WantedBy=graphical.target
END
mkdir -p /etc/systemd/system/graphical.target.wants
ln -s ../proof.service /etc/systemd/system/graphical.target.wants/proof.service
cp /boot/vmlinuz-* /out/vmlinuz
cp /boot/initrd.img-* /out/initrd
mkdir -p /tmp/root
# Without what is mounted below.
mount --bind / /tmp/root
truncate -s 4G /out/disk
mke2fs -q -t ext4 -d /tmp/root /out/disk
umount /tmp/root
