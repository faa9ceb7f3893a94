/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/* Work queues: rings that the guest fills with work requests. */
#include "datapath/queue.h"

#include <errno.h>
#include <string.h>

#include "model/shm.h"

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
		.first_page = first_page,
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
	/* Pairs with the guest's barrier between a request and its index. */
	tail = __atomic_load_n(&wq->shm->prod_tail, __ATOMIC_ACQUIRE);
	avail = (tail - wq->head) & (2 * wq->count - 1);
	if (tail >= 2 * wq->count || avail > wq->count)
		return -EINVAL;
	return avail;
}

static void *element_at(const struct pvr_wq *wq, uint32_t index)
{
	uint64_t offset = (uint64_t)(index & (wq->count - 1)) * wq->stride;

	return pvr_pages_ptr(wq->pages, (uint64_t)wq->first_page * PVR_PAGE_SIZE + offset);
}

static const void *element(const struct pvr_wq *wq)
{
	return element_at(wq, wq->head);
}

/* Only as many entries as are said to be used, and fit. */
static void fetch_sge(const struct pvr_wq *wq, const void *sge_shm, uint32_t num_sge,
		      struct pvrdma_sge *sge)
{
	uint32_t n = num_sge < wq->max_sge ? num_sge : wq->max_sge;

	pvr_copy_once(sge, sge_shm, n * sizeof(*sge));
}

/* Only as many bytes as are said to be there, and fit. */
static void fetch_inline(const struct pvr_wq *wq, const void *data_shm,
			 struct pvr_send_wqe *wqe)
{
	uint32_t len = wqe->hdr.total_len;

	pvr_copy_once(wqe->data, data_shm, len < wq->max_inline ? len : wq->max_inline);
}

void pvr_wq_fetch_send(const struct pvr_wq *wq, struct pvr_send_wqe *wqe)
{
	const struct pvrdma_sq_wqe_hdr *hdr_shm = element(wq);

	pvr_copy_once(&wqe->hdr, hdr_shm, sizeof(wqe->hdr));
	if (pvr_wqe_is_inline(wq, wqe))
		fetch_inline(wq, hdr_shm + 1, wqe);
	else
		fetch_sge(wq, hdr_shm + 1, wqe->hdr.num_sge, wqe->sge);
}

void pvr_wq_fetch_recv(const struct pvr_wq *wq, struct pvr_recv_wqe *wqe)
{
	const struct pvrdma_rq_wqe_hdr *hdr_shm = element(wq);

	pvr_copy_once(&wqe->hdr, hdr_shm, sizeof(wqe->hdr));
	fetch_sge(wq, hdr_shm + 1, wqe->hdr.num_sge, wqe->sge);
}

int pvr_wq_move_recv(const struct pvr_wq *from, struct pvr_wq *to)
{
	size_t len = sizeof(struct pvrdma_rq_wqe_hdr) +
		     from->max_sge * sizeof(struct pvrdma_sge);
	int i, avail = pvr_wq_avail(from);
	struct pvr_recv_wqe wqe;

	if (avail < 0 || (uint32_t)avail > to->count)
		return -EINVAL;
	/* By way of a copy: the guest may have given both the same pages. */
	for (i = 0; i < avail; i++) {
		pvr_copy_once(&wqe, element_at(from, from->head + i), len);
		memcpy(element_at(to, i), &wqe, len);
	}
	to->head = 0;
	__atomic_store_n(&to->shm->cons_head, 0, __ATOMIC_RELAXED);
	__atomic_store_n(&to->shm->prod_tail, avail, __ATOMIC_RELEASE);
	return 0;
}
