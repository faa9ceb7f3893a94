#!/bin/sh
# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
# Runs in the root of a plain system with pvrdmad, libvirtd and /opt/qemu: the domain vm1, which libvirt starts at boot. The
# domain's disk is a boot sector that waits for the power button, and then switches the domain off.
set -eu

disk=/var/lib/libvirt/images/vm1.img
domain=/etc/libvirt/qemu/vm1.xml

# Enables the event, reads the status until it has the bit of the button, and enters S5: port 0x600 is PM1_STS of q35.
printf '\272\002\006\270\000\001\357\272\000\006\364\355\366\304\001\164\371\272\004\006\270\000\040\357\353\376' >$disk
truncate -s 510 $disk
printf '\125\252' >>$disk
truncate -s 1M $disk

cat >/opt/qemu/qemu-system-x86_64 <<'END'
#!/bin/sh
r=/opt/qemu/root
export QEMU_MODULE_DIR=$r/usr/lib/x86_64-linux-gnu/qemu
exec $r/usr/lib64/ld-linux-x86-64.so.2 --library-path $r/usr/lib/x86_64-linux-gnu $r/usr/bin/qemu-system-x86_64 \
	-L $r/usr/share/qemu -L $r/usr/share/seabios -L $r/usr/lib/ipxe/qemu "$@"
END
chmod 755 /opt/qemu/qemu-system-x86_64
cat >/tmp/vm1.xml <<END
<domain type='qemu'>
  <name>vm1</name>
  <memory unit='MiB'>64</memory>
  <vcpu>1</vcpu>
  <os><type arch='x86_64' machine='q35'>hvm</type></os>
  <features><acpi/><apic/></features>
  <devices>
    <emulator>/opt/qemu/qemu-system-x86_64</emulator>
    <disk type='file' device='disk'>
      <driver name='qemu' type='raw'/>
      <source file='$disk'/>
      <target dev='sda' bus='sata'/>
    </disk>
    <interface type='server'>
      <mac address='52:54:00:12:34:56'/>
      <source address='127.0.0.1' port='5558'/>
      <model type='virtio'/>
    </interface>
    <memballoon model='none'/>
  </devices>
</domain>
END
pvrdmactl domain-xml --vm /tmp/vm1.xml name=vm1,socket=/run/pvrdma/vm1.sock,mac=52:54:00:12:34:56
cp /tmp/vm1.xml $domain
mkdir -p /etc/libvirt/qemu/autostart /var/log/journal
ln -s $domain /etc/libvirt/qemu/autostart/vm1.xml
