/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/* A CQ's ring, for the files that poll it, move it and clear it. */
#ifndef PVR_CQ_H
#define PVR_CQ_H

#include <errno.h>

#include "pvrdma.h"

static inline void pvr_cq_lock(struct pvr_cq *cq)
{
	if (!cq->single_threaded)
		pvr_lock(&cq->lock);
}

static inline void pvr_cq_unlock(struct pvr_cq *cq)
{
	if (!cq->single_threaded)
		pvr_unlock(&cq->lock);
}

static inline struct pvrdma_cqe *pvr_cqe_at(struct pvr_cq *cq, uint32_t idx)
{
	return &cq->cqes_shm[idx & (cq->num - 1)];
}

static inline uint32_t pvr_cqe_qp_handle(const struct pvrdma_cqe *cqe)
{
	return cqe->qp & (PVR_QP_HANDLES - 1);
}

/*
 * The acquire pairs with the device's release of prod_tail after it wrote the CQEs. Returns a
 * number above cq->num if the device wrote an impossible index.
 */
static inline uint32_t pvr_cq_fill(struct pvr_cq *cq)
{
	uint32_t tail = atomic_load_explicit(&cq->ring_shm->prod_tail, memory_order_acquire);

	/* Our own index is valid. */
	return likely(tail < 2 * cq->num) ? (tail - cq->head) & (2 * cq->num - 1) : UINT32_MAX;
}

/* The release pairs with the device's acquire of cons_head before it writes over old CQEs. */
static inline void pvr_cq_publish(struct pvr_cq *cq)
{
	atomic_store_explicit(&cq->ring_shm->cons_head, cq->head, memory_order_release);
}

/*
 * fatal.c: after a poll that found nothing, and has reason to ask why. ENOENT: so it is; 0: there
 * are CQEs now, those of what a dead device will not complete; EIO: nothing will ever come.
 */
int pvr_cq_ask_locked(struct pvr_cq *cq);

#define PVR_CLOCK_POLLS 256 /* how often an empty poll looks at the clock */

/* The same for every empty poll: most have no reason. */
static inline int pvr_cq_idle_locked(struct pvr_cq *cq)
{
	struct pvr_context *ctx = to_pvr_context(cq->verbs_cq.cq.context);

	if (likely(++cq->empty_polls % PVR_CLOCK_POLLS &&
		   !atomic_load_explicit(&cq->notified, memory_order_relaxed) &&
		   !atomic_load_explicit(&cq->broken, memory_order_relaxed) &&
		   !atomic_load_explicit(&ctx->dead, memory_order_relaxed)))
		return ENOENT;
	return pvr_cq_ask_locked(cq);
}

/* cq_poll.c: makes an extended CQ of it. wc_flags: IBV_WC_EX_WITH_* that will be read. */
void pvr_cq_set_lazy_calls(struct pvr_cq *cq, uint64_t wc_flags);

#endif /* PVR_CQ_H */
