/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * Guest memory that an RDMA NIC may read or write at this moment, and how that ends.
 *
 * DOC: who may wait
 *
 * A NIC works while nobody holds a lock, and a guest may take its memory back meanwhile: it
 * deregisters the region, resets the queue pair, completes the request by an error, is shut
 * down. Then it is told that its memory is its own again, so the NIC must have let go of it
 * before; nobody may wait for a network for that. So whoever takes memory away revokes its
 * uses, which end the registration with the NIC at once; if the NIC was in the middle of it
 * the queue pair that joins the two hosts breaks, and all goes on by TCP until there is
 * another one. That is nothing that a guest is to do to others again and again: for a while
 * its payloads are copied then (pvr_ext_dma_is_allowed()).
 *
 * DOC: locks
 *
 * A use begins with its adapter's lock held, and ends by whoever comes first: its
 * connection's thread, or who revokes it, with the adapter's lock. The engine's nic_lock
 * decides; it is taken inside adapters' and connections' locks.
 */
#ifndef PVR_EXT_DMA_H
#define PVR_EXT_DMA_H

#include "core/sg.h"

/* More regions in one piece, and it is copied. */
#define PVR_EXT_DMA_MRS 4

enum pvr_ext_dma_kind {
	PVR_EXT_DMA_REQ_SRC, /* a requester's payload */
	PVR_EXT_DMA_RESP_SRC, /* a responder's, of RDMA READ */
	PVR_EXT_DMA_RESP_DST, /* into a responder's */
	PVR_EXT_DMA_REQ_DST, /* into a requester's, of RDMA READ */
};

/* Part of whoever has begun it, and all zero before. */
struct pvr_ext_dma {
	LIST_ENTRY(pvr_ext_dma) link; /* of the adapter */
	struct pvr_engine *engine; /* NULL: it has never begun */
	struct pvr_adapter *adapter; /* NULL: it has ended */
	const struct pvr_qp *qp;
	uint32_t psn; /* of the request, where memory is exposed */
	enum pvr_ext_dma_kind kind;
	const struct pvr_mr *mr[PVR_EXT_DMA_MRS];
	/* Ends it, for good. */
	void (*stop)(struct pvr_ext_dma *use);
};

/* A guest that has not broken a connection just now. The adapter's lock is held. */
bool pvr_ext_dma_is_allowed(const struct pvr_adapter *adapter);
/*
 * @use: qp, psn, kind and stop are filled in. @sg: of the memory, of which [@offset, @offset +
 * @len) is used. Return: false if that is of too many regions.
 */
bool pvr_ext_dma_begin(struct pvr_ext_dma *use, const struct pvr_sg *sg, uint64_t offset,
		       uint64_t len);
/* If nobody else has ended it. Any thread. */
void pvr_ext_dma_end(struct pvr_ext_dma *use);

/* --------------------------------------------- with the adapter's lock held */

/* Of a region or window that is about to lose its memory. */
void pvr_ext_dma_revoke_mr(const struct pvr_mr *mr);
/* Of a queue pair that stops. */
void pvr_ext_dma_revoke_qp(const struct pvr_qp *qp);
/* What else is read for it of @but's kind: the same piece has come by @but's connection. */
void pvr_ext_dma_revoke_dst(const struct pvr_qp *qp, const struct pvr_ext_dma *but);
void pvr_ext_dma_revoke_all(struct pvr_adapter *adapter);
/* The request at @psn is done; who has exposed for it had to say so before. */
void pvr_nic_request_done(const struct pvr_qp *qp, uint32_t psn);

#endif /* PVR_EXT_DMA_H */
