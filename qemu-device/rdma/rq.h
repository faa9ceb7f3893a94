/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/* Receive requests: from the QP's own queue or its SRQ, until they complete. */
#ifndef PVR_RQ_H
#define PVR_RQ_H

#include "core/wq.h"

/**
 * pvr_recv_get() - the receive request for the message in progress
 *
 * Further calls for the same message return the same request: pvr_recv_complete()
 * consumes a request of the QP's own queue; a request of an SRQ is consumed at once and
 * copied to the QP.
 *
 * Return: 0, -ENOENT (no request is posted) or -EINVAL (the guest's producer index is out
 * of range; the queue is now in its error state).
 */
int pvr_recv_get(struct pvr_qp *qp, struct pvr_recv_wqe *wqe);

/* The request of pvr_recv_get() is done: consume it and write its completion. */
void pvr_recv_complete(struct pvr_qp *qp, struct pvrdma_cqe *cqe, bool solicited);

/* Minimum size of a receive queue that is polled; the guest rings for shorter queues. */
#define PVR_RNR_LONG 128

/* True if a requester with an RNR NAK from @to polls for the next receive. */
static inline bool pvr_rnr_is_polled(const struct pvr_qp *to)
{
	return to->db_suppress_shm && !to->srq && to->rq.count >= PVR_RNR_LONG && !to->rnr_nak_sent;
}

/* The guest has posted receives: resume requesters that wait for them. */
void pvr_sched_posted_recv(struct pvr_qp *qp);
void pvr_sched_posted_srq(struct pvr_srq *srq);
/* No requester of @qp waits: resume the next requester that waits at its SRQ. */
void pvr_sched_pass_on(struct pvr_qp *qp);
/* The event SRQ_ERR, and a sweep that moves the QPs of the SRQ to ERR. */
void pvr_srq_fail(struct pvr_adapter *adapter, struct pvr_srq *srq, const char *why);

#endif /* PVR_RQ_H */
