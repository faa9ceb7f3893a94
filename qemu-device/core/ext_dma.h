/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * Guest memory that an RDMA NIC may read or write at this moment, and its revocation.
 *
 * DOC: revocation
 *
 * - A NIC accesses guest memory while no thread holds a lock.
 * - A guest may free its memory meanwhile: it deregisters the region, resets the queue
 *   pair or takes rights from it, is shut down, or its request completes with an error.
 * - The NIC's access ends before the guest is told that the memory is free.
 * - No thread waits for the network for that. The code that frees the memory revokes its
 *   external DMA, which ends the registration with the NIC at once.
 * - If the NIC was in the middle of a transfer, the queue pair between the two hosts
 *   breaks. Traffic continues by TCP until there is a new queue pair.
 * - Then the guest's payloads are copied for a while, see pvr_ext_dma_is_allowed(). So a
 *   guest cannot disturb the traffic of others repeatedly.
 *
 * DOC: locks
 *
 * - An external DMA begins with its adapter's lock held.
 * - Either the connection's thread ends it, or a revocation with the adapter's lock held.
 * - The adapter's nic_lock serializes the two. It is taken inside the locks of adapters
 *   and connections.
 * - A revocation takes it only if the adapter's counts show external DMA of the region. No
 *   count rises meanwhile, because that needs the adapter's lock. A count falls after stop()
 *   has returned: the release there pairs with the acquire load of the revocation.
 */
#ifndef PVR_EXT_DMA_H
#define PVR_EXT_DMA_H

#include "core/sg.h"

/* A fragment with more regions is copied. */
#define PVR_EXT_DMA_MRS 4

enum pvr_ext_dma_kind {
	PVR_EXT_DMA_REQ_SRC, /* a requester's payload */
	PVR_EXT_DMA_RESP_SRC, /* a responder's payload of RDMA READ */
	PVR_EXT_DMA_RESP_DST, /* into a responder's memory */
	PVR_EXT_DMA_REQ_DST, /* into a requester's memory, for RDMA READ */
};

/* One external DMA, a member of the struct that begins it. All zero before. */
struct pvr_ext_dma {
	LIST_ENTRY(pvr_ext_dma) link; /* of the adapter */
	struct pvr_adapter *adapter; /* NULL: never begun, or ended after stop() */
	const struct pvr_qp *qp;
	uint32_t psn; /* of the request, where memory is exposed */
	enum pvr_ext_dma_kind kind;
	const struct pvr_mr *mr[PVR_EXT_DMA_MRS];
	/* Ends the NIC's access. The adapter's nic_lock is held. */
	void (*stop)(struct pvr_ext_dma *use);
};

/*
 * Return: false if the guest has broken a connection lately. The adapter's lock is held.
 */
bool pvr_ext_dma_is_allowed(const struct pvr_adapter *adapter);
/* The same for writes to guest memory, which the log of dirty pages would not see. */
bool pvr_ext_dma_may_write(const struct pvr_adapter *adapter);
/*
 * Begin an external DMA of bytes [@offset, @offset + @len) of @sg. @use: qp, psn, kind
 * and stop are set. The adapter's lock is held. Return: false if the bytes lie in more
 * than PVR_EXT_DMA_MRS regions, or in no region.
 */
bool pvr_ext_dma_begin(struct pvr_ext_dma *use, const struct pvr_sg *sg, uint64_t offset,
		       uint64_t len);
/* End it, unless it has ended already. May be called by any thread. */
void pvr_ext_dma_end(struct pvr_ext_dma *use);

/* --------------------------------------------- with the adapter's lock held */

/* Revoke those of a region or window, before it loses its memory. */
void pvr_ext_dma_revoke_mr(const struct pvr_mr *mr);
/* Revoke those of a queue pair that stops. */
void pvr_ext_dma_revoke_qp(const struct pvr_qp *qp);
/* Revoke those for requests of its peer: it loses a right. */
void pvr_ext_dma_revoke_responder(const struct pvr_qp *qp);
/*
 * End those of @qp of the same kind as @but, except @but: the same fragment has arrived
 * by @but's connection.
 */
void pvr_ext_dma_revoke_dst(const struct pvr_qp *qp, const struct pvr_ext_dma *but);
/* Revoke those that write to memory of the adapter, without a penalty: not the guest caused it. */
void pvr_ext_dma_revoke_writes(struct pvr_adapter *adapter);
/* Revoke those of all memory of the adapter. */
void pvr_ext_dma_revoke_all(struct pvr_adapter *adapter);
/*
 * The request at @psn is complete: end the exposure of its payload, unless RNDV_DONE has
 * ended it before.
 */
void pvr_nic_request_done(const struct pvr_qp *qp, uint32_t psn);

#endif /* PVR_EXT_DMA_H */
