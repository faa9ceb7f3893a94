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
#include "path/pipe/internal.h"

#define PVR_INFLIGHT_MAX 1024u
#define PVR_PSN_MASK 0xffffffu
/* Maximum of PSNs in flight: with more, the order of two PSNs is ambiguous. */
#define PVR_PSNS_HALF (1u << 23)

struct pvr_inflight {
	uint32_t psn, psns; /* 0 for a local operation */
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
	uint64_t highest_sent; /* bytes of the newest in-flight WR that were sent at least once */
	bool complete; /* highest_sent covers the whole newest in-flight WR */
	uint32_t last_psn; /* the PSN of the message of the last fragment that was sent ... */
	uint64_t last_offset; /* ... and its offset there */
	uint32_t reads; /* in-flight WRs that are RDMA READ or atomics */
	bool down; /* no connection is up for the next request */
	bool probing; /* the last response was NO_QP or NO_GID: send one fragment per attempt */
	bool gap; /* a response was not accepted: resend */
	uint64_t progress; /* time of the last progress or start of the wait, ns */
	uint32_t window; /* maximum of in-flight WRs: size, or 1 behind the path of faults */
	uint32_t size; /* entries of @inflight; a power of two */
	struct pvr_inflight inflight[];
};

/* Return: in-flight WR @i, counted from the oldest. */
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

/*
 * Allocates the state of a queue pair that sends to another host. Return: NULL if out of
 * memory.
 */
struct pvr_pipe_sq *pvr_pipe_sq_new(struct pvr_qp *qp);
/* See struct pvr_path_ops. */
void pvr_pipe_resume(struct pvr_qp *qp);
void pvr_pipe_sq_save(struct pvr_codec *codec, struct pvr_qp *qp);
void pvr_pipe_sq_load(struct pvr_codec *codec, struct pvr_qp *qp);
/* Return: true if the route is still the best connection. */
bool pvr_pipe_is_routed(const struct pvr_pipe_sq *sq);
/* Resends from the oldest in-flight WR on. */
void pvr_pipe_rewind(struct pvr_pipe_sq *sq);
/* Moves @sq to @list for pvr_host_resume(); NULL: to no list. */
void pvr_pipe_enlist(struct pvr_pipe_sq *sq, struct pvr_pipe_sqs *list);
/* Completes the oldest in-flight WR. @wqe: its header. */
void pvr_pipe_complete(struct pvr_pipe_sq *sq, const struct pvr_send_wqe *wqe);
/* Counts a sent message. @taken: it was sent, or acknowledged if it is of RC. */
void pvr_pipe_count(struct pvr_pipe_sq *sq, uint8_t kind, uint64_t length, bool taken);

static inline bool pvr_pipe_is_sending(const struct pvr_qp *qp)
{
	return qp->state == PVR_QPS_RTS || qp->sq_draining;
}

/* At the end of a quantum: see DOC: timeout in sq_timer.c. */
void pvr_pipe_start_timer(struct pvr_pipe_sq *sq);

#endif /* PVR_PIPE_SQ_H */
