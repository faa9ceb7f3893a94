/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/* Outstanding work requests of a kernel QP. */
#ifndef PVR_WQ_H
#define PVR_WQ_H

#include "objects.h"
#include "ring.h"

/*
 * DOC: Outstanding work requests
 *
 * Elements done .. tail belong to the device. Posting advances tail under the queue's
 * lock; completing advances done under the lock of the CQ. Each side loads the other's
 * index with acquire and stores its own with release. So an entry of wr_ids is written
 * before it can be completed, and read before it can be reused.
 *
 * A completion also ends the unsignaled requests before it. A queue has room while fewer
 * than n requests are outstanding, as the verbs specify; the device's own index does not
 * count.
 *
 * The wr_id that the device gets is the request's index, plus PVR_WQ_RECV in receive
 * queues.
 */
#define PVR_WQ_RECV BIT_ULL(32)

int pvr_wq_init(struct pvr_wq *wq, struct pvr_ring *ring_shm, u32 n,
		u32 max_sge, u32 stride, size_t offset);
void pvr_wq_exit(struct pvr_wq *wq);

/**
 * pvr_wq_room() - check for room for another request
 * @wq: the queue; the caller holds its lock
 *
 * Return: 0 or -ENOMEM (full).
 */
int pvr_wq_room(struct pvr_wq *wq);

/**
 * pvr_wq_index_ok() - check the index that the device writes
 * @wq: the queue
 *
 * Return: false if the index is impossible. Requests of such a device never complete.
 */
bool pvr_wq_index_ok(const struct pvr_wq *wq);

/**
 * pvr_wq_push() - pass the element at tail to the device
 * @wq: the queue; the caller holds its lock, has checked for room, filled the element
 * @wr_id: the consumer's
 * @bytes: of the request's buffers
 */
void pvr_wq_push(struct pvr_wq *wq, u64 wr_id, u32 bytes);

/**
 * pvr_wq_complete() - end the requests up to that of a completion
 * @wq: the queue; the caller holds the lock of its CQ
 * @idx: index of the request, from the device
 * @done: set to that request
 *
 * Return: whether that request was outstanding.
 */
bool pvr_wq_complete(struct pvr_wq *wq, u32 idx, struct pvr_done *done);

/**
 * pvr_wq_flush() - end the oldest outstanding request
 * @wq: the queue, of a dead device; the caller holds the lock of its CQ
 * @wr_id: set to the consumer's
 *
 * Return: whether there was one.
 */
bool pvr_wq_flush(struct pvr_wq *wq, u64 *wr_id);

/**
 * pvr_wq_reset() - drop all requests
 * @wq: the queue of a QP in RESET, or an unused one, as with an SRQ
 * @cq: its CQ, whose lock this function takes, and inside it the queue's
 */
void pvr_wq_reset(struct pvr_wq *wq, struct pvr_cq *cq);

/* Return: the bytes of all of them, at most U32_MAX. */
static inline u32 pvr_wqe_fill_sges(struct pvr_sge *to,
				    const struct ib_sge *from, int n)
{
	u64 bytes = 0;
	int i;

	for (i = 0; i < n; i++) {
		to[i].addr = cpu_to_le64(from[i].addr);
		to[i].length = cpu_to_le32(from[i].length);
		to[i].lkey = cpu_to_le32(from[i].lkey);
		bytes += from[i].length;
	}
	return min_t(u64, bytes, U32_MAX);
}

#endif /* PVR_WQ_H */
