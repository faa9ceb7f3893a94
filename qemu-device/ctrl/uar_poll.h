/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * Mapped doorbell pages: a doorbell is a store to memory, without an exit from the guest.
 *
 * DOC: doorbells in memory
 *
 * A page has one word for each kind of object. A later doorbell overwrites a word that
 * the device has not read.
 *
 *	guest				device
 *	store to ring A
 *	word = doorbell of A
 *	store to ring B
 *	word = doorbell of B
 *					value = exchange(word, 0)
 *					execute value (B)
 *					sweep: check all objects (finds A)
 *
 * - The sweep checks all objects of this kind and context, in bounded steps.
 * - The guest's stores to a ring come before its doorbell, and overwritten doorbells
 *   before the value of the exchange. So the sweep, which follows the exchange, sees
 *   these stores.
 * - A later doorbell makes the word nonzero again and starts the next sweep.
 * - The rings do not show the arm of an overwritten CQ doorbell: see rdma/cq_lost_arm.h.
 */
#ifndef PVR_UAR_POLL_H
#define PVR_UAR_POLL_H

#include "core/objects.h"

/* Begin and end of contexts, and of their ownership of objects. */
void pvr_uc_init(struct pvr_adapter *adapter, struct pvr_uc *uc, uint32_t uar);
void pvr_uc_exit(struct pvr_uc *uc);
void pvr_uc_own(struct pvr_uc *uc, enum pvr_owned_kind kind, struct pvr_owned *owned);
void pvr_uc_disown(struct pvr_uc *uc, enum pvr_owned_kind kind, struct pvr_owned *owned);

/* True if doorbells must be polled: the pages are mapped, and the adapter may do DMA. */
static inline bool pvr_uar_poll_is_active(const struct pvr_adapter *adapter)
{
	return adapter->uar_poll.uar_shm && pvr_adapter_dma_ok(adapter);
}

/* True if pvr_uar_poll_some() would do nothing. Needs no lock. */
static inline bool pvr_uar_poll_has_nothing(const struct pvr_adapter *adapter)
{
	return !__atomic_load_n(&adapter->uar_poll.uar_shm, __ATOMIC_RELAXED);
}

/*
 * Poll some pages and sweep some objects. Return: true if a doorbell or a sweep was
 * found.
 */
bool pvr_uar_poll_some(struct pvr_adapter *adapter);

/* Poll all pages once. */
void pvr_uar_poll_all(struct pvr_adapter *adapter);

/* Poll all pages once, and end all sweeps. */
void pvr_uar_poll_finish(struct pvr_adapter *adapter);

/* Clear the page of the guest driver and stop its sweep. */
void pvr_uar_poll_reset(struct pvr_adapter *adapter);

#endif /* PVR_UAR_POLL_H */
