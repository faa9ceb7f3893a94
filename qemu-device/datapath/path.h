/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * Paths: the ways by which requests reach the adapter of a destination GID.
 *
 * DOC: two tables of functions
 *
 * Sending belongs to a queue pair: struct pvr_path_ops of its current path. A request that
 * arrives from outside of this process brings its own functions: struct pvr_inbound_ops. So
 * a queue pair may send by one path and receive by another.
 */
#ifndef PVR_PATH_H
#define PVR_PATH_H

#include "datapath/request.h"

/*
 * A fragment of a request from outside, the first member of the path's own struct, while
 * the responder executes it. A NULL pointer stands for a request of an adapter of this
 * process, whose memory is request->local.
 */
struct pvr_inbound {
	const struct pvr_inbound_ops *ops;
	struct pvr_request request; /* its local is NULL */
};

/* Context: the lock of the responder's adapter is held; nothing blocks. */
struct pvr_inbound_ops {
	/*
	 * Move request.chunk bytes of payload to offset request.offset of @to.
	 * Return: 0, -EFAULT (memory is gone) or -EAGAIN (not all has arrived; the
	 * fragment is executed again when more has).
	 */
	int (*recv_payload)(struct pvr_inbound *in, const struct pvr_sg *to);
	/* Send that range of @from as a response to an RDMA READ. Return: the same. */
	int (*read_reply)(struct pvr_inbound *in, const struct pvr_sg *from);
	/* Send the value that an atomic operation has found, and keep it for duplicates. */
	void (*atomic_reply)(struct pvr_inbound *in, uint64_t original);
};

#endif /* PVR_PATH_H */
