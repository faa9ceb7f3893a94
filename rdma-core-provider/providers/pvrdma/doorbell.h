/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * Doorbells: 32-bit stores to the context's page of the UAR BAR.
 *
 * A doorbell names a queue, not an index. The device reads the index from the ring, so
 * doorbells of several threads may arrive in any order and need no lock.
 */
#ifndef PVR_DOORBELL_H
#define PVR_DOORBELL_H

#include <util/mmio.h>
#include <util/udma_barrier.h>

#include "pvrdma.h"

/*
 * Stores value at offset of the doorbell page. The barrier orders the store of the index
 * before it (prod_tail of a queue, cons_head of a CQ), which the device reads after it
 * receives the doorbell.
 */
static inline void pvr_ring_doorbell(struct pvr_context *ctx, size_t offset, uint32_t value)
{
	udma_to_device_barrier();
	mmio_write32_le(ctx->uar + offset, htole32(value));
}

static inline void pvr_ring_qp(struct pvr_context *ctx, uint32_t handle, uint32_t flag)
{
	pvr_ring_doorbell(ctx, PVRDMA_UAR_QP_OFFSET, (handle & PVRDMA_UAR_HANDLE_MASK) | flag);
}

/* post.c: the doorbell of a post that published the sends before tail. */
void pvr_ring_sq(struct pvr_qp *qp, uint32_t tail);

static inline void pvr_ring_cq(struct pvr_context *ctx, uint32_t handle, uint32_t flag)
{
	pvr_ring_doorbell(ctx, PVRDMA_UAR_CQ_OFFSET, (handle & PVRDMA_UAR_HANDLE_MASK) | flag);
}

static inline void pvr_ring_srq(struct pvr_context *ctx, uint32_t handle)
{
	pvr_ring_doorbell(ctx, PVRDMA_UAR_SRQ_OFFSET,
			  (handle & PVRDMA_UAR_HANDLE_MASK) | PVR_DB_SRQ_RECV);
}

#endif /* PVR_DOORBELL_H */
