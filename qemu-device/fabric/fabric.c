/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/* Fabrics: who can meet whom, and who owns which GID. */
#include "fabric/fabric.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "model/adapter.h"

struct pvr_gid_node {
	LIST_ENTRY(pvr_gid_node) link;
	struct pvr_adapter *adapter;
	uint32_t bindings;
	uint8_t gid[16];
};

/* GIDs differ in their last bytes: hosts of a subnet, EUI-64s. */
unsigned int pvr_fabric_bucket(const uint8_t gid[16])
{
	unsigned int i, hash = 0;

	for (i = 0; i < 16; i++)
		hash = hash * 31 + gid[i];
	return hash % PVR_FABRIC_BUCKETS;
}

static struct pvr_fabric *fabric_get(struct pvr_engine *engine, const char *name)
{
	struct pvr_fabric *fabric;

	LIST_FOREACH(fabric, &engine->fabrics.list, link)
		if (!strcmp(fabric->name, name))
			return fabric;
	fabric = calloc(1, sizeof(*fabric));
	if (!fabric)
		return NULL;
	strncpy(fabric->name, name, sizeof(fabric->name) - 1);
	LIST_INSERT_HEAD(&engine->fabrics.list, fabric, link);
	return fabric;
}

static void fabric_put(struct pvr_fabric *fabric)
{
	if (!LIST_EMPTY(&fabric->adapters))
		return;
	LIST_REMOVE(fabric, link);
	free(fabric);
}

static struct pvr_adapter *find_mac(const struct pvr_fabric *fabric,
				    const uint8_t mac[6])
{
	struct pvr_adapter *adapter;

	LIST_FOREACH(adapter, &fabric->adapters, fabric_link)
		if (!memcmp(adapter->mac, mac, 6))
			return adapter;
	return NULL;
}

int pvr_fabric_join(struct pvr_engine *engine, const char *name,
		    struct pvr_adapter *adapter)
{
	struct pvr_fabric *fabric = fabric_get(engine, name);

	if (!fabric)
		return -ENOMEM;
	if (find_mac(fabric, adapter->mac))
		return -EADDRINUSE;
	LIST_INSERT_HEAD(&fabric->adapters, adapter, fabric_link);
	adapter->fabric = fabric;
	return 0;
}

static void forget_paths(struct pvr_adapter *adapter)
{
	struct pvr_path *path, *next;

	for (path = LIST_FIRST(&adapter->engine->fabrics.paths); path; path = next) {
		next = LIST_NEXT(path, link);
		if (path->from == adapter || path->to == adapter) {
			LIST_REMOVE(path, link);
			free(path);
		}
	}
}

void pvr_fabric_leave(struct pvr_adapter *adapter)
{
	adapter->engine->topology++;
	forget_paths(adapter);
	LIST_REMOVE(adapter, fabric_link);
	fabric_put(adapter->fabric);
	adapter->fabric = NULL;
}

static struct pvr_gid_node *gid_find(const struct pvr_fabric *fabric,
				     const uint8_t gid[16])
{
	struct pvr_gid_node *node;

	LIST_FOREACH(node, &fabric->gids[pvr_fabric_bucket(gid)], link)
		if (!memcmp(node->gid, gid, 16))
			return node;
	return NULL;
}

/* The MAC inside an interface identifier of modified EUI-64 form (RFC 4291, App. A). */
static bool gid_to_mac(const uint8_t gid[16], uint8_t mac[6])
{
	if (gid[11] != 0xff || gid[12] != 0xfe)
		return false;
	memcpy(mac, gid + 8, 3);
	memcpy(mac + 3, gid + 13, 3);
	mac[0] ^= 2;
	return true;
}

static bool is_foreign_mac(const struct pvr_adapter *adapter, const uint8_t gid[16])
{
	struct pvr_adapter *owner;
	uint8_t mac[6];

	if (!gid_to_mac(gid, mac))
		return false;
	owner = find_mac(adapter->fabric, mac);
	return owner && owner != adapter;
}

static bool is_own_mac(const struct pvr_adapter *adapter, const uint8_t gid[16])
{
	uint8_t mac[6];

	return gid_to_mac(gid, mac) && !memcmp(mac, adapter->mac, sizeof(mac));
}

/* Nobody can keep the address of an adapter that was not there yet from it. */
static void evict(struct pvr_gid_node *node)
{
	struct pvr_adapter *squatter = node->adapter;

	pvr_gid_lost(squatter, node->gid);
	LIST_REMOVE(node, link);
	free(node);
	squatter->engine->topology++;
}

int pvr_fabric_bind(struct pvr_adapter *adapter, const uint8_t gid[16])
{
	struct pvr_gid_node *node = gid_find(adapter->fabric, gid);

	if (is_foreign_mac(adapter, gid))
		return -EPERM;
	if (node && node->adapter != adapter && is_own_mac(adapter, gid)) {
		evict(node);
		node = NULL;
	}
	if (node && node->adapter != adapter)
		return -EADDRINUSE;
	if (!node) {
		node = calloc(1, sizeof(*node));
		if (!node)
			return -ENOMEM;
		node->adapter = adapter;
		memcpy(node->gid, gid, 16);
		LIST_INSERT_HEAD(&adapter->fabric->gids[pvr_fabric_bucket(gid)], node, link);
	}
	node->bindings++;
	return 0;
}

void pvr_fabric_unbind(struct pvr_adapter *adapter, const uint8_t gid[16])
{
	struct pvr_gid_node *node = gid_find(adapter->fabric, gid);

	adapter->engine->topology++;
	if (--node->bindings)
		return;
	LIST_REMOVE(node, link);
	free(node);
}

struct pvr_adapter *pvr_fabric_find(const struct pvr_adapter *adapter,
				    const uint8_t gid[16])
{
	struct pvr_gid_node *node = gid_find(adapter->fabric, gid);

	/* RoCE v1 frames and RoCE v2 datagrams are different protocols on a wire. */
	return node && node->adapter->gid_type == adapter->gid_type ? node->adapter : NULL;
}

struct pvr_path *pvr_fabric_path(struct pvr_adapter *from, struct pvr_adapter *to)
{
	struct pvr_fabrics *fabrics = &from->engine->fabrics;
	struct pvr_path *path;

	LIST_FOREACH(path, &fabrics->paths, link)
		if (path->from == from && path->to == to)
			return path;
	path = calloc(1, sizeof(*path));
	if (!path)
		return NULL;
	path->from = from;
	path->to = to;
	LIST_INSERT_HEAD(&fabrics->paths, path, link);
	return path;
}
