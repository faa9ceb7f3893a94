# shellcheck shell=bash
# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
# Functions for vmlab scripts in which node 1 moves while its queue pairs work. $SHARE has the programs of tests/guest.

streams=() programs=() writes=

# stream PORT RECEIVER: numbered messages of node 1, until end_programs. The receiver measures, because its clock goes on.
stream()
{
	if [ "$NODE" = 1 ]; then
		"$SHARE/pvr_stream" -p "$1" "node$2" &
		streams+=($!)
	elif [ "$NODE" = "$2" ]; then
		"$SHARE/pvr_stream" -p "$1" &
		programs+=($!)
	fi
}

# verify PORT CLIENT ITERATIONS: all RC operations between that node and node 1, each byte compared
verify()
{
	if [ "$NODE" = 1 ]; then
		"$SHARE/pvr_verify" --port "$1" &
		programs+=($!)
	elif [ "$NODE" = "$2" ]; then
		"$SHARE/pvr_verify" --port "$1" --reliable --seed "$1" --iterations "$3" node1 &
		programs+=($!)
	fi
}

# write_bw PORT CLIENT SECONDS: RDMA WRITEs to node 1. All nodes call it.
write_bw()
{
	local program=(ib_write_bw -d "$RDMA_DEV" -x "$GID_INDEX" -p "$1" -s 65536 -D "$3" -F)
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
	fi
}

# move NODE HOST
move()
{
	local answer
	answer=$(labctl migrate-node "$1" "$2") || return
	echo "@move node$1 host$2 $answer"
}

# Wait for all programs; the streams are told to end.
end_programs()
{
	local pid
	[ "${#streams[@]}" = 0 ] || kill "${streams[@]}"
	for pid in "${streams[@]}" "${programs[@]}" $writes; do
		wait "$pid" || return
	done
	[ "$NODE" = 1 ] || [ -z "$writes" ] || sed -n '/^ *65536/s/^ */@writes /p' /tmp/writes
}
