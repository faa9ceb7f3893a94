# shellcheck shell=bash
# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
# The second half of demo with the argument migration: the VMs, and the counts of the last line.

logs=build/demo-migration
share=$(mktemp -d)
trap 'rm -rf "$share"' EXIT
step "QEMU with -device pvrdma" scripts/build/qemu
step "programs for the VMs" scripts/build/guest-tests
cp build/guest/pvr_stream build/guest/pvr_verify "$share"
begin=$SECONDS
progress "three VMs on two hosts, node1 moves: messages, ib_write_bw and pvr_verify go on"
scripts/vmlab --migratable --hosts 2 --nodes 3 --memory 512M --share "$share" --keep-logs $logs --run scripts/guest/demo-migration ||
	die "the VMs did not get through (see above); their consoles are in $logs"
progress "three VMs on two hosts: done in $((SECONDS - begin)) s"

# The lines of the three nodes are those of their programs, and of scripts/guest/demo-migration.
awk '
	/^@move/ { path = path " -> " $3; downtimes = downtimes (downtimes ? " and " : "") $4 }
	/^stream: .* longest gap/ {
		messages += $2; wrong += $4; lost += $6; duplicated += $8
		if ($(NF - 1) + 0 > gap) gap = $(NF - 1) + 0
	}
	/^verify: [0-9]+ operations/ { wrong += $6; verified++ }
	/^@writes/ { writes++ }
	END {
		if (verified < 2 || !writes || !messages) exit 1
		printf "demo-migration: node1 moved host1%s, QEMU downtime %s ms, longest gap %.0f ms, %d messages, %d wrong, %d lost, %d duplicated\n",
			path, downtimes, gap, messages, wrong, lost, duplicated
	}' $logs/node1.out $logs/node2.out $logs/node3.out || die "programs of the VMs printed no results, see $logs"
