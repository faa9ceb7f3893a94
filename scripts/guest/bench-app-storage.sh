# shellcheck shell=bash
# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
# bench/apps' functions for storage of node 1's kernel that node 2's uses: NVMe over fabrics and NFS, by RDMA or TCP.

transport() { if [ "$1" = tcp ]; then echo tcp; else echo rdma; fi; }

# with_server NAME DEVICE: NAME_server on node 1 as long as NAME_client runs on node 2, then NAME_server_end.
with_server()
{
	local name=$1 device=$2 transport status=0
	transport=$(transport "$device")
	[ "$NODE" != 1 ] || "${name}_server" "$transport" || status=$?
	barrier "$STEP.$device.serves" 60 || return
	[ "$NODE" != 2 ] || "${name}_client" "$transport" || status=$?
	barrier "$STEP.$device.served" 120 || return
	[ "$NODE" != 1 ] || "${name}_server_end" "$transport" || status=$?
	return $status
}

# A RAM disk, as docs/applications.md has it. It is full: reading a block that was never written is less work.
nvme_server()
{
	local nvmet=/sys/kernel/config/nvmet
	modprobe "nvmet-$1" && modprobe brd rd_nr=1 rd_size=131072 || return
	head -c 128M /dev/zero >/dev/ram0 || return
	mountpoint -q /sys/kernel/config || mount -t configfs none /sys/kernel/config || return
	mkdir -p $nvmet/subsystems/ram/namespaces/1 $nvmet/ports/1 &&
		echo 1 >$nvmet/subsystems/ram/attr_allow_any_host &&
		echo /dev/ram0 >$nvmet/subsystems/ram/namespaces/1/device_path &&
		echo 1 >$nvmet/subsystems/ram/namespaces/1/enable &&
		echo "$1" >$nvmet/ports/1/addr_trtype &&
		echo ipv4 >$nvmet/ports/1/addr_adrfam &&
		echo "$MY_IP" >$nvmet/ports/1/addr_traddr &&
		echo 4420 >$nvmet/ports/1/addr_trsvcid &&
		ln -s $nvmet/subsystems/ram $nvmet/ports/1/subsystems/ram
}

nvme_server_end()
{
	local nvmet=/sys/kernel/config/nvmet
	rm $nvmet/ports/1/subsystems/ram && rmdir $nvmet/ports/1 &&
		echo 0 >$nvmet/subsystems/ram/namespaces/1/enable &&
		rmdir $nvmet/subsystems/ram/namespaces/1 $nvmet/subsystems/ram &&
		modprobe -r "nvmet-$1" brd
}

# The page cache has no part in it.
nvme_client()
{
	local status=0
	modprobe "nvme-$1" && nvme connect -t "$1" -a "$PEER_IP" -s 4420 -n ram &&
		until_true 100 test -b /dev/nvme0n1 || return
	echo none >/sys/class/nvme/nvme0/nvme0c0n1/queue/scheduler || return
	fio --output-format=json --filename=/dev/nvme0n1 --direct=1 --ioengine=libaio --time_based --runtime=3 \
		--name=single --stonewall --rw=randread --bs=4k --iodepth=1 \
		--name=random --stonewall --rw=randread --bs=4k --iodepth=32 \
		--name=read --stonewall --rw=read --bs=1m --iodepth=8 \
		--name=write --stonewall --rw=write --bs=1m --iodepth=8 || status=$?
	nvme disconnect -n ram >/dev/null && modprobe -r "nvme-$1" || status=1
	return $status
}

app_nvme() { with_server nvme "$1"; }

# 500 files of 150 bytes to 60 kB, 10.8 MB.
make_tree()
{
	local n
	for n in $(seq 20); do
		mkdir -p "$1/$n"
		head -c $((n * n * 150 * 25)) /dev/urandom | split -a 3 -b $((n * n * 150)) - "$1/$n/"
	done
}

nfs_server()
{
	modprobe -a nfsd rpcrdma && mkdir -p /srv/tree && mount -t tmpfs tree /srv/tree || return
	mountpoint -q /proc/fs/nfsd || mount -t nfsd nfsd /proc/fs/nfsd || return
	exportfs -o rw,no_root_squash,insecure,fsid=0 '*:/srv/tree' || return
	pgrep -x rpc.mountd >/dev/null || rpc.mountd -N 2 -N 3 || return
	if [ "$1" = rdma ]; then set -- --rdma=20049; else set --; fi
	rpc.nfsd -N 3 -V 4 "$@" 4
}

nfs_server_end()
{
	rpc.nfsd 0 && exportfs -ua && umount /srv/tree
}

copy_there_and_back()
{
	local begin between
	begin=$(date +%s%N)
	cp -r /tmp/tree /mnt/tree/ && sync -f /mnt/tree || return
	between=$(date +%s%N)
	echo 3 >/proc/sys/vm/drop_caches
	cp -r /mnt/tree/tree /tmp/back || return
	echo "@copied $((between - begin)) $(($(date +%s%N) - between))"
	diff -r /tmp/tree /tmp/back
}

nfs_client()
{
	local status=0 port=2049
	[ "$1" = tcp ] || port=20049
	[ -e /tmp/tree ] || make_tree /tmp/tree || return
	mkdir -p /mnt/tree && mount -t nfs -o "vers=4.2,proto=$1,port=$port" "$PEER_IP:/" /mnt/tree || return
	copy_there_and_back || status=$?
	rm -rf /tmp/back
	umount /mnt/tree || status=1
	return $status
}

app_nfs() { with_server nfs "$1"; }
