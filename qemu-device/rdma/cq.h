/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/* Completion queues: write CQEs, publish them, notify the guest. */
#ifndef PVR_CQ_H
#define PVR_CQ_H

#include "core/objects.h"

/*
 * DOC: publication
 *
 * - pvr_publish() ends a quantum: it makes consumed requests and completions visible.
 * - It writes each index once, after all entries, and notifies each armed CQ at most
 *   once.
 * - Between quanta no completion is unpublished: commands and doorbells find each ring as
 *   the guest sees it.
 */

/*
 * Make consumed requests and completions visible to the guest: work queues first, then
 * CQs.
 */
void pvr_publish(struct pvr_adapter *adapter);

/**
 * pvr_cq_push() - write a completion, for the next pvr_publish()
 * @cqe: the completion; its member qp is set here
 * @solicited: notify a CQ that is armed for solicited completions; errors always notify
 *	   it
 *
 * A CQ without room goes to its error state (IBTA 10.10.2.3 and 11.6.3.2). @qp goes to ERR if
 * the CQ is in error.
 */
void pvr_cq_push(struct pvr_qp *qp, struct pvr_cq *cq, struct pvrdma_cqe *cqe, bool solicited);

/* Return: true if pvr_cq_push() has room for one completion. */
bool pvr_cq_has_room(struct pvr_cq *cq);

/*
 * Number of completions that the guest has not consumed; above cqe if cons_head is out of
 * range.
 */
uint32_t pvr_cq_unread(const struct pvr_cq *cq);

/* Notify the guest of all completions, armed or not. */
void pvr_cq_notify(struct pvr_adapter *adapter, struct pvr_cq *cq);

/* The end of a wait by moderation: notify the guest if the CQ is armed for what has come. */
void pvr_cq_notify_late(struct pvr_adapter *adapter, struct pvr_cq *cq);

/*
 * Handle a possibly lost arm doorbell: if the CQ is known to be armed, repeat
 * pvr_cq_arm().
 * Return: true if the guest has armed this CQ in memory (PVR_EXT_CQ_ARM_DBREC), where no
 * arm is lost.
 */
bool pvr_cq_check_arming(struct pvr_adapter *adapter, struct pvr_cq *cq);

/*
 * Arm the CQ for one notification. Unconsumed completions without a notification notify
 * at once: they may have come between the guest's last poll and its arm.
 */
void pvr_cq_arm(struct pvr_adapter *adapter, struct pvr_cq *cq, enum pvr_cq_arm kind);

/*
 * Set the pointers to the indices and to the arm doorbell record, in the first of
 * cq->pages.
 */
void pvr_cq_use_ring(struct pvr_adapter *adapter, struct pvr_cq *cq);

/*
 * DOC: RESIZE_CQ
 *
 * - pvr_cq_move_begin() takes the oldest unread completion as entry 0 of the new ring.
 *   pvr_cq_move_run() copies completions in steps of the adapter's job, with those that
 *   are written between the steps. Its last step switches the CQ to the new ring.
 * - The CQ stays armed, and a later arm notifies as it would have done without the move.
 * - An error leaves the CQ as it was. The caller owns move->pages in all cases: after the
 *   last step these are the pages of the old ring.
 */

/* Return: 0, or -EINVAL: the completions do not fit. The caller has set pages and size. */
int pvr_cq_move_begin(const struct pvr_cq *cq, struct pvr_ring_move *move);
/*
 * Return: 0: done, -EINPROGRESS: steps remain, -EINVAL: the completions do not fit any
 * more, or -EIO: the CQ has failed.
 */
int pvr_cq_move_run(struct pvr_adapter *adapter, struct pvr_cq *cq, struct pvr_ring_move *move);

/*
 * Move the CQ to its error state: queue the event CQ_ERR, and begin a sweep that moves its QPs
 * to ERR.
 */
void pvr_cq_fail(struct pvr_adapter *adapter, struct pvr_cq *cq, const char *why);

#endif /* PVR_CQ_H */
