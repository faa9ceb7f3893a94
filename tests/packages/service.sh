#!/bin/sh
# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
# Runs as root in a plain VM with the package of a host, from the share /mnt: the service under systemd, with two fake
# guests that send to each other and check each byte. Prints lines "ok RULE"; the first failure ends it.
set -eu
# shellcheck source=tests/packages/functions.sh
. /mnt/functions.sh

program=/usr/sbin/pvrdmad
loading=/run/pvrdma/loading # written by the program of forge()
traffic=

fail()
{
	echo "FAILED: $*"
	systemctl status pvrdmad --no-pager || true
	journalctl --unit pvrdmad --no-pager | tail -n 60
	cat /tmp/traffic* 2>/dev/null || true
	exit 1
}

rule()
{
	echo "ok $*"
}

property()
{
	systemctl show --property "$1" --value pvrdmad
}

verify()
{
	/mnt/ld.so --library-path /mnt /mnt/hosts_verify "$@" 1=/run/pvrdma/vm1.sock 2=/run/pvrdma/vm2.sock
}

begin_traffic()
{
	rm -f /tmp/over
	verify --seconds 600 --until /tmp/over >/tmp/traffic 2>/tmp/traffic.err & traffic=$!
	until_true 60 grep -q begun /tmp/traffic.err
}

# Each message has come once, and each byte is right.
end_traffic()
{
	touch /tmp/over
	wait "$traffic" || fail "the guests have failed"
	grep -q '"wrong": 0,.*"failed": \[\]' /tmp/traffic || fail "wrong data"
}

# In the process that runs now.
has_messages()
{
	pvrdmactl --json workers | tr ',{' '\n\n' | sed -n 's/.*"messages": *\([0-9]*\).*/\1/p' | awk '{ n += $1 } END { exit n <= 100 }'
}

# As a package manager: the running process keeps its file.
install_program()
{
	cp -p "$1" $program.new
	mv $program.new $program
}

# upgrade PID: of the running process. On a busy machine the new one is not ready in time, and the running one goes on.
upgrade()
{
	install_program /root/good
	for attempt in 1 2 3 4 5 6; do
		! systemctl reload-or-restart pvrdmad || break
		[ $attempt -lt 6 ] || fail "upgrade"
		journalctl --unit pvrdmad --no-pager --lines 12 | grep -q 'not ready within 10 s' || fail "upgrade"
		[ "$(property MainPID)" = "$1" ] || fail "process $1 has ended"
	done
	until_true 10 is_replaced "$1"
	[ ! -e "/proc/$1" ] || fail "process $1 has not ended"
	until_true 60 has_messages
}

# A program that says that it is ready, takes all states of the VMs, and then hangs.
forge()
{
	cat >/root/forged <<'END'
#!/usr/bin/perl
use Socket;
open(my $channel, "+<&=", $ENV{PVRDMAD_UPGRADE}) or die;
sub await {
	my $data;
	do {
		exit 1 if !defined(recv($channel, $data, 65536, 0)) || !length $data;
	} until index($data, "\"type\":\"$_[0]\"") >= 0;
}
send($channel, "{\"type\":\"hello\",\"handover\":1,\"pid\":$$,\"version\":\"forged\",\"store\":true}", 0);
await("create");
send($channel, "{\"type\":\"ready\"}", 0);
await("load");
open(my $file, ">", "/run/pvrdma/loading.new") or die;
print $file $$;
close $file;
rename("/run/pvrdma/loading.new", "/run/pvrdma/loading");
sleep 100;
END
	chmod 755 /root/forged
	rm -f $loading
	install_program /root/forged
	systemctl reload-or-restart pvrdmad >/tmp/reload 2>&1 & reload=$!
	until_true 60 test -e $loading
}

is_replaced()
{
	[ "$(property MainPID)" != "$1" ] && [ "$(property ActiveState)" = active ]
}

cp -p $program /root/good
for node in 1 2; do
	printf '[adapter vm%s]\nsocket = /run/pvrdma/vm%s.sock\nmac = 52:54:00:00:00:0%s\n' $node $node $node
done >>/etc/pvrdma/pvrdmad.conf
mkdir /etc/systemd/system/pvrdmad.service.d
printf '[Service]\nWatchdogSec=20\n' >/etc/systemd/system/pvrdmad.service.d/watchdog.conf
systemctl daemon-reload
systemctl restart pvrdmad || fail "it does not start"
export PVRDMA_CONTROL=/run/pvrdma/control
begin_traffic
rule "the service starts, and guests attach"

# connects UID SOCKET: a QEMU of another user that is in the group of the sockets.
connects()
{
	setpriv --reuid "$1" --regid kvm --clear-groups perl -MSocket -e '
		socket(my $s, AF_UNIX, SOCK_STREAM, 0) or die "$!\n";
		connect($s, sockaddr_un($ARGV[0])) or die "$!\n"' "$2"
}

connects 65534 /run/pvrdma/vm1.sock || fail "a QEMU of the group kvm cannot connect"
rule "QEMUs of another user connect"

useradd --system --no-create-home --shell /usr/sbin/nologin pvrdma-red
printf 'fabrics = red\nmetrics = 127.0.0.1:9472\n' >/etc/pvrdma/pvrdmad@red.conf
systemctl enable --now pvrdmad@red || fail "$(journalctl --unit pvrdmad@red --no-pager)"
env --unset=PVRDMA_CONTROL pvrdmactl --instance red add-adapter name=vm5,socket=/run/pvrdma-red/vm5.sock,mac=52:54:00:12:34:60,fabric=red ||
	fail "the instance takes no adapter"
env --unset=PVRDMA_CONTROL pvrdmactl --all adapters >/tmp/all || fail "--all"
grep -q '^pvrdmad:$' /tmp/all && grep -q '^pvrdmad@red:$' /tmp/all && grep -q '^vm5 ' /tmp/all || fail "$(cat /tmp/all)"
pvrdmactl metrics-targets >/etc/pvrdma/targets.json
grep -q '127.0.0.1:9472' /etc/pvrdma/targets.json || fail "$(cat /etc/pvrdma/targets.json)"
connects 65534 /run/pvrdma-red/vm5.sock || fail "a QEMU of the group kvm cannot connect to the instance"
red=$(systemctl show --property MainPID --value pvrdmad@red)
[ "$(awk '/^Uid/ { print $2 }' "/proc/$red/status")" = "$(id -u pvrdma-red)" ] || fail "$(grep Uid "/proc/$red/status")"
[ "$(cat "/proc/$red/cgroup")" != "$(cat "/proc/$(property MainPID)/cgroup")" ] || fail "one control group for both"
half=$(awk '/^MemTotal/ { print int($2 / 2) }' /proc/meminfo)
awk -v half="$half" '/^Max data size/ { d = $4 / 1024 - half; exit !(d > -8192 && d < 8192) }' "/proc/$red/limits" ||
	fail "$(grep data "/proc/$red/limits")"
systemctl reload 'pvrdmad@*' || fail "the instance is not upgraded"
systemctl stop pvrdmad@red
[ ! -e /run/pvrdma-red ] && [ -S /run/pvrdma/vm1.sock ] || fail "the folders of the instances"
rule "an instance is a process with a user, a folder, a control group and a memory limit of its own"

pid=$(property MainPID)
systemctl reload-or-restart pvrdmad || fail "reload"
[ "$(property MainPID)" = "$pid" ] || fail "the same program was started again"
rule "a reload without another program keeps the process"

until_true 60 has_messages
for _ in 1 2 3; do
	upgrade "$(property MainPID)"
done
rule "a reload starts another program, and traffic goes on"

pid=$(property MainPID)
sleep 50
[ "$(property MainPID) $(property ActiveState) $(property NRestarts)" = "$pid active 0" ] || fail "the watchdog"
! journalctl --unit pvrdmad --no-pager | grep -E 'not our child|reception only permitted' || fail "systemd warns"
rule "systemd supervises the new process, and hears its heartbeat"

forge
kill -9 "$(cat $loading)"
! wait $reload || fail "the reload has succeeded"
until_true 60 has_messages
[ "$(property MainPID) $(property ActiveState) $(property NRestarts)" = "$pid active 0" ] || fail "the running process has ended"
rule "the running process goes on if the new one is killed"
upgrade "$pid"
end_traffic
rule "no message is lost or comes twice"

begin_traffic
for restarts in 1 2; do
	pid=$(property MainPID)
	forge
	new=$(cat $loading)
	install_program /root/good
	kill -9 "$pid"
	wait $reload || true
	until_true 60 is_replaced "$pid"
	[ "$(property NRestarts)" = $restarts ] || fail "$(property NRestarts) restarts, expected $restarts"
	[ ! -e "/proc/$new" ] || fail "process $new of the upgrade has not ended"
	until_true 60 has_messages
done
upgrade "$(property MainPID)"
end_traffic
rule "VMs outlive the running process if it is killed in an upgrade"

begin_traffic
pid=$(property MainPID)
kill -9 "$pid"
until_true 60 is_replaced "$pid"
[ "$(property NRestarts)" = 3 ] || fail "$(property NRestarts) restarts"
wait "$traffic" || true
grep -q '"wrong": 0,' /tmp/traffic || fail "wrong data"
verify --seconds 2 >/tmp/traffic 2>/tmp/traffic.err || fail "the guests cannot attach again"
rule "systemd starts the service again if the running process is killed"

systemctl stop pvrdmad
[ "$(property Result) $(property ActiveState)" = "success inactive" ] || fail "stop"
rule "the service stops"

# More attempts than systemd allows a service by default.
has_tried()
{
	[ "$(property NRestarts)" -ge 7 ]
}

printf 'name = h1\nlisten = 192.0.2.77\ninsecure = on\n' | cat - /etc/pvrdma/pvrdmad.conf >/tmp/conf
cat /tmp/conf >/etc/pvrdma/pvrdmad.conf
systemctl start --no-block pvrdmad
until_true 60 has_tried
ip address add 192.0.2.77/24 dev lo
until_true 60 systemctl --quiet is-active pvrdmad
rule "the service starts when its address has come"
systemctl stop pvrdmad
journalctl --unit pvrdmad --no-pager
