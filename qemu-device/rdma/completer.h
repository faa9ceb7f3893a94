/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/* What becomes of posted requests when a queue pair is in error. */
#ifndef PVR_FLUSH_H
#define PVR_FLUSH_H

#include "core/wq.h"

void pvr_send_push_cqe(struct pvr_qp *qp, const struct pvr_send_wqe *wqe,
		       enum pvrdma_wc_status status, uint64_t length);

/* Complete the send request at the head, with a CQE if it failed or asked for one. */
static inline void pvr_send_complete(struct pvr_qp *qp, const struct pvr_send_wqe *wqe,
				     enum pvrdma_wc_status status, uint64_t length)
{
	qp->sq_offset = 0;
	pvr_wq_advance(qp->adapter, &qp->sq);
	if (status != PVRDMA_WC_SUCCESS || qp->sq_sig_all ||
	    (wqe->hdr.send_flags & PVR_SEND_SIGNALED))
		pvr_send_push_cqe(qp, wqe, status, length);
}

/*
 * Complete requests with WR_FLUSH_ERR (IBTA vol. 1, 10.3.1), at most @budget.
 * Return: true if more are left.
 */
bool pvr_flush_send(struct pvr_qp *qp, unsigned int *budget);
bool pvr_flush_recv(struct pvr_qp *qp, unsigned int *budget);

/* What becomes of the request at the head, @wqe: it fails, and the send queue with it. */
void pvr_requester_fail(struct pvr_qp *qp, const struct pvr_send_wqe *wqe,
			enum pvrdma_wc_status status, const char *why);
/* It is tried again after @ns. */
void pvr_requester_await(struct pvr_qp *qp, uint64_t ns);
/*
 * An RNR NAK has come. Return: true if the request may be tried again, and the caller has it
 * wait; false if that was the last try, and it has failed.
 */
bool pvr_requester_rnr_nak(struct pvr_qp *qp, const struct pvr_send_wqe *wqe);
/* It waits for the RNR timer, @ns from now. */
void pvr_requester_wait_rnr(struct pvr_qp *qp, uint64_t ns);
/* Something is missing: it is tried again after a while, which costs nothing. */
void pvr_requester_wait(struct pvr_qp *qp);
/* A try has been in vain. Return: false if it was the last one, and it has failed. */
bool pvr_requester_retry(struct pvr_qp *qp, const struct pvr_send_wqe *wqe);
/* Nobody is there; the first time, only the wait begins. */
void pvr_requester_no_response(struct pvr_qp *qp, const struct pvr_send_wqe *wqe);

#endif /* PVR_FLUSH_H */
