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

#endif /* PVR_RECEIVE_H */
