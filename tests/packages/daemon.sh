#!/bin/sh
# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
# For the scripts of clean roots, which have no systemd that runs: starts the installed pvrdmad by the command line of its
# unit, as an ordinary user of the unit's group, with its sockets in /run/pvrdma. Sets $daemon to its process.

start_pvrdmad()
{
	unit=/lib/systemd/system/pvrdmad.service
	command=$(sed -n 's/^ExecStart=//p' $unit)
	group=$(sed -n 's/^Group=//p' $unit)
	umask "$(sed -n 's/^UMask=//p' $unit)"
	mkdir -p /run/pvrdma
	chown "61184:$group" /run/pvrdma
	# shellcheck disable=SC2086  # words of a command
	PVRDMA_CONTROL=/run/pvrdma/control setpriv --reuid 61184 --regid "$group" --clear-groups --no-new-privs \
		--bounding-set=-all $command </dev/null &
	daemon=$!
	umask 022
	while ! [ -S /run/pvrdma/control ]; do
		kill -0 "$daemon"
		sleep 0.1
	done
}
