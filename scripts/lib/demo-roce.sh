# shellcheck shell=bash
# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
# The second half of demo with the argument roce: the VMs, and the counts of the last line.

logs=build/demo-roce
begin=$SECONDS
progress "two VMs, one with Soft-RoCE: ibv_rc_pingpong and rping between them"
scripts/vmlab --driver pvrdma,rxe --nodes 2 --pcap --keep-logs $logs --run scripts/guest/demo-roce ||
	die "the VMs did not get through (see above); their consoles are in $logs"
progress "two VMs, one with Soft-RoCE: done in $((SECONDS - begin)) s"

# stat NAME: of node 1, by pvrdmactl stats.
stat()
{
	awk -v name="$1" '/^[^ ]/ { mine = $1 == "node1:" } mine && $1 == name { print $2; found = 1 } END { exit !found }' \
		$logs/stats.txt ||
		die "$logs/stats.txt has no $1"
}

# frames FILTER: their number in the capture.
frames()
{
	tshark -n -r $logs/node2.pcap -Y "$1" 2>/dev/null | wc -l
}

path=$(awk '$1 == "node1" && /path wire/ { print "wire"; exit }' $logs/paths.txt)
[[ $path ]] || die "node1 has not used its wire, see $logs/paths.txt"
roce_frames=$(frames infiniband)
((roce_frames)) || die "tshark finds no RoCE frame in $logs/node2.pcap"
malformed=$(($(frames "udp.dstport == 4791 && (!infiniband || _ws.malformed)") + $(stat wire_rx_malformed) + $(stat wire_rx_icrc)))
progress "tshark: $roce_frames RoCE frames; node1 sent $(stat wire_tx_frames)"
echo "demo-roce: node1 (pvrdma) <-> node2 (Soft-RoCE) path $path, $(($(stat tx_messages) + $(stat rx_messages))) messages," \
	"$(stat wire_retransmits) retransmissions, $malformed malformed frames"
