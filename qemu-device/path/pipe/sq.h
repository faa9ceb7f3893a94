/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * The send queue of a queue pair whose peer is on another host: its in-flight WRs.
 *
 * DOC: in-flight WRs
 *
 * * sq_inflight requests from sq.head on have started: a part was sent, or a local
 *   operation was executed and waits to complete in order.
 * * Each has a struct pvr_inflight. The request itself stays in its ring slot, and is
 *   fetched and checked again at each use. A guest that changes it meanwhile harms itself
 *   only.
 * * The cursor is the next in-flight WR to send on the current connection. @sent bytes of
 *   it were sent.
 * * After a new connection or a PSN_SEQ_ERR the cursor returns to the oldest in-flight
 *   WR. Its first qp->sq_offset bytes, which the responder has, are not sent again.
 */
#ifndef PVR_PIPE_SQ_H
#define PVR_PIPE_SQ_H

#include "rdma/wr.h"
#include "path/pipe/remote_qp.h"

#define PVR_INFLIGHT_MAX 1024u
#define PVR_PSN_MASK 0xffffffu
/* Maximum of PSNs in flight: with more, the order of two PSNs is ambiguous. */
#define PVR_PSNS_HALF (1u << 23)

struct pvr_inflight {
	uint32_t psn, psns; /* none, if it was executed here */
	uint64_t length;
	uint8_t kind; /* enum pvr_op_kind */
};

struct pvr_pipe_sq {
	struct pvr_qp *qp;
	TAILQ_ENTRY(pvr_pipe_sq) link;
	struct pvr_pipe_sqs *list; /* of the adapter's pvr_pipe_sq_lists; NULL: none */
	struct pvr_route route;
	struct pvr_flow *flow; /* counters; or NULL */
	uint32_t cursor;
	uint64_t sent;
	uint64_t highest_sent; /* bytes of the last in-flight WR that were ever sent */
	bool complete; /* that is all of it */
	uint32_t reads; /* in-flight WRs that are RDMA READ or atomics */
	bool down; /* something is to be sent, and there is no connection */
	bool probing; /* the last response was NO_QP or NO_GID: send one fragment per attempt */
	bool gap; /* an answer could not be used: begin again */
	uint64_t progress; /* when it was answered last, or began to wait */
	uint32_t size; /* a power of two, at most that of the send queue */
	struct pvr_inflight inflight[];
};

/* The @i-th of sq_inflight. */
static inline struct pvr_inflight *pvr_inflight(struct pvr_pipe_sq *sq, uint32_t i)
{
	return &sq->inflight[(sq->qp->sq.head + i) & (sq->size - 1)];
}

static inline bool pvr_inflight_has_response(const struct pvr_inflight *inflight)
{
	return inflight->kind == PVR_OP_READ || inflight->kind == PVR_OP_ATOMIC;
}

static inline uint32_t pvr_psn_distance(uint32_t from, uint32_t to)
{
	return (to - from) & PVR_PSN_MASK;
}

/* For a queue pair that sends to another host from now on. NULL: no memory. */
struct pvr_pipe_sq *pvr_pipe_sq_new(struct pvr_qp *qp);
/* Its connection is still the one to use. */
bool pvr_pipe_is_routed(const struct pvr_pipe_sq *sq);
/* From the oldest in-flight WR on everything is sent again. */
void pvr_pipe_rewind(struct pvr_pipe_sq *sq);
/* Where pvr_host_resume() finds it. */
void pvr_pipe_enlist(struct pvr_pipe_sq *sq, struct pvr_pipe_sqs *list);
/* The oldest in-flight WR is done: completes its request. @wqe: its header. */
void pvr_pipe_complete(struct pvr_pipe_sq *sq, const struct pvr_send_wqe *wqe);
/* A message has been sent, and taken if that is known: counts it. */
void pvr_pipe_count(struct pvr_pipe_sq *sq, uint8_t kind, uint64_t length, bool taken);

#endif /* PVR_PIPE_SQ_H */
