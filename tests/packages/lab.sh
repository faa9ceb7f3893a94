#!/bin/sh
# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
# lab.sh CACHE NAME...: runs in a clean root. Installs pvrdma-lab of /debs with packaging/ci/setup, then runs each
# /job/NAME.sh, as an ordinary user in a copy of the folder /job/NAME. Output is /job/NAME.out, the status NAME.status.
set -eu
# shellcheck source=tests/packages/functions.sh
. /tests/functions.sh

cache=$1
shift
/ci/setup /debs >/job/setup.out 2>&1 || {
	tail -n 20 /job/setup.out
	exit 1
}
# The cache is at its own path, below the home of the tests' own user. Builds are the ordinary user's.
open_folders "$cache"
as_user()
{
	setpriv --reuid user --regid user --clear-groups \
		env HOME=/home/user PVRDMA_CACHE="$cache" PVRDMA_BUILD=/home/user/build PATH="/tools:$PATH" "$@"
}
for name; do
	cp -r "/job/$name" "/home/user/$name"
	cp "/job/$name.sh" "/home/user/$name/.commands"
	chown -R user:user "/home/user/$name"
	cd "/home/user/$name"
	status=0
	as_user bash -e .commands >"/job/$name.out" 2>&1 || status=$?
	echo "$status" >"/job/$name.status"
done
