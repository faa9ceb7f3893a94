/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/* Which work requests of a kernel QP are still to be completed. */
#ifndef PVR_WQ_H
#define PVR_WQ_H

#include "objects.h"
#include "ring.h"

/*
 * DOC: Outstanding work requests
 *
 * Those from done to tail are the device's. Posting moves tail (under the queue's
 * lock), completing moves done (under the lock of the CQ). Each side reads the
 * other's index with acquire and stores its own with release, so that an entry of
 * wr_ids is written before it can be completed and read before it can be re-used.
 *
 * A completion of a request also ends the unsignaled ones before it. A queue has
 * room when less than n are outstanding, as the verbs say, however far the device's
 * own index is.
 *
 * The device knows a request by its index, with WQ_RECV added in receive queues.
 */
#define PVR_WQ_RECV BIT_ULL(32)

int pvr_wq_init(struct pvr_wq *wq, struct pvr_ring *ring_shm, u32 n,
		u32 max_sge, u32 stride, size_t offset);
void pvr_wq_exit(struct pvr_wq *wq);

/**
 * pvr_wq_room() - may another request be posted?
 * @wq: the queue; the caller holds its lock
 *
 * Return: 0, -ENOMEM (full) or -EINVAL (the device wrote an impossible index).
 */
int pvr_wq_room(struct pvr_wq *wq);

/**
 * pvr_wq_push() - hand the element at tail to the device
 * @wq: the queue; the caller holds its lock, has checked for room and has filled
 *	the element
 * @wr_id: the consumer's
 */
void pvr_wq_push(struct pvr_wq *wq, u64 wr_id);

/**
 * pvr_wq_complete() - end the requests up to one that the device names
 * @wq: the queue; the caller holds the lock of its CQ
 * @idx: as the device said
 * @wr_id: set to the consumer's
 *
 * Return: whether that request was outstanding.
 */
bool pvr_wq_complete(struct pvr_wq *wq, u32 idx, u64 *wr_id);

/**
 * pvr_wq_flush() - end the oldest outstanding request
 * @wq: the queue, of a dead device; the caller holds the lock of its CQ
 * @wr_id: set to the consumer's
 *
 * Return: whether there was one.
 */
bool pvr_wq_flush(struct pvr_wq *wq, u64 *wr_id);

/**
 * pvr_wq_reset() - forget all requests
 * @wq: the queue, its QP being in RESET; or none, as with an SRQ
 * @cq: its CQ, whose lock is taken, and inside it the queue's
 */
void pvr_wq_reset(struct pvr_wq *wq, struct pvr_cq *cq);

static inline void pvr_wqe_fill_sges(struct pvrdma_sge *to,
				     const struct ib_sge *from, int n)
{
	int i;

	for (i = 0; i < n; i++) {
		to[i].addr = from[i].addr;
		to[i].length = from[i].length;
		to[i].lkey = from[i].lkey;
	}
}

#endif /* PVR_WQ_H */
