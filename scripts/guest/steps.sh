# shellcheck shell=bash
# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
# Functions for the steps of VM tests, see run-steps.

driver=/vmlab/driver/$DRIVER.ko
ibverbs=/usr/lib/x86_64-linux-gnu/libibverbs

# nap SECONDS: sleep without a process. Under TCG one costs some 10 ms.
[ -p /tmp/nap ] || mkfifo /tmp/nap
exec {naps}<>/tmp/nap
nap() { read -rt "$1" -u "$naps" || true; }

# Flags are files that all nodes and the host see; a flag belongs to its step.
raise() { : >"$SHARE/flags/$STEP.$1"; }
raised() { [ -e "$SHARE/flags/$STEP.$1" ]; }

# await NAME [OTHER]: until one of the flags is raised. The step's own time limit ends it.
await()
{
	until raised "$1" || { [ $# -gt 1 ] && raised "$2"; }; do nap 0.05; done
}

# until_true TENTHS COMMAND...: try every tenth of a second. False when it never became true.
until_true()
{
	local tenths=$1
	shift
	until "$@"; do
		[ $((tenths -= 1)) -ge 0 ] || return 1
		nap 0.1
	done
}

# Does a program listen at this port, be it of TCP or of rdma_cm?
listening()
{
	local hex line lines more
	printf -v hex %04X "$1"
	mapfile -t lines </proc/net/tcp
	mapfile -t more </proc/net/tcp6
	for line in "${lines[@]}" "${more[@]}"; do
		[[ ! $line =~ ^\ *[0-9]+:\ [0-9A-F]+:$hex\ [0-9A-F]+:[0-9A-F]+\ 0A\  ]] || return 0
	done
	# Most programs listen at a port of TCP, and soon.
	((++looks % 3 == 0)) && rdma resource show cm_id 2>/dev/null | grep -q "state LISTEN.*:$1\b"
}

# meet PORT SERVER CLIENT: the command in the array server_command on node SERVER and, once PORT listens, the one in
# client_command on node CLIENT, which may be the same. Fails where one end fails.
meet()
{
	local port=$1 server=$2 client=$3
	local name="node$NODE port $1" status=0 pid guard
	if [ "$NODE" = "$server" ]; then
		echo "$name: ${server_command[*]}"
		"${server_command[@]}" &
		pid=$!
		until listening "$port"; do
			if ! kill -0 $pid 2>/dev/null; then
				wait $pid
				status=$?
				raise "dead.$port"
				echo "$name: the server ended with status $status before it listened"
				return $((status ? status : 1))
			fi
			nap 0.05
		done
		raise "up.$port"
	fi
	if [ "$NODE" = "$client" ]; then
		await "up.$port" "dead.$port"
		if raised "dead.$port"; then
			echo "$name: there is no server"
			return 1
		fi
		echo "$name: ${client_command[*]}"
		("${client_command[@]}") || {
			status=$?
			echo "$name: the client ended with status $status"
			raise "failed.$port"
		}
	fi
	if [ "$NODE" = "$server" ]; then
		# A client that failed does not tell its server.
		while nap 1; do ! raised "failed.$port" || kill $pid; done 2>/dev/null &
		guard=$!
		wait $pid || {
			status=$?
			echo "$name: the server ended with status $status"
		}
		kill $guard 2>/dev/null
		wait $guard 2>/dev/null
	fi
	return $status
}

# serve PORT SERVER CLIENT: like meet, with a server that never ends: it must be there, and is told to go, when the client
# is through.
serve()
{
	local name="node$NODE port $1" status=0 pid
	if [ "$NODE" = "$2" ]; then
		echo "$name: ${server_command[*]}"
		"${server_command[@]}" &
		pid=$!
		if until_true 200 listening "$1"; then raise "up.$1"; else raise "dead.$1"; fi
	fi
	if [ "$NODE" = "$3" ]; then
		await "up.$1" "dead.$1"
		echo "$name: ${client_command[*]}"
		raised "up.$1" && ("${client_command[@]}") || {
			status=$?
			echo "$name: the client ended with status $status"
		}
		raise "over.$1"
	fi
	if [ "$NODE" = "$2" ]; then
		await "over.$1"
		kill $pid || { status=1; echo "$name: the server was gone"; }
		wait $pid 2>/dev/null
	fi
	return $status
}

# talk PORT SERVER CLIENT COMMAND...: "COMMAND -p PORT" meets "COMMAND -p PORT nodeSERVER". In front of the client's goes
# the array client_env.
talk()
{
	local server_command=("${@:4}" -p "$1")
	local client_command=("${client_env[@]}" "${@:4}" -p "$1" "${server_name:-node$2}")
	meet "$1" "$2" "$3"
}

# as_user COMMAND, as_root COMMAND: instead of this shell, so in the background or in parentheses. An ordinary user with
# the limits that a login gets.
as_user()
{
	ulimit -l 8192
	cd /home/user && HOME=/home/user USER=user exec setpriv --reuid user --regid user --init-groups bash -c "$1"
}

as_root() { exec bash -c "$1"; }

# all PID...: wait for all, fail if one failed.
all()
{
	local pid status=0
	for pid; do
		wait "$pid" || status=$?
	done
	return $status
}

pingpong() { talk "$1" "$2" "$3" ibv_rc_pingpong -d "$RDMA_DEV" -g "$GID_INDEX" "${@:4}"; }

# perftest PORT SERVER CLIENT PROGRAM ARGUMENT...
perftest() { talk "$1" "$2" "$3" "$4" -F -d "$RDMA_DEV" -x "$GID_INDEX" "${@:5}"; }

# The driver of $RDMA_DEV, gone and back. The GID of $MY_IP must be where it was.
unload() { rmmod "$DRIVER"; }

has_gid()
{
	local type state port=/sys/class/infiniband/$RDMA_DEV/ports/1
	{ read -r type <"$port/gid_attrs/types/$GID_INDEX" && read -r state <"$port/state"; } 2>/dev/null &&
		[ "$type" = "RoCE v2" ] && [[ $state = *ACTIVE ]]
}

load()
{
	insmod "$driver" || return
	until_true 100 has_gid || {
		echo "10 s after insmod $RDMA_DEV has no GID $GID_INDEX or no active port"
		return 1
	}
}

# Warnings of the kernel since it booted, without those about each out-of-tree module.
complaints()
{
	dmesg -l emerg,alert,crit,err,warn | grep -iE 'pvrdma|infiniband|ib_|rdma|BUG|WARN' | grep -v taint
}

# provider NAME: from now on this node's programs find the provider NAME only: vmw_pvrdma, pvrdma or none.
provider()
{
	rm -f /etc/libibverbs.d/vmw_pvrdma.driver /etc/libibverbs.d/pvrdma.driver
	[ "$1" = none ] || echo "driver $1" >"/etc/libibverbs.d/$1.driver"
}

# For talk: rping -p PORT [SERVER].
rping_end()
{
	if [ $# -gt 2 ]; then
		rping -c -C 20 -V -S 4096 -p "$2" -a "$3"
	else
		rping -s -C 20 -V -S 4096 -p "$2"
	fi
}

# For talk, which must be told udaddy's own port: udaddy -p 7174 [SERVER].
udaddy_end()
{
	if [ $# -gt 2 ]; then
		udaddy -s "$3" -c 2 -C 20 -S 1000
	else
		udaddy -c 2 -C 20 -S 1000
	fi
}

# The index of the RoCE v2 GID that stands for $MY_IP at another device of this node.
gid_index_of()
{
	local index type gid port=/sys/class/infiniband/$1/ports/1
	for index in {0..15}; do
		{ read -r type <"$port/gid_attrs/types/$index" && read -r gid <"$port/gids/$index"; } 2>/dev/null || continue
		[ "$type" != "RoCE v2" ] || [ "${gid#0000:0000:0000:0000:0000:ffff:}" = "$gid" ] || echo "$index"
	done
}

# has_ip_gid DEVICE: whether there is one, for until_true. Those of a new device come after a while.
has_ip_gid() { [ -n "$(gid_index_of "$1")" ]; }
