/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/* Work queues: rings that the guest fills with work requests. */
#ifndef PVR_WQ_H
#define PVR_WQ_H

#include "core/objects.h"
#include "core/compiler.h"

/* A send or receive request, copied from the ring once. */
struct pvr_send_wqe {
	struct pvrdma_sq_wqe_hdr hdr;
	union {
		struct pvrdma_sge sge[PVR_MAX_SGE];
		uint8_t data[PVR_MAX_INLINE]; /* if pvr_wqe_is_inline() */
	};
};

struct pvr_recv_wqe {
	struct pvrdma_rq_wqe_hdr hdr;
	struct pvrdma_sge sge[PVR_MAX_SGE];
};

/*
 * Return: bytes from one element to the next, see PVR_SQ_STRIDE_MIN. @max_sge: at most
 * PVR_MAX_SGE. @max_inline: at most PVR_MAX_INLINE.
 */
uint32_t pvr_sq_stride(uint32_t max_sge, uint32_t max_inline);
uint32_t pvr_rq_stride(uint32_t max_sge);
uint32_t pvr_wq_pages(uint32_t count, uint32_t stride);

void pvr_wq_init(struct pvr_wq *wq, const struct pvr_pages *pages, struct pvr_ring *shm,
		 uint32_t first_page, uint32_t count, uint32_t stride, uint32_t max_sge);

/*
 * Return: whether the request contains its data. Queues without inline data ignore the
 * flag.
 */
static inline bool pvr_wqe_is_inline(const struct pvr_wq *wq, const struct pvr_send_wqe *wqe)
{
	return wq->max_inline && (wqe->hdr.send_flags & PVR_SEND_INLINE);
}

/* Return: the slot of @index in guest memory. A slot does not cross a page boundary. */
static inline void *pvr_wq_element(const struct pvr_wq *wq, uint32_t index)
{
	uint64_t offset = (uint64_t)(index & (wq->count - 1)) * wq->stride;

	return pvr_pages_ptr(wq->pages, wq->start + offset);
}

/*
 * Return: the number of posted requests. -EINVAL: the guest's index is out of range or
 * has moved backwards; -EIO: guest RAM of the queue was removed. After an error the queue
 * must not be read.
 */
int pvr_wq_avail(const struct pvr_wq *wq);

/*
 * Copy @num_sge entries, at most max_sge. The smallest slot has space for one entry,
 * which is copied even if @num_sge is 0.
 */
static inline void pvr_wq_fetch_sge(const struct pvr_wq *wq, const struct pvrdma_sge *sge_shm,
				    uint32_t num_sge, struct pvrdma_sge *sge)
{
	uint32_t i, n;

	pvr_copy_once(&sge[0], &sge_shm[0], sizeof(*sge));
	if (num_sge <= 1)
		return;
	n = num_sge < wq->max_sge ? num_sge : wq->max_sge;
	for (i = 1; i < n; i++)
		pvr_copy_once(&sge[i], &sge_shm[i], sizeof(*sge));
}

/* Copy total_len bytes, at most max_inline. */
static inline void pvr_wq_fetch_inline(const struct pvr_wq *wq, const void *data_shm,
				       struct pvr_send_wqe *wqe)
{
	uint32_t len = wqe->hdr.total_len;

	pvr_copy_once(wqe->data, data_shm, len < wq->max_inline ? len : wq->max_inline);
}

/*
 * Copy the request at @index, which must exist. The queue's max_sge or max_inline limits
 * the copy. hdr.num_sge and hdr.total_len are the guest's values: the caller checks them.
 */
static inline void pvr_wq_fetch_send_at(const struct pvr_wq *wq, uint32_t index,
					struct pvr_send_wqe *wqe)
{
	const struct pvrdma_sq_wqe_hdr *hdr_shm = pvr_wq_element(wq, index);

	pvr_copy_once(&wqe->hdr, hdr_shm, sizeof(wqe->hdr));
	if (pvr_wqe_is_inline(wq, wqe))
		pvr_wq_fetch_inline(wq, hdr_shm + 1, wqe);
	else
		pvr_wq_fetch_sge(wq, (const struct pvrdma_sge *)(hdr_shm + 1), wqe->hdr.num_sge,
				 wqe->sge);
}

/* Copy the oldest request. */
static inline void pvr_wq_fetch_send(const struct pvr_wq *wq, struct pvr_send_wqe *wqe)
{
	pvr_wq_fetch_send_at(wq, wq->head, wqe);
}

/* Copy the header of the oldest request, which is enough to complete it. */
static inline void pvr_wq_fetch_send_hdr(const struct pvr_wq *wq, struct pvr_send_wqe *wqe)
{
	pvr_copy_once(&wqe->hdr, pvr_wq_element(wq, wq->head), sizeof(wqe->hdr));
}

static inline void pvr_wq_fetch_recv(const struct pvr_wq *wq, struct pvr_recv_wqe *wqe)
{
	const struct pvrdma_rq_wqe_hdr *hdr_shm = pvr_wq_element(wq, wq->head);

	pvr_copy_once(&wqe->hdr, hdr_shm, sizeof(wqe->hdr));
	pvr_wq_fetch_sge(wq, (const struct pvrdma_sge *)(hdr_shm + 1), wqe->hdr.num_sge, wqe->sge);
}

/* Consume the oldest request. The next pvr_publish() returns its slot to the guest. */
static inline void pvr_wq_advance(struct pvr_adapter *adapter, struct pvr_wq *wq)
{
	wq->head = (wq->head + 1) & (2 * wq->count - 1);
	if (wq->in_run)
		return;
	wq->in_run = true;
	SLIST_INSERT_HEAD(&adapter->consumed, wq, run);
}

/*
 * DOC: MODIFY_SRQ with PVR_SRQ_MAX_WR
 *
 * - pvr_wq_move_begin() takes the oldest posted request as entry 0 of the new ring.
 *   pvr_wq_move_run() copies requests in steps of the adapter's job. Its last step sets
 *   both indices of @to, a queue with the same max_sge.
 * - Queue pairs may take requests of @from between the steps. They hold copies, and @to
 *   begins behind them.
 */

/* Return: 0, or -EINVAL: the requests do not fit, or the guest's index is out of range. */
int pvr_wq_move_begin(const struct pvr_wq *from, struct pvr_ring_move *move);
/* Return: 0: done, -EINPROGRESS: steps remain, or -EINVAL: the guest has posted requests. */
int pvr_wq_move_run(struct pvr_adapter *adapter, const struct pvr_wq *from,
		    struct pvr_ring_move *move, struct pvr_wq *to);

#endif /* PVR_WQ_H */
