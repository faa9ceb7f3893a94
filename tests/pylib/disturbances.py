# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
"""Steps in which the driver, its device, its netdev or its link goes away and comes back."""

from pvrdmactl import pvrdmactl
from steps import Step
from traffic import ENDLESS


def reloads(times, seconds):
    return Step("reloads", f"""
        for i in $(seq {times}); do
            unload && load || {{ echo "time $i"; exit 1; }}
        done""", seconds)


def new_vm(name, node, then):
    """A new VM takes the place of the killed one, and continues with the step `then`."""
    return Step(name, f"""
        [ $NODE != {node} ] || exit 0
        echo ${{STEP%%.*}}.{then} >$SHARE/resume
        labctl start-node {node}""")


PINGPONG_AFTER = "pingpong 18515 1 2 -c -s 4096 -n 100 && pingpong 18516 2 1 -c -e -s 65536 -n 50"

# under_load COMMAND...: node 1 runs COMMAND during a pingpong with events, which must then end with an error. Node 2 only
# has to survive, and ends here.
UNDER_LOAD = ENDLESS + """
    under_load() {
        serve_endless -e -s 4096 || return
        sleep 1
        kill -0 $pid || { echo "the pingpong ended too early"; return 1; }
        "$@" || { echo "$*: status $?"; return 1; }
        until_true 200 eval "! kill -0 $pid 2>/dev/null" || { echo "the pingpong did not end within 20 s"; return 1; }
        if wait $pid; then echo "the pingpong succeeded"; return 1; fi
        echo "the pingpong ended with an error, as it must"
    }
    if [ $NODE = 2 ]; then connect_endless -e -s 4096; exit; fi
"""
UNLOAD_UNDER_LOAD = Step("unload-under-load", UNDER_LOAD + """
    under_load unload
    status=$?
    raise over
    load && exit $status""", 60)
# Without events the program gets no notice, but the driver can be unloaded and the program can end.
UNLOAD_UNDER_POLLING = Step("unload-under-polling", ENDLESS + """
    if [ $NODE = 2 ]; then connect_endless; exit; fi
    serve_endless || exit
    sleep 1
    kill -0 $pid || { echo "the pingpong ended too early"; exit 1; }
    unload; status=$?
    sleep 1
    kill -KILL $pid 2>/dev/null
    wait $pid
    [ $? != 0 ] || { echo "the pingpong succeeded"; status=1; }
    raise over
    load && exit $status""", 60)
UNPLUG_UNDER_LOAD = Step("unplug-under-load", UNDER_LOAD + """
    device=$(readlink -f /sys/class/infiniband/$RDMA_DEV/device)
    unplug() { echo 1 >$device/remove; }
    under_load unplug
    status=$?
    raise over
    echo 1 >/sys/bus/pci/rescan
    until_true 100 has_gid && exit $status
    echo "the device is back without its GID $GID_INDEX or with no active port"
    exit 1""", 60)
# Where programs find the NIC of an RDMA device.
HAS_LINK = """
    has_link() { [ "$(ls /sys/class/infiniband/$RDMA_DEV/device/net/)" = "$1" ]; }
    pci=$(readlink -f /sys/class/infiniband/$RDMA_DEV/device)
"""
NETDEV_DOWN = Step("netdev-down", """
    state=/sys/class/infiniband/$RDMA_DEV/ports/1/state
    ip link set $NETDEV down && until_true 50 grep -q DOWN $state &&
        ip link set $NETDEV up && until_true 50 has_gid""")
NETDEV_RENAMED = Step("netdev-renamed", HAS_LINK + """
    has_link $NETDEV || { ls -l $pci; exit 1; }
    ip link set $NETDEV down && ip link set $NETDEV name lan7 && ip link set lan7 up &&
        until_true 50 has_gid && rdma link show | grep 'netdev lan7' && has_link lan7
    status=$?
    ip link set lan7 down && ip link set lan7 name $NETDEV && ip link set $NETDEV up &&
        until_true 50 has_gid && exit $status""")
READDRESSED = Step("netdev-readdressed", """
    gids=/sys/class/infiniband/$RDMA_DEV/ports/1/gids
    has_new() { cat $gids/* | grep -qi 0000:0000:0000:0000:0000:ffff:0a4d:010$NODE; }
    ip address add 10.77.1.$NODE/24 dev $NETDEV && until_true 50 has_new &&
        ip address del 10.77.1.$NODE/24 dev $NETDEV && until_true 50 eval '! has_new'""")
NETDEV_GONE = Step("netdev-gone", HAS_LINK + """
    nic=$(readlink -f /sys/class/net/$NETDEV/device/..)
    address=$(cat /sys/class/net/$NETDEV/address)
    echo 1 >$nic/remove
    sleep 0.5
    rdma link show
    [ ! -L $pci/net ] && unload; status=$?
    echo 1 >/sys/bus/pci/rescan
    until_true 50 test -e /sys/class/net/$NETDEV &&
        ip link set $NETDEV up && ip address add $MY_IP/24 dev $NETDEV &&
        load && has_link $NETDEV && unload && [ ! -L $pci/net ] && load && exit $status""")

# --- the operator takes the link down, and the adapter away ----------------------------------------

LINK_DOWN = Step("link-down", """
    state=/sys/class/infiniband/$RDMA_DEV/ports/1/state
    [ $NODE = 2 ] || raise now
    await now.seen
    [ $NODE = 2 ] || until_true 50 grep -q DOWN $state || { cat $state; exit 1; }
    [ $NODE = 1 ] || grep ACTIVE $state""")
LINK_UP = Step("link-up", """
    [ $NODE = 2 ] || raise now
    await now.seen
    until_true 50 has_gid && pingpong 18515 1 2 -c -s 4096 -n 100""")
# No event reports the removal of the device: registers read all ones, commands time out. A kernel consumer with an
# SRQ waits for that.
VANISH = Step("adapter-vanishes", ENDLESS + """
    if [ $NODE = 2 ]; then connect_endless; exit; fi
    serve_endless || exit
    insmod $SHARE/pvr_ktest.ko device=$RDMA_DEV gid=$GID_INDEX vanish=1 & ktest=$!
    until_true 200 eval "dmesg | grep -q 'the device may go'" && raise now && await now.seen || exit
    sleep 2
    kill -KILL $pid
    wait $pid
    raise over
    wait $ktest && rmmod pvr_ktest; status=$?
    dmesg | sed -n 's/.*pvr_ktest: //p'
    exit $status""")
AFTER = Step("vm-goes-on", """
    [ $NODE = 1 ] || { rdma link show | grep ACTIVE; exit; }
    ping -c 3 -W 5 node2 && timeout 30 ibv_devinfo; true""")
UNLOAD = Step("unload-without-device", """
    [ $NODE = 1 ] || exit 0
    unload""", 60)
OPERATOR = {
    "link-down.now": pvrdmactl("link", "node1", "down"),
    "link-up.now": pvrdmactl("link", "node1", "up"),
    "adapter-vanishes.now": pvrdmactl("remove-adapter", "node1")}
LOAD = Step("load-without-device", """
    [ $NODE = 1 ] || exit 0
    insmod $driver 2>&1
    dmesg | tail -n 5""", 60)
# A user may read the file, but not write it.
ODP_RIGHTS = Step("odp-rights", """
    file=/tmp/read-only
    head -c 163840 /dev/urandom >$file && chmod 644 $file || exit
    sum=$(sha256sum <$file)
    (cd /sys/kernel/mm/ksm && echo 10 >sleep_millisecs && echo 1000 >pages_to_scan && echo 1 >run) || exit
    (as_user "$SHARE/pvr_odp_rights $file"); status=$?
    echo 2 >/sys/kernel/mm/ksm/run
    [ "$(sha256sum <$file)" = "$sum" ] || { echo "the file has changed"; exit 1; }
    exit $status""", 240)
# Page faults that wait for a frozen file system, at first of a program that is killed, then of one under a reset. Each CPU
# runs a work for stat_refresh. After 120 s the kernel would report the threads that wait.
ODP_BLOCKED = Step("odp-blocked", """
    frozen=/tmp/frozen
    modprobe brd rd_nr=1 rd_size=8192 && dd if=$SHARE/ext4.img of=/dev/ram0 bs=1M status=none || exit
    mkdir -p $frozen && mount -t ext4 /dev/ram0 $frozen || exit
    resources() { rdma resource show $RDMA_DEV | sed "s/^[0-9]*: //"; }
    before=$(resources)
    same() { [ "$(resources)" = "$before" ]; }
    thaw() { fsfreeze --unfreeze $frozen; }
    fail() { thaw; exit 1; }
    block()
    {
        $SHARE/pvr_odp_blocked $frozen >/tmp/blocked & pid=$!
        until grep -q blocked /tmp/blocked; do
            kill -0 $pid 2>/dev/null || { wait $pid; return 1; }
            sleep 0.1
        done
    }
    end() { kill -KILL $pid; wait $pid; [ ! -e /proc/$pid ]; }
    block && cat /proc/sys/vm/stat_refresh && $SHARE/pvr_odp quick && end || fail
    thaw
    until_true 300 same || { resources; exit 1; }
    block && insmod $SHARE/pvr_ktest.ko device=$RDMA_DEV reset=2 && rmmod pvr_ktest && until_true 100 has_gid &&
        $SHARE/pvr_odp quick && end || fail
    thaw
    until_true 300 umount $frozen && modprobe -r brd && unload && load""", 240)
