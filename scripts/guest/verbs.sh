# shellcheck shell=bash
# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
# Functions for VMs that are hosts: Soft-RoCE is their RDMA NIC, pvrdmad and a fake guest run in them. There are two, of
# the same script, with $SHARE as bench_lib/verbs.py fills it.

# shellcheck source=/dev/null
. /vmlab/guest/steps.sh

dir=/tmp/verbs
nic=nic0 # the NIC below rxe0; TCP goes beside it, and stays when its port is down
other=$((3 - NODE))
starts=0
mkdir -p $dir

# The two NICs of a VM are in the same network, so each must answer for its own address only.
make_nic()
{
	sysctl -qw net.ipv4.conf.all.arp_ignore=1 net.ipv4.conf.all.arp_announce=2
	modprobe -a ib_uverbs rdma_rxe macvlan && ip link add $nic link "$NETDEV" type macvlan &&
		ip address add "10.78.0.$NODE/24" dev $nic && ip link set $nic up &&
		rdma link add rxe0 type rxe netdev $nic && until_true 100 has_ip_gid rxe0
}

# The guests' own libraries fit their libibverbs' drivers; the host's are for what the host has built.
ours() { LD_LIBRARY_PATH=$SHARE/lib "$SHARE/$1" "${@:2}"; }

ctl() { ours pvrdmactl --control $dir/control "$@" --json 2>/dev/null; }

# start_daemon OPTION...: at $MY_IP, with $device (rxe0) as NIC; fails unless it is "ready" within 10 s.
start_daemon()
{
	local log=$dir/log$((++starts))
	(umask 077 && printf '%064x\n' 4711 >$dir/key)
	# Not by a function: a signal is to reach the daemon itself.
	LD_LIBRARY_PATH=$SHARE/lib "$SHARE/pvrdmad" --name "host$NODE" --control $dir/control --listen "$MY_IP" --peer "host$other=$PEER_IP" \
		--rdma-device "${device:-rxe0}" --adapter "name=vm$NODE,socket=$dir/vm$NODE,mac=52:54:00:12:34:0$NODE" "$@" 2>$log &
	daemon=$!
	until_true 100 grep -q 'ready, ' $log || { cat $log; return 1; }
}

stop_daemon()
{
	local status=0
	kill "$daemon"
	wait "$daemon" || status=$?
	echo "daemon-status $status"
}

# pair PORT PROGRAM OPTION...: node 1's guest joins node 2's.
pair()
{
	local port=$1 far=(--join "$PEER_IP:$1")
	[ "$NODE" = 1 ] || far=(--serve "$port")
	shift
	ours "$@" "${far[@]}" "$NODE=$dir/vm$NODE"
}

# By which the other host is reached, and why; not that of each GID, which is in the reply, too.
path()
{
	ctl paths | tr -d '\n' | grep -o "\"host\": *\"host$other\", *\"path\": *\"[a-z]*\", *\"reason\": *\"[^\"]*\"" |
		sed 's/^[^,]*, *//'
}

# until_path verbs|tcp WHEN: says what it was then; the next look may find something else.
until_path()
{
	local end=$((SECONDS + 30)) now
	while now=$(path) && ! grep -q "^\"path\": *\"$1\"" <<<"$now"; do
		[ $SECONDS -le $end ] || break
		sleep 0.1
	done
	if grep -q "^\"path\": *\"$1\"" <<<"$now"; then echo "path-$2 {$now}"; return; fi
	echo "timeout: $1 $2: {$now}"
	ctl peers
	cat $dir/log*
	return 1
}

# The bandwidth of ib_write_bw over rxe0, on node 1.
raw()
{
	local command=(ib_write_bw -d rxe0 -x "$(gid_index_of rxe0)" -s "$size" -n 60 -F)
	barrier raw
	if [ "$NODE" = 2 ]; then
		"${command[@]}" >/dev/null || return
	else
		sleep 1 # the server has no other way to say that it listens
		"${command[@]}" "$PEER_IP" >$dir/raw || return
		echo "@raw $(awk -v size="$size" '$1 == size { print $4 }' $dir/raw)"
	fi
}

# measure LABEL OPTION...: what our guests reach, "@LABEL JSON" in bytes/s, on node 1.
measure()
{
	pair 7901 hosts_bench --what write_bw --size 1048576 --seconds 4 "${@:2}" >$dir/ours || return
	[ "$NODE" = 2 ] || echo "@$1 $(cat $dir/ours)"
}

# bandwidths ROUNDS: by turns, on node 1, what our guests reach, "@ours JSON" in bytes/s, and ib_write_bw, "@raw MIB/S".
bandwidths()
{
	local size=1048576 round
	for round in $(seq "$1"); do
		barrier "ours$round"
		measure ours --linear || return
		raw || return
	done
}
