/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * The send queue of a queue pair whose peer is on another host: what is in flight.
 *
 * DOC: in flight
 *
 * sq_inflight requests from sq.head on have begun: something of them was sent, or they were
 * executed here and have to wait for those before to complete. Of each there is a struct
 * pvr_inflight; the request itself stays in its ring slot, and is fetched and checked anew
 * for whatever else is to be done with it. A guest that changes it meanwhile fools itself.
 *
 * The cursor says what goes out next: in-flight WRs before it have been sent on the connection
 * that is used now, @sent bytes of that at the cursor, too. When the connection was made
 * anew, or something was missing at the other side, the cursor goes back to the oldest
 * flight; what the responder has got of that, qp->sq_offset, is not sent again.
 */
#ifndef PVR_PIPE_SQ_H
#define PVR_PIPE_SQ_H

#include "rdma/wr.h"
#include "path/pipe/remote_qp.h"

#define PVR_INFLIGHT_MAX 1024u
#define PVR_PSN_MASK 0xffffffu
/* More PSNs in flight, and nobody could tell what comes before what. */
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
	bool probing; /* nobody was there: one fragment at a time until somebody is */
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
