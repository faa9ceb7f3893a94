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
	qp->sq_done = 0;
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

#endif /* PVR_FLUSH_H */
