/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/* Completions and their notification. */
#ifndef PVR_COMPLETE_H
#define PVR_COMPLETE_H

#include "core/objects.h"

/*
 * DOC: runs
 *
 * What a quantum consumes and completes becomes visible at its end: the indices of its
 * queues are written once, behind all entries, and who armed is told once. Between turns
 * nothing is pending, so commands and doorbells find each ring as the guest sees it.
 */

/* The adapter's guest sees what was consumed and completed: queues first, then CQs. */
void pvr_publish(struct pvr_adapter *adapter);

/**
 * pvr_cq_push() - write a completion, for the next pvr_publish()
 * @cqe: complete but for qp, which names @qp
 * @solicited: it ends a wait for solicited completions; errors always do
 *
 * A CQ without room goes to its error state (IBTA vol. 1, 10.10.2.3 and 11.6.3.2).
 */
void pvr_cq_push(struct pvr_qp *qp, struct pvr_cq *cq, struct pvrdma_cqe *cqe, bool solicited);

/* How many completions the guest has not consumed; above cqe if its index is wild. */
uint32_t pvr_cq_unread(const struct pvr_cq *cq);

/* Notifies the guest of all that there is; whether the CQ is armed does not matter. */
void pvr_cq_notify(struct pvr_adapter *adapter, struct pvr_cq *cq);

/*
 * A doorbell that arms may have been lost: do what it would have done, if it is known
 * that the CQ is armed. Return: whether it gets armed in memory, where nothing is lost.
 */
bool pvr_cq_look_at_arming(struct pvr_adapter *adapter, struct pvr_cq *cq);

/*
 * The guest asks for one notification. Completions that it has not consumed and was
 * not told of count at once, as they may have come between its last look and this.
 */
void pvr_cq_arm(struct pvr_adapter *adapter, struct pvr_cq *cq, enum pvr_cq_arm kind);

/* Finds the indices, and the word that arms, in the first page of cq->pages. */
void pvr_cq_use_ring(struct pvr_adapter *adapter, struct pvr_cq *cq);

/**
 * pvr_cq_move() - RESIZE_CQ: go on in another ring
 * @pages: of the new ring, header page included; the CQ's own after success, when the
 *	   old ones are the caller's
 * @cqe: entries of the new ring
 *
 * Unread completions come first in the new ring. The CQ stays armed as it was, and what
 * a later arming would have announced it still will.
 *
 * Return: 0, or -EINVAL if they do not fit; then the CQ is as it was.
 */
int pvr_cq_move(struct pvr_adapter *adapter, struct pvr_cq *cq, const struct pvr_pages *pages,
		uint32_t cqe);

/* The CQ takes no more: CQ_ERR to the guest, and its QPs go to ERR. */
void pvr_cq_fail(struct pvr_adapter *adapter, struct pvr_cq *cq, const char *why);

#endif /* PVR_COMPLETE_H */
