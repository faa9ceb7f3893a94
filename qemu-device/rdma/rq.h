/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/* Receive requests: from the QP's own queue or its SRQ, until they complete. */
#ifndef PVR_RECEIVE_H
#define PVR_RECEIVE_H

#include "core/wq.h"

/**
 * pvr_recv_get() - the receive request for the message in progress
 *
 * Asked again for the same message it gives the same request: that of the QP's own
 * queue is consumed by pvr_recv_complete() only, one of an SRQ is taken out and held.
 *
 * Return: 0, -ENOENT (nothing is posted) or -EINVAL (the guest's index is wild; the
 * queue is in its error state now).
 */
int pvr_recv_get(struct pvr_qp *qp, struct pvr_recv_wqe *wqe);

/* The request of pvr_recv_get() is done: consume it and write its completion. */
void pvr_recv_complete(struct pvr_qp *qp, struct pvrdma_cqe *cqe, bool solicited);

/* Receive requests that a queue holds; shorter ones are rung for. */
#define PVR_RNR_LONG 128

/* A requester that gets an RNR NAK from @to looks for the next receive itself. */
static inline bool pvr_rnr_is_polled(const struct pvr_qp *to)
{
	return to->db_suppress_shm && !to->srq && to->rq.count >= PVR_RNR_LONG && !to->rnr_nak_sent;
}

/* The guest has posted receives: who waits for them need not wait longer. */
void pvr_sched_posted_recv(struct pvr_qp *qp);
void pvr_sched_posted_srq(struct pvr_srq *srq);
/* Nobody waited at @qp: its receive is for the next one that waits at its SRQ. */
void pvr_sched_pass_on(struct pvr_qp *qp);
void pvr_srq_fail(struct pvr_adapter *adapter, struct pvr_srq *srq, const char *why);

#endif /* PVR_RECEIVE_H */
