#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
# PID 1 of a domain of libvirt.sh: sets up network and RDMA, then runs the commands that the host writes to the channel
# "test", a line each. The answer is the status. All output is in the console's file.

export PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/root
node=$(sed 's/.*test.node=//' /proc/cmdline)
address=192.0.2.$node
pid=

# until_true SECONDS COMMAND...
until_true()
{
	local end=$((SECONDS + $1))
	shift
	until "$@"; do
		((SECONDS < end)) || { echo "in vain: $*"; return 1; }
		sleep 0.05
	done
}

has_gid()
{
	local found
	found=$(grep -l "ffff:c000:020$node" /sys/class/infiniband/*/ports/1/gids/* 2>/dev/null | head -n 1)
	[ -n "$found" ] || return
	index=${found##*/}
	device=${found#/sys/class/infiniband/}
	device=${device%%/*}
	grep -q ACTIVE "/sys/class/infiniband/$device/ports/1/state"
}

has_no_device()
{
	[ -z "$(ls /sys/class/infiniband 2>/dev/null)" ]
}

is_rts()
{
	rdma resource show qp link "$device/1" | grep -q 'type RC state RTS'
}

listens()
{
	ss -ltnH 'sport = :18515' | grep -q .
}

# Commands of the host.

active()
{
	until_true 60 has_gid
}

gone()
{
	until_true 60 has_no_device
}

# A pingpong: serve on one node, connect on the other, end on both. It runs until then, or until its device is gone.
serve()
{
	ibv_rc_pingpong -d "$device" -g "$index" -e -n 100000000 & pid=$!
	until_true 60 listens
}

connect()
{
	ibv_rc_pingpong -d "$device" -g "$index" -e -n 100000000 192.0.2.1 & pid=$!
	until_true 60 is_rts
}

# It has not ended.
running()
{
	kill -0 "$pid"
}

end()
{
	kill "$pid" 2>/dev/null
	wait "$pid"
	true
}

serve_checked()
{
	ibv_rc_pingpong -d "$device" -g "$index" -c -n 500 & pid=$!
	until_true 60 listens
}

connect_checked()
{
	ibv_rc_pingpong -d "$device" -g "$index" -c -n 500 192.0.2.1
}

served()
{
	wait "$pid"
}

# The kernel has reported no error of its own.
no_complaint()
{
	! dmesg | grep -E 'WARNING|BUG|Oops|Call Trace'
}

set_up()
{
	local module nic
	mount -t tmpfs run /run
	mount -t tmpfs tmp /tmp
	for module in /parts/modules/*.ko; do
		insmod "$module"
	done
	dmesg -n 7
	insmod /parts/pvrdma.ko
	cp /parts/provider/libpvrdma-rdmav34.so /usr/lib/x86_64-linux-gnu/libibverbs/
	cp /parts/provider/pvrdma.driver /etc/libibverbs.d/
	rm -f /etc/libibverbs.d/vmw_pvrdma.driver
	ulimit -l unlimited
	until_true 30 ls -d /sys/class/net/eth* >/dev/null
	nic=$(ls -d /sys/class/net/eth*)
	ip link set lo up
	ip link set "${nic##*/}" up
	ip address add "$address/24" dev "${nic##*/}"
}

set_up
channel=$(grep -l '^test$' /sys/class/virtio-ports/*/name)
channel=${channel%/name}
exec 3<>"/dev/${channel##*/}"
echo 0 >&3
while read -r line <&3; do
	echo "+ $line"
	$line
	echo $? >&3
done
