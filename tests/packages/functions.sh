#!/bin/sh
# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
# Functions of the scripts in clean roots and in their VMs. The caller has a function fail.

# until_true SECONDS COMMAND...
until_true()
{
	left=$(($1 * 5))
	shift
	until "$@"; do
		left=$((left - 1))
		[ $left -gt 0 ] || fail "in vain: $*"
		sleep 0.2
	done
}

# open_folders FOLDER: each user can reach it and what is in it, below the home of another user too.
open_folders()
{
	folder=$1
	while [ "$folder" != / ]; do
		chmod o+x "$folder" 2>/dev/null || true
		folder=${folder%/*}
		folder=${folder:-/}
	done
}
