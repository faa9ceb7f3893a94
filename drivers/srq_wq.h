/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/* Which work requests of a kernel SRQ are still to be completed. */
#ifndef PVR_SRQ_WQ_H
#define PVR_SRQ_WQ_H

#include "objects.h"

/*
 * DOC: Outstanding work requests of an SRQ
 *
 * The QPs of an SRQ take its requests in order and complete them in any, so a slot
 * of the ring may be used again long before the request that lay there has ended.
 * Therefore the device knows a request by a number that is free again when its
 * completion was polled; at most n are given out, so the ring is never too full,
 * whatever the device says it took.
 */

/* A queue that shall replace another one. */
struct pvr_srq_move {
	struct pvr_ring *ring_shm;
	const u32 *quiet_shm;
	struct pvr_srq_wr *wrs;
	u32 *slots;
	u32 n;
};

int pvr_srq_wq_init(struct pvr_srq_wq *wq, struct pvr_ring *ring_shm, u32 n,
		    u32 max_sge, u32 stride);
void pvr_srq_wq_exit(struct pvr_srq_wq *wq);

/**
 * pvr_srq_wq_complete() - end a request that the device names
 * @wq: the queue
 * @idx: as the device said
 * @wr_id: set to the consumer's
 *
 * Context: any; takes the queue's lock, inside that of a CQ.
 * Return: whether that request was outstanding.
 */
bool pvr_srq_wq_complete(struct pvr_srq_wq *wq, u32 idx, u64 *wr_id);

/**
 * pvr_srq_wq_flush() - end a request that a QP took and will not complete
 * @wq: the queue, of a dead device
 * @wr_id: set to the consumer's
 *
 * Those that no QP took stay in the queue, as ever when a QP fails.
 * Context: as pvr_srq_wq_complete().
 * Return: whether there was one.
 */
bool pvr_srq_wq_flush(struct pvr_srq_wq *wq, u64 *wr_id);

/**
 * pvr_srq_move_begin() - nobody posts any more, until the move has ended
 * @wq: the queue
 * @move: zeroed, with n, ring_shm and quiet_shm set
 *
 * Return: 0, -EINVAL (more requests are outstanding), -EBUSY or -ENOMEM.
 */
int pvr_srq_move_begin(struct pvr_srq_wq *wq, struct pvr_srq_move *move);

/**
 * pvr_srq_move_end() - use the other queue, to which the device has moved
 * @wq: the queue
 * @move: what has begun
 * @moved: requests that the device says it copied
 *
 * Return: 0 or -EIO: it cannot be that many.
 */
int pvr_srq_move_end(struct pvr_srq_wq *wq, struct pvr_srq_move *move,
		     u32 moved);

/**
 * pvr_srq_move_undo() - stay with the old queue
 * @wq: the queue
 * @move: what has begun
 */
void pvr_srq_move_undo(struct pvr_srq_wq *wq, struct pvr_srq_move *move);

#endif /* PVR_SRQ_WQ_H */
