/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/* A queue pair of an RDMA NIC, as verbs_qp.c, verbs_loan.c and verbs_read.c share it. */
#ifndef PVR_NET_VERBS_QP_H
#define PVR_NET_VERBS_QP_H

#include "net/verbs_nic.h"
#include "net/verbs_stream.h"
#include "pipe.h"

/* Pieces of one pvr_verbs_read(), each within one part of the loan and one of the memory. */
#define PVR_VERBS_READS (2 * PVR_WIRE_LOAN_PARTS - 1)
/* Buffers: to send from, to receive in, to read into. */
#define PVR_VERBS_READ_OFFSET (PVR_VERBS_TX_SIZE + PVR_VERBS_RX_SIZE)
#define PVR_VERBS_MEMORY_SIZE (PVR_VERBS_READ_OFFSET + PVR_READ_BUFFER)

/* Set in the ID of a request of pvr_verbs_read(). */
#define PVR_VERBS_ID_READ (1ull << 63)

/* What is read at this moment. */
struct pvr_verbs_reading {
	bool going; /* any thread; whoever polls clears it */
	/* Into which memory; who begins and who stops is never called at the same time. */
	struct ibv_mr *mr[PVR_WIRE_LOAN_PARTS];
	unsigned int mrs;
};

struct pvr_verbs {
	struct pvr_verbs_place place;
	struct pvr_verbs_stream stream;
	struct ibv_pd *pd; /* this queue pair's alone: another peer's keys are none here */
	uint8_t *memory; /* buffers, see above */
	struct ibv_mr *mr;
	struct ibv_comp_channel *channel;
	struct ibv_cq *sends, *receives;
	struct ibv_qp *qp;
	uint32_t psn;
	bool broken; /* under the stream's lock */
	const char *error; /* any thread; the first stays */
	struct pvr_source news, kick; /* the channel's; who waits for room and has it already */
	void (*ready)(void *opaque);
	void *opaque;

	uint8_t answers, asks; /* RDMA READs at once: the other side's; ours. 0: nothing is lent */
	uint32_t loans; /* any thread */
	int lend_errno; /* ditto: why the last one could not be; 0: it could */
	struct pvr_verbs_reading reading;
};

/* Exactly this memory, each entry by itself. False with errno: none of it is registered. */
bool pvr_verbs_register(struct pvr_verbs *verbs, const struct iovec *iov, int count, int access,
			struct ibv_mr **mr);
/* Any thread. Afterwards no NIC uses it; if that cannot be had otherwise the queue pair breaks. */
void pvr_verbs_deregister(struct pvr_verbs *verbs, struct ibv_mr **mr, unsigned int count);

/* Under the stream's lock. */
void pvr_verbs_has_done_reading(struct pvr_verbs *verbs);

/* Any thread: nobody reads or writes anything by the queue pair; its thread is told. */
void pvr_verbs_break(struct pvr_verbs *verbs, const char *why);

#endif /* PVR_NET_VERBS_QP_H */
