# shellcheck shell=bash
# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
# Functions for the steps of bench/apps, in addition to steps.sh. Application NAME is the function app_NAME, which runs on
# both nodes, with pvrdma, rxe or tcp as its argument, and prints on node 2 what bench_lib/apps reads.
#
# rdma_cm finds a device by its address, and all are at the same NIC: so there is one device at a time, and none with TCP.

port=18800

set_up_apps()
{
	# Soft-RoCE's lines in the kernel's log are many, and the console is slow.
	dmesg -n 1
	modprobe rdma_rxe
}

no_pvrdma() { [ ! -e "/sys/module/$DRIVER" ] || unload; }
no_rxe() { [ ! -e /sys/class/infiniband/rxe0 ] || rdma link delete rxe0; }

use_pvrdma()
{
	no_rxe
	[ -e "/sys/module/$DRIVER" ] || load
}

use_rxe()
{
	no_pvrdma && no_rxe && rdma link add rxe0 type rxe netdev "$NETDEV" && until_true 100 has_ip_gid rxe0
}

use_tcp() { no_rxe && no_pvrdma; }

# run_app DEVICE NAME. $port is a new one for each run.
run_app()
{
	local status=0
	port=$((port + 1))
	barrier "$STEP.$1.begin" 60 || return
	echo "@run $1"
	if "use_$1" && barrier "$STEP.$1.ready" 60; then
		"app_$2" "$1" || status=$?
	else
		status=1
	fi
	echo "@end $status"
	return $status
}

# connections COUNT COMMAND: it that often, and how many nanoseconds all of it took.
connections()
{
	local count=$1 begin i
	begin=$(date +%s%N)
	for ((i = 0; i < count; i++)); do
		$2 >/dev/null 2>&1 || return
	done
	echo "@connections $count $(($(date +%s%N) - begin))"
}

app_rping()
{
	local server_command=(rping -s -P -p "$port")
	local client_command=(connections 20 "rping -c -a node1 -p $port -C 1")
	serve "$port" 1 2
}

# The later cmtime has a mode for sockets; before that it wants to see some RDMA device. Its server ends by itself.
app_cmtime()
{
	local count=500 program=(cmtime) how=serve server_command client_command
	if [ "$1" = tcp ]; then
		use_pvrdma && install "$SHARE/cmtime" /tmp/later-cmtime || return
		program=(/tmp/later-cmtime -S)
		how=meet
	fi
	server_command=("${program[@]}" -p "$port" -c $count)
	client_command=("${program[@]}" -p "$port" -c $count -s node1)
	$how "$port" 1 2 && echo "@connections $count"
}

# In one VM.
app_qp_cost() { [ "$NODE" = 1 ] || env -u RDMA_DEV "$SHARE/pvr_qpcost"; }

for more in "$SHARE"/bench-app-*.sh; do
	# shellcheck source=/dev/null
	[ ! -e "$more" ] || . "$more"
done
