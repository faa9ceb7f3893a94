/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/* A queue pair of an RDMA NIC; shared by verbs_qp.c, verbs_rndv.c and verbs_read.c. */
#ifndef PVR_NET_VERBS_QP_H
#define PVR_NET_VERBS_QP_H

#include "net/verbs_nic.h"
#include "net/verbs_stream.h"
#include "pipe.h"

/* READs of one pvr_verbs_read(), each within one remote and one local segment. */
#define PVR_VERBS_READS (2 * PVR_FRAME_RNDV_SEGS - 1)
/* Offset of the read buffer, behind the send and receive buffers. */
#define PVR_VERBS_READ_OFFSET (PVR_VERBS_TX_SIZE + PVR_VERBS_RX_SIZE)
#define PVR_VERBS_MEMORY_SIZE (PVR_VERBS_READ_OFFSET + PVR_READ_BUFFER)

/* Flag in the work request ID of pvr_verbs_read(). */
#define PVR_VERBS_ID_READ (1ull << 63)

/* The RDMA READ in progress. */
struct pvr_verbs_rdma_read {
	bool going; /* any thread; cleared by the poll */
	/* Target memory. The starting and stopping callers never run at the same time. */
	struct ibv_mr *mr[PVR_FRAME_RNDV_SEGS];
	unsigned int mrs;
};

struct pvr_verbs {
	struct pvr_verbs_place place;
	struct pvr_verbs_stream stream;
	struct ibv_pd *pd; /* only this queue pair's: keys of other peers are invalid in it */
	uint8_t *memory; /* buffers, see above */
	struct ibv_mr *mr;
	struct ibv_comp_channel *channel;
	struct ibv_cq *sends, *receives;
	struct ibv_qp *qp;
	uint32_t psn;
	bool broken; /* protected by the stream's lock */
	const char *error; /* any thread; the first error is kept */
	struct pvr_source news, kick; /* completion channel; event for space */
	void (*ready)(void *opaque);
	void *opaque;

	uint8_t answers, asks; /* RDMA READs as responder, requester; 0: no exposure */
	uint32_t rndvs; /* any thread */
	int expose_errno; /* errno of the last attempt to expose memory; 0: success. Any thread */
	struct pvr_verbs_rdma_read rdma_read;
};

/*
 * Registers each entry separately and exactly. False with errno set: nothing is
 * registered.
 */
bool pvr_verbs_register(struct pvr_verbs *verbs, const struct iovec *iov, int count, int access,
			struct ibv_mr **mr);
/*
 * Any thread. Afterwards no NIC accesses the memory; breaks the queue pair if necessary.
 */
void pvr_verbs_deregister(struct pvr_verbs *verbs, struct ibv_mr **mr, unsigned int count);

/* Call with the stream's lock held. */
void pvr_verbs_rdma_read_is_done(struct pvr_verbs *verbs);

/* Any thread: ends all transfers and notifies the queue pair's thread. */
void pvr_verbs_break(struct pvr_verbs *verbs, const char *why);

#endif /* PVR_NET_VERBS_QP_H */
