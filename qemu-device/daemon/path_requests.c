// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Replies of the control socket about paths.
 *
 * DOC: cursor of the pages
 *
 * The first pages have the flows of adapters: the cursor is the index of an adapter in the upper
 * bits, and that of pvr_adapter_page_flows() in the lower ones. The last pages have the hosts: the
 * cursor is HOSTS and that of pvr_put_hosts_page().
 */
#include "daemon/json_put.h"
#include "daemon/network_requests.h"
#include "daemon/path_requests.h"

#define FLOWS_PER_PAGE 64
#define HOSTS (1u << 31)

_Static_assert((uint64_t)(PVR_ADAPTERS_MAX + 1) * PVR_FLOW_CURSORS <= HOSTS, "cursors fit");

static void put_path(void *opaque, const struct pvr_flow_stats *stats)
{
	struct json_object *obj = json_object_new_object();

	put_text(obj, "from", stats->from);
	put_text(obj, "to", stats->to);
	put_text(obj, "fabric", stats->fabric);
	put_text(obj, "path", stats->path);
	put_text(obj, "reason", stats->why);
	put_number(obj, "messages", stats->messages);
	put_number(obj, "bytes", stats->bytes);
	json_object_array_add(opaque, obj);
}

void pvr_put_paths(struct pvr_daemon *daemon, struct json_object *reply)
{
	struct json_object *list = json_object_new_array();

	pvr_engine_for_each_flow(daemon->engine, put_path, list);
	put(reply, "paths", list);
	pvr_put_hosts(daemon, reply);
}

/* Return: false if there are no more flows. */
static bool put_flows(const struct pvr_daemon *daemon, uint32_t *cursor, struct json_object *list)
{
	uint32_t index = *cursor / PVR_FLOW_CURSORS, at = *cursor % PVR_FLOW_CURSORS;
	unsigned int max;

	for (; index < daemon->num_adapters; index++, at = 0) {
		max = FLOWS_PER_PAGE - (unsigned int)json_object_array_length(list);
		if (max &&
		    !pvr_adapter_page_flows(pvr_attach_adapter(daemon->adapters[index].attach), &at,
					    max, put_path, list))
			continue;
		*cursor = index * PVR_FLOW_CURSORS + at;
		return true;
	}
	return false;
}

bool pvr_put_paths_page(struct pvr_daemon *daemon, uint32_t *cursor, struct json_object *reply)
{
	struct json_object *list = json_object_new_array();
	uint32_t at = *cursor & ~HOSTS;
	bool more = true;

	put(reply, "paths", list);
	put(reply, "hosts", json_object_new_array());
	if (*cursor < HOSTS) {
		if (!put_flows(daemon, cursor, list))
			*cursor = HOSTS;
	} else {
		more = pvr_put_hosts_page(daemon, &at, reply);
		*cursor = HOSTS | at;
	}
	return more;
}
