/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * Doorbell pages that the guest maps: a doorbell is a store, and nobody is told of it.
 *
 * DOC: doorbells in memory
 *
 * A page has one word for each kind of object, and whoever rings next overwrites what
 * we have not seen yet. So a word that is found is taken by an exchange with 0 and acted
 * on, and then all objects of that kind and context are looked at, in bounded steps: a
 * doorbell that was overwritten is found by what it was rung for. The exchange comes
 * first: a guest's stores to its rings come before its doorbell, and the doorbells that
 * were overwritten came before the one that we took, so what they told of is visible to
 * loads behind the exchange; and what is rung later is a word to be found later.
 *
 * What an overwritten doorbell of a CQ was for cannot be seen: see rdma/cq_lost_arm.h.
 */
#ifndef PVR_UAR_POLL_H
#define PVR_UAR_POLL_H

#include "core/objects.h"

/* Contexts and what they own, from their creation to their end. */
void pvr_uc_init(struct pvr_adapter *adapter, struct pvr_uc *uc, uint32_t uar);
void pvr_uc_exit(struct pvr_uc *uc);
void pvr_uc_own(struct pvr_uc *uc, enum pvr_owned_kind kind, struct pvr_owned *owned);
void pvr_uc_disown(struct pvr_uc *uc, enum pvr_owned_kind kind, struct pvr_owned *owned);

/* Doorbells have to be polled: the guest can store some, and has a driver. */
static inline bool pvr_uar_poll_is_active(const struct pvr_adapter *adapter)
{
	return adapter->uar_poll.uar_shm && pvr_adapter_dma_ok(adapter);
}

/* pvr_uar_poll_some() would do nothing. Needs no lock. */
static inline bool pvr_uar_poll_has_nothing(const struct pvr_adapter *adapter)
{
	return !__atomic_load_n(&adapter->uar_poll.uar_shm, __ATOMIC_RELAXED);
}

/* Looks at some pages and some objects. Return: true if there was something. */
bool pvr_uar_poll_some(struct pvr_adapter *adapter);

/* Looks at all pages, once. */
void pvr_uar_poll_all(struct pvr_adapter *adapter);

/* Forgets what the guest driver has stored to its page. */
void pvr_uar_poll_reset(struct pvr_adapter *adapter);

#endif /* PVR_UAR_POLL_H */
