/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * Traffic counters of an adapter, by its destinations.
 *
 * DOC: readers without a lock
 *
 * - The flows of an adapter are written with the adapter's lock held: pvr_flow_get() and the
 *   counters.
 * - A flow stays until its adapter or its destination leaves the fabric. No other thread uses
 *   the engine then.
 * - So any thread reads the lists without a lock, see pvr_flow_first(). The release store of a
 *   list's head pairs with the acquire load there.
 */
#ifndef PVR_FLOW_H
#define PVR_FLOW_H

#include <stdint.h>

#include "core/adapter.h"

struct pvr_host;

struct pvr_flow {
	struct pvr_flow *next; /* constant */
	struct pvr_adapter *from, *to;
	struct pvr_host *host; /* if @to is NULL */
	uint8_t kind; /* enum pvr_pipe_kind of the last request */
	uint64_t messages, bytes;
	char pad[64]; /* against false sharing with the next flow */
};

/*
 * Find the counters of this destination, or create them. The lock of @from is held. Return: NULL
 * if out of memory.
 */
struct pvr_flow *pvr_flow_get(struct pvr_adapter *from, struct pvr_adapter *to);
struct pvr_flow *pvr_flow_get_host(struct pvr_adapter *from, struct pvr_host *to);

/* The first flow of a list of @from, by the index of the list. Takes no lock. */
static inline const struct pvr_flow *pvr_flow_first(const struct pvr_adapter *from, unsigned int i)
{
	return __atomic_load_n(&from->flows[i], __ATOMIC_ACQUIRE);
}

/* Free the flows of @adapter. Context: no other thread uses the engine. */
void pvr_flows_free(struct pvr_adapter *adapter);
/* Free the flows of @from to @to. Context: the same. */
void pvr_flows_forget(struct pvr_adapter *from, const struct pvr_adapter *to);

#endif /* PVR_FLOW_H */
