#!/bin/sh
# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
# Runs in a clean root, which has no systemd that runs: installs pvrdmad of /debs and starts it by the command line of
# its unit, as an ordinary user of the unit's group. Its sockets are in /run/pvrdma, which the host sees. Ends with stdin.
set -eu

apt-get --yes --quiet install /debs/pvrdmad_*.deb
for node in 1 2; do
	printf '[adapter node%s]\nsocket = /run/pvrdma/node%s.sock\nmac = 52:54:00:00:00:0%s\n' $node $node $node
done >>/etc/pvrdma/pvrdmad.conf
unit=/lib/systemd/system/pvrdmad.service
command=$(sed -n 's/^ExecStart=//p' $unit)
group=$(sed -n 's/^Group=//p' $unit)
umask "$(sed -n 's/^UMask=//p' $unit)"
chown "61184:$group" /run/pvrdma
# shellcheck disable=SC2086  # words of a command
PVRDMA_CONTROL=/run/pvrdma/control setpriv --reuid 61184 --regid "$group" --clear-groups --no-new-privs \
	--bounding-set=-all $command </dev/null &
while ! [ -S /run/pvrdma/node2.sock ]; do
	kill -0 $!
	sleep 0.1
done
# In a user namespace no user outside of it is in the group.
read -r _ outside _ </proc/self/uid_map
[ "$outside" = 0 ] || chmod o+rw /run/pvrdma/*.sock
touch /run/pvrdma/started
cat >/dev/null
pvrdmactl --control /run/pvrdma/control paths
kill $!
wait $!
