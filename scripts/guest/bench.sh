# shellcheck shell=bash
# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
# Functions for the steps of bench/vm, in addition to steps.sh.
#
# Results are printed between lines of bench/vm's own: "@run DEVICE", "@guest TICKS" (how long this guest's
# CPUs were busy) and "@host NAME=NANOSECONDS..." before and after, "@end STATUS".

devices=/run/bench-devices
port=18515
qperf_port=19765

# Soft-RoCE at the same NIC, and qperf's server, which outlives its step. Soft-RoCE's lines in the kernel's log, one for
# each look at the link's speed, are kept from the console, which is slow.
set_up_devices()
{
	dmesg -n 1
	modprobe rdma_rxe && rdma link add rxe0 type rxe netdev "$NETDEV" &&
		until_true 50 has_ip_gid rxe0 || return
	{
		echo "declare -A device=([pvrdma]=$RDMA_DEV [rxe]=rxe0)"
		echo "declare -A gid=([pvrdma]=$GID_INDEX [rxe]=$(gid_index_of rxe0))"
	} >$devices
	[ "$NODE" = 1 ] || return 0
	setsid qperf >/dev/null 2>&1 &
	until_true 50 listening $qperf_port
}

busy_ticks()
{
	local user nice system idle iowait irq softirq
	# shellcheck disable=SC2034 # idle and iowait are in between
	read -r _ user nice system idle iowait irq softirq _ </proc/stat
	echo "@guest $((user + nice + system + irq + softirq))"
}

# Only the client asks the host.
host_time() { [ "$NODE" != 2 ] || echo "@host $(labctl cpu)"; }

# measure DEVICE COMMAND...: node 1 is the server, node 2 the client.
measure()
{
	local name=$1 status=0
	shift
	# shellcheck source=/dev/null
	. $devices
	barrier "$STEP.$name" 60 || return
	echo "@run $name"
	host_time
	busy_ticks
	"on_$name" "$@" || status=$?
	busy_ticks
	host_time
	echo "@end $status"
	return $status
}

on_verbs()
{
	local gid_option=-x name=$1
	shift
	case $1 in
	ibv_*) gid_option=-g ;;
	*) set -- "$@" -F ;;
	esac
	talk "$port" 1 2 "$@" -d "${device[$name]}" $gid_option "${gid[$name]}"
	port=$((port + 1))
}

on_pvrdma() { on_verbs pvrdma "$@"; }
on_rxe() { on_verbs rxe "$@"; }

on_tcp()
{
	local status=0
	[ "$NODE" != 2 ] || "$@" || status=$?
	barrier "$STEP.tcp.over" 60 || return
	return $status
}
