// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* Work queues: rings that the guest fills with work requests. */
#include "core/wq.h"

#include <errno.h>
#include <string.h>

#include "core/compiler.h"
#include "core/dirty.h"

static uint32_t round_up_pow2(uint32_t n)
{
	uint32_t p = 1;

	while (p < n)
		p *= 2;
	return p;
}

uint32_t pvr_sq_stride(uint32_t max_sge, uint32_t max_inline)
{
	uint32_t list = max_sge * sizeof(struct pvrdma_sge);
	uint32_t stride = round_up_pow2(sizeof(struct pvrdma_sq_wqe_hdr) +
					(list > max_inline ? list : max_inline));

	return stride < PVR_SQ_STRIDE_MIN ? PVR_SQ_STRIDE_MIN : stride;
}

uint32_t pvr_rq_stride(uint32_t max_sge)
{
	uint32_t stride = round_up_pow2(sizeof(struct pvrdma_rq_wqe_hdr) +
					max_sge * sizeof(struct pvrdma_sge));

	return stride < PVR_RQ_STRIDE_MIN ? PVR_RQ_STRIDE_MIN : stride;
}

uint32_t pvr_wq_pages(uint32_t count, uint32_t stride)
{
	return ((uint64_t)count * stride + PVR_PAGE_SIZE - 1) / PVR_PAGE_SIZE;
}

void pvr_wq_init(struct pvr_wq *wq, const struct pvr_pages *pages, struct pvr_ring *shm,
		 uint32_t first_page, uint32_t count, uint32_t stride, uint32_t max_sge)
{
	*wq = (struct pvr_wq){
		.pages = pages,
		.shm = shm,
		.start = (uint64_t)first_page * PVR_PAGE_SIZE,
		.count = count,
		.stride = stride,
		.max_sge = max_sge,
	};
}

int pvr_wq_avail(const struct pvr_wq *wq)
{
	uint32_t tail, avail;

	if (!wq->count)
		return 0;
	if (wq->pages->broken)
		return -EIO;
	/* Pairs with the guest's barrier between the request and its index. */
	tail = __atomic_load_n(&wq->shm->prod_tail, __ATOMIC_ACQUIRE);
	avail = (tail - wq->head) & (2 * wq->count - 1);
	if (tail >= 2 * wq->count || avail > wq->count)
		return -EINVAL;
	return avail;
}

int pvr_wq_move_begin(const struct pvr_wq *from, struct pvr_ring_move *move)
{
	int avail = pvr_wq_avail(from);

	if (avail < 0 || (uint32_t)avail > move->size)
		return -EINVAL;
	move->first = from->head;
	move->n = avail;
	move->copied = 0;
	return 0;
}

/* By a local buffer: the guest may have given both queues the same pages. */
static void copy_recv(struct pvr_adapter *adapter, const struct pvr_wq *from,
		      struct pvr_ring_move *move, struct pvr_wq *to)
{
	size_t len = sizeof(struct pvrdma_rq_wqe_hdr) + from->max_sge * sizeof(struct pvrdma_sge);
	struct pvr_recv_wqe wqe PVR_UNINITIALIZED;
	void *to_shm;

	pvr_copy_once(&wqe, pvr_wq_element(from, (uint32_t)move->first + move->copied), len);
	to_shm = pvr_wq_element(to, move->copied++);
	memcpy(to_shm, &wqe, len);
	pvr_dirty(adapter, to_shm, len);
}

int pvr_wq_move_run(struct pvr_adapter *adapter, const struct pvr_wq *from,
		    struct pvr_ring_move *move, struct pvr_wq *to)
{
	uint32_t consumed = (from->head - (uint32_t)move->first) & (2 * from->count - 1);

	/* The guest posts meanwhile. */
	if (consumed > move->n)
		return -EINVAL;
	while (move->copied < move->n) {
		if (!pvr_job_may_go_on(adapter))
			return -EINPROGRESS;
		copy_recv(adapter, from, move, to);
		pvr_job_spend(adapter, 1 + PVR_WORK_COPY * from->stride / PVR_PAGE_SIZE);
	}
	to->head = consumed;
	__atomic_store_n(&to->shm->cons_head, consumed, __ATOMIC_RELAXED);
	__atomic_store_n(&to->shm->prod_tail, move->n, __ATOMIC_RELEASE);
	pvr_dirty(adapter, to->shm, sizeof(*to->shm));
	return 0;
}
