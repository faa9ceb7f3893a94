// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* Traffic counters of an adapter, by its destinations. */
#include "gid/flow.h"

#include <stdlib.h>

/* Addresses of allocated memory differ above the size of a cache line. */
static struct pvr_flow **list_of(struct pvr_adapter *from, const void *destination)
{
	uint64_t hash = ((uintptr_t)destination >> 6) * 0x9e3779b97f4a7c15ull;

	return &from->flows[hash >> 32 & (PVR_FLOW_LISTS - 1)];
}

static struct pvr_flow *get(struct pvr_adapter *from, struct pvr_adapter *to, struct pvr_host *host)
{
	struct pvr_flow **list = list_of(from, to ? (const void *)to : host), *flow;

	for (flow = *list; flow; flow = flow->next)
		if (flow->to == to && flow->host == host)
			return flow;
	flow = calloc(1, sizeof(*flow));
	if (!flow)
		return NULL;
	flow->next = *list;
	flow->from = from;
	flow->to = to;
	flow->host = host;
	__atomic_store_n(list, flow, __ATOMIC_RELEASE);
	return flow;
}

struct pvr_flow *pvr_flow_get(struct pvr_adapter *from, struct pvr_adapter *to)
{
	return get(from, to, NULL);
}

struct pvr_flow *pvr_flow_get_host(struct pvr_adapter *from, struct pvr_host *to)
{
	return get(from, NULL, to);
}

static void unlink_first(struct pvr_flow **at)
{
	struct pvr_flow *flow = *at;

	*at = flow->next;
	free(flow);
}

void pvr_flows_free(struct pvr_adapter *adapter)
{
	unsigned int i;

	for (i = 0; i < PVR_FLOW_LISTS; i++)
		while (adapter->flows[i])
			unlink_first(&adapter->flows[i]);
}

void pvr_flows_forget(struct pvr_adapter *from, const struct pvr_adapter *to)
{
	struct pvr_flow **at = list_of(from, to);

	while (*at)
		if ((*at)->to == to)
			unlink_first(at);
		else
			at = &(*at)->next;
}
