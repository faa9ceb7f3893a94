# shellcheck shell=bash
# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
# Functions for vmlab scripts in which node 1 moves while its queue pairs work. $SHARE has the programs of tests/guest.
# The programs run until end_programs, however long the moves take.

streams=() programs=() servers=() writes=

# stream PORT RECEIVER [-u]: numbered messages or datagrams of node 1. The receiver measures, because its clock goes on.
stream()
{
	if [ "$NODE" = 1 ]; then
		"$SHARE/pvr_stream" -p "$1" "${@:3}" "node$2" &
		streams+=($!)
	elif [ "$NODE" = "$2" ]; then
		"$SHARE/pvr_stream" -p "$1" "${@:3}" &
		programs+=($!)
	fi
}

# again_and_again NAME COMMAND...: until the moves are over; each must succeed
again_and_again()
{
	local name=$1
	shift
	{
		local rounds=0
		until [ -e /tmp/over ]; do
			"$@" >/tmp/output 2>&1 || {
				echo "$name: round $((rounds + 1)) ended with status $?"
				cat /tmp/output
				exit 1
			}
			: $((rounds += 1))
		done
		echo "@rounds $name $rounds"
	} &
	programs+=($!)
}

# verify PORT CLIENT: rounds of all RC operations between that node and node 1, each byte compared
verify()
{
	if [ "$NODE" = 1 ]; then
		while "$SHARE/pvr_verify" --port "$1"; do :; done &
		servers+=($!)
	elif [ "$NODE" = "$2" ]; then
		until [ -e /tmp/over ]; do
			"$SHARE/pvr_verify" --port "$1" --reliable --iterations 1000 node1 || exit
		done &
		programs+=($!)
	fi
}

# write_bw PORT CLIENT: RDMA WRITEs to node 1. All nodes call it.
write_bw()
{
	local program=(stdbuf -oL ib_write_bw -d "$RDMA_DEV" -x "$GID_INDEX" -p "$1" -s 65536 --run_infinitely -D 1 -F)
	if [ "$NODE" = 1 ]; then
		"${program[@]}" >/tmp/writes &
		writes=$!
		until ss -ltnH "sport = :$1" | grep -q .; do
			kill -0 $writes || return
			sleep 0.1
		done
	fi
	barrier "writes-$1" || return
	if [ "$NODE" = "$2" ]; then
		"${program[@]}" node1 >/tmp/writes &
		writes=$!
		# The first line of figures: the WRITEs have begun.
		until grep -q '^ *65536' /tmp/writes; do
			kill -0 $writes || return
			sleep 0.1
		done
	fi
}

# move NODE HOST
move()
{
	local answer
	answer=$(labctl migrate-node "$1" "$2") || return
	echo "@move node$1 host$2 $answer"
}

# end_programs [SECONDS]: end all. Each must still have run, but for those that end by themselves, within SECONDS.
end_programs()
{
	local pid
	: >/tmp/over
	[ -z "$writes" ] || kill -0 "$writes" || return
	[ "${#streams[@]}" = 0 ] || kill "${streams[@]}" || return
	for pid in "${streams[@]}" "${programs[@]}"; do
		wait "$pid" || return
	done
	barrier ended "${1:-120}" || return
	[ "${#servers[@]}" = 0 ] || kill "${servers[@]}" || return
	# The first end that goes may take the other one with it.
	[ -z "$writes" ] || kill "$writes" 2>/dev/null || true
	[ "$NODE" = 1 ] || [ -z "$writes" ] || sed -n '/^ *65536/s/^ */@writes /p' /tmp/writes | tail -n 1
}
