/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/* Outstanding work requests of a kernel SRQ. */
#ifndef PVR_SRQ_WQ_H
#define PVR_SRQ_WQ_H

#include "objects.h"

/*
 * DOC: Outstanding work requests of an SRQ
 *
 * The QPs of an SRQ take its requests in order and complete them in any order. So a slot
 * of the ring may be reused long before the request that was in it completes. Therefore
 * the wr_id that the device gets is a number that becomes free only when the completion
 * is polled. At most n numbers are in use, so the ring never overflows, regardless of the
 * device's cons_head.
 */

/* The queue to switch to. */
struct pvr_srq_move {
	struct pvr_ring *ring_shm;
	const __le32 *db_suppress_shm;
	struct pvr_srq_wr *wrs;
	u32 *slots;
	u32 n;
};

int pvr_srq_wq_init(struct pvr_srq_wq *wq, struct pvr_ring *ring_shm, u32 n,
		    u32 max_sge, u32 stride);
void pvr_srq_wq_exit(struct pvr_srq_wq *wq);

/**
 * pvr_srq_wq_complete() - end the request of a completion
 * @wq: the queue
 * @idx: number of the request, from the device
 * @done: set to that request
 *
 * Context: any; takes the queue's lock, inside that of a CQ.
 * Return: whether that request was outstanding.
 */
bool pvr_srq_wq_complete(struct pvr_srq_wq *wq, u32 idx, struct pvr_done *done);

/**
 * pvr_srq_wq_flush() - end a request that a QP took and did not complete
 * @wq: the queue, of a dead device
 * @wr_id: set to the consumer's
 *
 * Requests that no QP took stay in the queue, as always when a QP fails.
 *
 * Context: as pvr_srq_wq_complete().
 * Return: whether there was one.
 */
bool pvr_srq_wq_flush(struct pvr_srq_wq *wq, u64 *wr_id);

/**
 * pvr_srq_move_begin() - stop posting until the move ends
 * @wq: the queue
 * @move: zeroed, with n, ring_shm and db_suppress_shm set
 *
 * Posting fails with -EBUSY until pvr_srq_move_end() or pvr_srq_move_undo().
 *
 * Context: may sleep; the caller holds pvr_srq.lock.
 * Return: 0, -EINVAL (more than n requests are outstanding) or -ENOMEM; @move owns
 * nothing on failure.
 */
int pvr_srq_move_begin(struct pvr_srq_wq *wq, struct pvr_srq_move *move);

/**
 * pvr_srq_move_end() - switch to the queue that the device now uses
 * @wq: the queue
 * @move: from pvr_srq_move_begin(); freed
 * @moved: number of requests that the device copied
 *
 * Return: 0 or -EIO: @moved is impossible.
 */
int pvr_srq_move_end(struct pvr_srq_wq *wq, struct pvr_srq_move *move,
		     u32 moved);

/**
 * pvr_srq_move_undo() - keep the old queue
 * @wq: the queue
 * @move: from pvr_srq_move_begin(); freed
 */
void pvr_srq_move_undo(struct pvr_srq_wq *wq, struct pvr_srq_move *move);

#endif /* PVR_SRQ_WQ_H */
