# shellcheck shell=bash
# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
# NetPIPE and pvr_mpi_speed over Open MPI, see bench-apps.sh.

# Both RDMA devices have the same parameters, those that openib needs for rdma_cm; the file of adapters does not know Soft-RoCE.
QUEUES=P,128,256,192,128:S,2048,1024,1008,64:S,12288,1024,1008,64:S,65536,1024,1008,64
OPENIB=(--mca btl "openib,self" --mca btl_openib_receive_queues "$QUEUES" --mca btl_openib_use_eager_rdma 1
	--mca btl_openib_cpc_include rdmacm --mca btl_openib_warn_no_device_params_found 0
	--mca mca_base_component_path "/tmp/openmpi3:/usr/lib/x86_64-linux-gnu/openmpi/lib/openmpi3")
TCP=(--mca btl "tcp,self" --mca btl_tcp_if_include 10.77.0.0/16)

# netpipe LEAST MOST: node 2 measures. No sizes between powers of two and those amid them. When the last has been measured
# it does not matter how mpirun ends: over Soft-RoCE, openib's MPI_Finalize now and then dies of SIGSEGV.
netpipe()
{
	local out=/tmp/netpipe.printed
	timeout 120 mpirun --allow-run-as-root --host node2,node1 --mca pml ob1 "${btl[@]}" \
		NPopenmpi -l "$1" -u "$2" -p 0 -o /tmp/netpipe.out </dev/null >$out 2>&1
	cat $out
	grep -q "^ *[0-9]*: *$2 bytes .* usec" $out
}

install_openib() { install -D -t /tmp/openmpi3 "$SHARE/mca_btl_openib.so" && barrier "$STEP.$1.installed"; }

app_netpipe()
{
	local btl=("${TCP[@]}") most=1048576 status=0
	[ "$1" = tcp ] || btl=("${OPENIB[@]}")
	install_openib "$1" || return
	# Soft-RoCE loses packets of large messages, which then take seconds each; those of 196608 bytes are its fastest.
	[ "$1" != rxe ] || most=262144
	[ "$NODE" = 1 ] || { netpipe 1 8 && netpipe 65536 $most; } || status=$?
	barrier "$STEP.$1.measured" 250 || return
	return $status
}

# try_mpi_speed OPTION...: on $hosts.
try_mpi_speed()
{
	local out=/tmp/mpi_speed.printed
	timeout 100 mpirun --allow-run-as-root --host "$hosts" "$@" \
		"$SHARE/pvr_mpi_speed" </dev/null >$out 2>&1
	cat $out
	grep -q "^@alltoall " $out
}

# mpi_speed DEVICE OPTION...: a rank on each node. As above, how mpirun ends does not matter after the last measurement.
# Once, a run that fails is repeated: openib over Soft-RoCE aborts at times on a busy machine, with "REMOTE ACCESS ERROR".
mpi_speed()
{
	local device=$1 status=0 hosts=node2,node1 node
	shift
	for ((node = 3; node <= NODES; node++)); do
		hosts+=,node$node
	done
	if [ "$NODE" = 2 ]; then
		try_mpi_speed "$@" || try_mpi_speed "$@" || status=$?
	fi
	barrier "$STEP.$device.measured" 240 || return
	return $status
}

app_mpi_openib()
{
	install_openib "$1" || return
	if [ "$1" = tcp ]; then
		mpi_speed "$1" --mca pml ob1 "${TCP[@]}"
	else
		mpi_speed "$1" --mca pml ob1 "${OPENIB[@]}"
	fi
}

# Over Soft-RoCE UCX drops each datagram of an IPv4 GID. The first GID is of IPv6.
app_mpi_ucx()
{
	local gid=()
	[ "$1" != rxe ] || gid=(-x UCX_IB_GID_INDEX=0)
	mpi_speed "$1" --mca pml ucx "${gid[@]}"
}

app_mpi_openib_4() { app_mpi_openib "$1"; }
app_mpi_ucx_4() { app_mpi_ucx "$1"; }
