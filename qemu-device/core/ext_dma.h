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
 * its payloads are copied then (pvr_nic_may_use()).
 *
 * DOC: locks
 *
 * A use begins with its adapter's lock held, and ends by whoever comes first: its
 * connection's thread, or who revokes it, with the adapter's lock. The engine's nic_lock
 * decides; it is taken inside adapters' and connections' locks.
 */
#ifndef PVR_NIC_USE_H
#define PVR_NIC_USE_H

#include "core/sg.h"

/* More regions in one piece, and it is copied. */
#define PVR_NIC_USE_MRS 4

enum pvr_nic_use_kind {
	PVR_NIC_EXPOSES, /* a requester's payload */
	PVR_NIC_ANSWERS, /* a responder's, of RDMA READ */
	PVR_NIC_READS, /* into a responder's */
	PVR_NIC_FETCHES, /* into a requester's, of RDMA READ */
};

/* Part of whoever has begun it, and all zero before. */
struct pvr_nic_use {
	LIST_ENTRY(pvr_nic_use) link; /* of the adapter */
	struct pvr_engine *engine; /* NULL: it has never begun */
	struct pvr_adapter *adapter; /* NULL: it has ended */
	const struct pvr_qp *qp;
	uint32_t psn; /* of the request, where memory is exposed */
	enum pvr_nic_use_kind kind;
	const struct pvr_mr *mr[PVR_NIC_USE_MRS];
	/* Ends it, for good. */
	void (*stop)(struct pvr_nic_use *use);
};

/* A guest that has not broken a connection just now. The adapter's lock is held. */
bool pvr_nic_may_use(const struct pvr_adapter *adapter);
/*
 * @use: qp, psn, kind and stop are filled in. @sg: of the memory, of which [@offset, @offset +
 * @len) is used. Return: false if that is of too many regions.
 */
bool pvr_nic_use_begin(struct pvr_nic_use *use, const struct pvr_sg *sg, uint64_t offset,
		       uint64_t len);
/* If nobody else has ended it. Any thread. */
void pvr_nic_use_end(struct pvr_nic_use *use);

/* --------------------------------------------- with the adapter's lock held */

/* Of a region or window that is about to lose its memory. */
void pvr_nic_revoke_mr(const struct pvr_mr *mr);
/* Of a queue pair that stops. */
void pvr_nic_revoke_qp(const struct pvr_qp *qp);
/* What else is read for it of @but's kind: the same piece has come by @but's connection. */
void pvr_nic_revoke_rdma_read(const struct pvr_qp *qp, const struct pvr_nic_use *but);
void pvr_nic_revoke_all(struct pvr_adapter *adapter);
/* The request at @psn is done; who has exposed for it had to say so before. */
void pvr_nic_request_done(const struct pvr_qp *qp, uint32_t psn);

#endif /* PVR_NIC_USE_H */
