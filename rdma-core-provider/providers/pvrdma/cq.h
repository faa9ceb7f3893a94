/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/* A CQ's ring, for the files that poll, flush, move and purge it. */
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

static inline struct pvr_cqe *pvr_cqe_at(struct pvr_cq *cq, uint32_t idx)
{
	return &cq->cqes_shm[idx & (cq->num - 1)];
}

static inline uint32_t pvr_cqe_qp_handle(const struct pvr_cqe *cqe)
{
	return le64toh(cqe->qp) & (PVR_QP_HANDLES - 1);
}

/* Opcodes of received messages have this bit. */
static inline unsigned int pvr_cqe_side(const struct pvr_cqe *cqe)
{
	static_assert(PVRDMA_WC_RECV == 1 << 7 && PVRDMA_WC_RECV_RDMA_WITH_IMM == (1 << 7 | 1) &&
			      PVR_SIDE_RECV == 1,
		      "a bit of the opcode tells the side");

	return le32toh(cqe->opcode) >> 7 & 1;
}

/*
 * Returns the number of unread CQEs, above cq->num if the device wrote an impossible
 * index. The acquire pairs with the device's release of prod_tail after it wrote the
 * CQEs.
 */
static inline uint32_t pvr_cq_fill(struct pvr_cq *cq)
{
	uint32_t tail = pvr_shm_load(&cq->ring_shm->prod_tail, memory_order_acquire);

	return likely(tail <= cq->idx_mask) ? (tail - cq->head) & cq->idx_mask : UINT32_MAX;
}

/* The release pairs with the device's acquire of cons_head before it overwrites CQEs. */
static inline void pvr_cq_publish(struct pvr_cq *cq)
{
	pvr_shm_store(&cq->ring_shm->cons_head, cq->head & cq->idx_mask, memory_order_release);
}

/*
 * cq.c: leaves the ring that the device writes for one of its own, which is empty. Returns 0
 * or ENOMEM. The caller holds cq->lock.
 */
int pvr_cq_leave_device(struct pvr_cq *cq);

/*
 * fatal.c: checks device and CQ after an empty poll. Returns ENOENT: the CQ is empty; 0:
 * there are now CQEs, of requests that a dead device will not complete; EIO: no CQE will
 * follow. The caller holds cq->lock.
 */
int pvr_cq_ask_locked(struct pvr_cq *cq);

#define PVR_CLOCK_POLLS 256 /* empty polls between reads of the clock */

/*
 * Like pvr_cq_ask_locked(), but returns early if no check is due, which is the common
 * case.
 */
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

/* clock.c: a clock of the process, in ms, whose readings are cheap and may be some ms late. */
uint64_t pvr_now_msec(void);
/* clock.c: reads the clocks of device and guest for the wall clock of completions; an errno. */
int pvr_cq_read_clocks(struct pvr_cq *cq);
/* clock.c: sets the calls of IBV_WC_EX_WITH_COMPLETION_TIMESTAMP*. */
void pvr_cq_set_clock_calls(struct pvr_cq *cq, uint64_t wc_flags);

#define PVR_WC_EX_TIMES \
	(IBV_WC_EX_WITH_COMPLETION_TIMESTAMP | IBV_WC_EX_WITH_COMPLETION_TIMESTAMP_WALLCLOCK)

/*
 * cq_poll.c: sets the calls of an extended CQ. wc_flags: the IBV_WC_EX_WITH_* to support.
 */
void pvr_cq_set_lazy_calls(struct pvr_cq *cq, uint64_t wc_flags);

#endif /* PVR_CQ_H */
