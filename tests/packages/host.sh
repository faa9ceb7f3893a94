#!/bin/sh
# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
# Runs in a clean root: installs pvrdmad of /debs and starts it. Its sockets are in /run/pvrdma, which the host sees. Ends
# with stdin.
set -eu
daemon=
# shellcheck source=tests/packages/daemon.sh
. /tests/daemon.sh

apt-get --yes --quiet install /debs/pvrdmad_*.deb
for node in 1 2; do
	printf '[adapter node%s]\nsocket = /run/pvrdma/node%s.sock\nmac = 52:54:00:00:00:0%s\n' $node $node $node
done >>/etc/pvrdma/pvrdmad.conf
start_pvrdmad
while ! [ -S /run/pvrdma/node2.sock ]; do
	kill -0 "$daemon"
	sleep 0.1
done
# In a user namespace no user outside of it is in the group.
read -r _ outside _ </proc/self/uid_map
[ "$outside" = 0 ] || chmod o+rw /run/pvrdma/*.sock
touch /run/pvrdma/started
cat >/dev/null
pvrdmactl --control /run/pvrdma/control paths
kill "$daemon"
wait "$daemon"
