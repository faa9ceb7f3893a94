#!/bin/sh
# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
# Runs in a clean root: prints the system calls of each SystemCallFilter= of the unit /unit/pvrdmad.service, as systemd
# of that release expands its sets: "allow NAME" and "deny NAME".
set -eu

# expand WORD...: names of system calls, and sets of them.
expand()
{
	for word in "$@"; do
		# shellcheck disable=SC2046  # words of its output
		case $word in
		@*) expand $(systemd-analyze syscall-filter "$word" | sed -n 's/^ \+\([^# ]\)/\1/p') ;;
		*) echo "$word" ;;
		esac
	done
}

sed -n 's/^SystemCallFilter=//p' /unit/pvrdmad.service | while read -r line; do
	# shellcheck disable=SC2086  # words
	case $line in
	"~"*) expand ${line#"~"} | sed 's/^/deny /' ;;
	*) expand $line | sed 's/^/allow /' ;;
	esac
done
