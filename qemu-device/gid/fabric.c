// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* Fabrics: isolated sets of adapters, and the owners of their GIDs. */
#include "gid/fabric.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "gid/resolve.h"
#include "core/adapter.h"
#include "gid/dest.h"
#include "gid/flow.h"
#include "gid/gid_cache.h"
#include "gid/referral.h"
#include "gid/hash.h"

/* Without random bytes: the address, which differs from process to process. */
static uint64_t new_seed(const void *object)
{
	uint64_t seed;

	if (getrandom(&seed, sizeof(seed), GRND_NONBLOCK) != sizeof(seed))
		seed = pvr_hash_mix(0, (uintptr_t)object);
	return seed;
}

struct pvr_fabrics *pvr_fabrics_create(void)
{
	struct pvr_fabrics *fabrics = calloc(1, sizeof(*fabrics));

	if (fabrics)
		fabrics->seed = new_seed(fabrics);
	return fabrics;
}

void pvr_fabrics_destroy(struct pvr_fabrics *fabrics)
{
	unsigned int i;

	if (!fabrics)
		return;
	for (i = 0; i < PVR_GID_SHARDS; i++) {
		pvr_gid_cache_free(fabrics->shards[i].cache);
		pvr_referrals_free(fabrics->shards[i].referrals);
	}
	free(fabrics);
}

unsigned int pvr_fabric_bucket(const struct pvr_fabric *fabric, const uint8_t gid[16])
{
	return pvr_hash_gid(fabric->seed, gid, 0) % PVR_FABRIC_BUCKETS;
}

static unsigned int name_bucket(const struct pvr_fabrics *fabrics, const char *name)
{
	return pvr_hash_name(fabrics->seed, name) % PVR_FABRIC_NAMES;
}

struct pvr_gid_shard *pvr_fabric_shard(const struct pvr_engine *engine, const char *name)
{
	return &engine->fabrics->shards[name_bucket(engine->fabrics, name) % PVR_GID_SHARDS];
}

struct pvr_fabric *pvr_fabric_by_name(const struct pvr_engine *engine, const char *name)
{
	struct pvr_fabric *fabric;

	LIST_FOREACH(fabric, &engine->fabrics->names[name_bucket(engine->fabrics, name)], link)
		if (!strcmp(fabric->name, name))
			return fabric;
	return NULL;
}

static struct pvr_fabric *fabric_get(struct pvr_engine *engine, const char *name)
{
	struct pvr_fabric *fabric = pvr_fabric_by_name(engine, name);
	struct pvr_fabrics *fabrics = engine->fabrics;

	if (fabric)
		return fabric;
	fabric = calloc(1, sizeof(*fabric));
	if (!fabric)
		return NULL;
	strncpy(fabric->name, name, sizeof(fabric->name) - 1);
	fabric->gid_gen = 1;
	fabric->id = ++fabrics->ids;
	fabric->seed = fabrics->seed;
	fabric->shard = pvr_fabric_shard(engine, name);
	LIST_INSERT_HEAD(&fabrics->names[name_bucket(fabrics, name)], fabric, link);
	return fabric;
}

static void fabric_put(struct pvr_fabric *fabric)
{
	if (!LIST_EMPTY(&fabric->adapters))
		return;
	LIST_REMOVE(fabric, link);
	free(fabric);
}

static struct pvr_adapter *find_mac(const struct pvr_fabric *fabric, const uint8_t mac[6])
{
	struct pvr_adapter *adapter;

	LIST_FOREACH(adapter, &fabric->adapters, fabric_link)
		if (!memcmp(adapter->mac, mac, 6))
			return adapter;
	return NULL;
}

static void changed(struct pvr_fabric *fabric)
{
	__atomic_add_fetch(&fabric->gid_gen, 1, __ATOMIC_RELEASE);
}

void pvr_fabric_changed(struct pvr_engine *engine, const char *name)
{
	struct pvr_fabric *fabric = pvr_fabric_by_name(engine, name);

	if (fabric)
		changed(fabric);
}

static uint64_t next_incarnation(const struct pvr_adapter *adapter)
{
	return __atomic_add_fetch(&adapter->engine->fabrics->incarnations, 1, __ATOMIC_RELAXED);
}

int pvr_fabric_join(struct pvr_engine *engine, const char *name, struct pvr_adapter *adapter)
{
	struct pvr_fabric *fabric = fabric_get(engine, name);

	if (!fabric)
		return -ENOMEM;
	if (find_mac(fabric, adapter->mac))
		return -EADDRINUSE;
	adapter->dests = pvr_dests_create();
	if (!adapter->dests) {
		fabric_put(fabric);
		return -ENOMEM;
	}
	LIST_INSERT_HEAD(&fabric->adapters, adapter, fabric_link);
	adapter->fabric = fabric;
	adapter->incarnation = next_incarnation(adapter);
	return 0;
}

/* Both directions. */
static void free_flows(struct pvr_adapter *adapter)
{
	struct pvr_adapter *other;

	pvr_flows_free(adapter);
	LIST_FOREACH(other, &adapter->fabric->adapters, fabric_link)
		pvr_flows_forget(other, adapter);
}

void pvr_fabric_leave(struct pvr_adapter *adapter)
{
	changed(adapter->fabric);
	free_flows(adapter);
	free(adapter->dests);
	LIST_REMOVE(adapter, fabric_link);
	fabric_put(adapter->fabric);
	adapter->fabric = NULL;
}

static struct pvr_gid_node *gid_find(const struct pvr_fabric *fabric, const uint8_t gid[16])
{
	struct pvr_gid_node *node;

	LIST_FOREACH(node, &fabric->gids[pvr_fabric_bucket(fabric, gid)], link)
		if (!memcmp(node->gid, gid, 16))
			return node;
	return NULL;
}

/* Get the MAC of a modified EUI-64 interface identifier (RFC 4291, App. A). */
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

/*
 * Remove a GID from an adapter that does not have the GID's MAC. The adapter with that
 * MAC takes the GID even if it is created later. Return: the adapter that has lost the
 * GID.
 */
static struct pvr_adapter *evict(struct pvr_gid_node *node)
{
	struct pvr_adapter *squatter = node->adapter;

	LIST_REMOVE(node, link);
	LIST_INSERT_HEAD(&squatter->lost_gids, node, link);
	__atomic_store_n(&squatter->has_lost_gids, true, __ATOMIC_RELAXED);
	return squatter;
}

bool pvr_fabric_take_lost(struct pvr_adapter *adapter, uint8_t gid[16])
{
	struct pvr_lock *lock = &adapter->fabric->lock;
	struct pvr_gid_node *node;

	if (!__atomic_load_n(&adapter->has_lost_gids, __ATOMIC_RELAXED))
		return false;
	pvr_lock(lock);
	node = LIST_FIRST(&adapter->lost_gids);
	if (node)
		LIST_REMOVE(node, link);
	else
		__atomic_store_n(&adapter->has_lost_gids, false, __ATOMIC_RELAXED);
	pvr_unlock(lock);
	if (!node)
		return false;
	memcpy(gid, node->gid, sizeof(node->gid));
	free(node);
	return true;
}

static void announce(const struct pvr_adapter *adapter, const uint8_t gid[16], bool present)
{
	pvr_announce(adapter->engine, adapter->fabric->name, gid, adapter->gid_type, adapter->mac,
		     present);
}

static int bind(struct pvr_adapter *adapter, const uint8_t gid[16], struct pvr_adapter **loser)
{
	struct pvr_gid_node *node = gid_find(adapter->fabric, gid);

	*loser = NULL;
	if (is_foreign_mac(adapter, gid))
		return -EPERM;
	if (node && node->adapter != adapter && is_own_mac(adapter, gid)) {
		*loser = evict(node);
		node = NULL;
	}
	if (node && node->adapter != adapter)
		return -EADDRINUSE;
	changed(adapter->fabric);
	if (!node) {
		node = calloc(1, sizeof(*node));
		if (!node)
			return -ENOMEM;
		node->adapter = adapter;
		memcpy(node->gid, gid, 16);
		LIST_INSERT_HEAD(&adapter->fabric->gids[pvr_fabric_bucket(adapter->fabric, gid)],
				 node, link);
		announce(adapter, gid, true);
	}
	node->bindings++;
	return 0;
}

int pvr_fabric_bind(struct pvr_adapter *adapter, const uint8_t gid[16], struct pvr_adapter **loser)
{
	struct pvr_lock *lock = &adapter->fabric->lock;
	int err;

	pvr_lock(lock);
	err = bind(adapter, gid, loser);
	pvr_unlock(lock);
	if (!err)
		pvr_referral_bound(adapter, gid);
	return err;
}

void pvr_fabric_unbind(struct pvr_adapter *adapter, const uint8_t gid[16])
{
	struct pvr_lock *lock = &adapter->fabric->lock;
	struct pvr_gid_node *node;

	pvr_lock(lock);
	changed(adapter->fabric);
	node = gid_find(adapter->fabric, gid);
	/* The adapter may have lost the GID meanwhile. */
	if (node && node->adapter == adapter && !--node->bindings) {
		LIST_REMOVE(node, link);
		free(node);
		announce(adapter, gid, false);
	}
	pvr_unlock(lock);
}

struct pvr_adapter *pvr_fabric_find(const struct pvr_adapter *adapter, const uint8_t gid[16])
{
	struct pvr_lock *lock = &adapter->fabric->lock;
	struct pvr_adapter *owner;
	struct pvr_gid_node *node;

	pvr_lock(lock);
	node = gid_find(adapter->fabric, gid);
	owner = node ? node->adapter : NULL;
	pvr_unlock(lock);
	/*
	 * RoCE v1 and RoCE v2 are different protocols, so their adapters do not
	 * communicate.
	 */
	return owner && owner->gid_type == adapter->gid_type ? owner : NULL;
}

/* --------------------------------------------------------------- incarnations */

uint64_t pvr_fabric_incarnation(const struct pvr_adapter *adapter, const uint8_t gid[16])
{
	struct pvr_lock *lock = &adapter->fabric->lock;
	struct pvr_gid_node *node;
	uint64_t incarnation = 0;

	pvr_lock(lock);
	node = gid_find(adapter->fabric, gid);
	if (node && node->adapter->gid_type == adapter->gid_type) {
		incarnation = node->adapter->incarnation;
		node->adapter->is_incarnation_known = true;
	}
	pvr_unlock(lock);
	return incarnation;
}

/* The fabric's lock is held. */
static bool has_moved(const struct pvr_fabric *fabric, uint64_t incarnation)
{
	uint32_t i;

	for (i = 0; i < PVR_FABRIC_MOVED && i < fabric->num_moved; i++)
		if (fabric->moved[i] == incarnation)
			return true;
	return false;
}

bool pvr_fabric_has_moved(const struct pvr_adapter *adapter, uint64_t incarnation)
{
	struct pvr_fabric *fabric = adapter->fabric;
	bool moved;

	pvr_lock(&fabric->lock);
	moved = has_moved(fabric, incarnation);
	pvr_unlock(&fabric->lock);
	return moved;
}

bool pvr_fabric_is_alive(const struct pvr_adapter *adapter, uint64_t incarnation)
{
	struct pvr_fabric *fabric = adapter->fabric;
	const struct pvr_adapter *other;
	bool alive;

	pvr_lock(&fabric->lock);
	LIST_FOREACH(other, &fabric->adapters, fabric_link)
		if (other->incarnation == incarnation)
			break;
	alive = other || has_moved(fabric, incarnation);
	pvr_unlock(&fabric->lock);
	return alive;
}

bool pvr_fabric_move_incarnation(struct pvr_adapter *adapter)
{
	struct pvr_fabric *fabric = adapter->fabric;
	bool was_known;

	pvr_lock(&fabric->lock);
	was_known = adapter->is_incarnation_known;
	if (was_known) {
		fabric->moved[fabric->num_moved++ % PVR_FABRIC_MOVED] = adapter->incarnation;
		adapter->incarnation = next_incarnation(adapter);
		adapter->is_incarnation_known = false;
	}
	pvr_unlock(&fabric->lock);
	return was_known;
}

/* As pvr_fabric_new_incarnation(). The fabric's lock is held. */
static bool new_incarnation(struct pvr_adapter *adapter)
{
	bool was_known = adapter->is_incarnation_known;
	struct pvr_adapter *other;

	adapter->incarnation = next_incarnation(adapter);
	adapter->is_incarnation_known = false;
	if (!was_known)
		return false;
	LIST_FOREACH(other, &adapter->fabric->adapters, fabric_link)
		if (other != adapter)
			__atomic_store_n(&other->has_lost_peers, true, __ATOMIC_RELAXED);
	return true;
}

bool pvr_fabric_new_incarnation(struct pvr_adapter *adapter)
{
	struct pvr_lock *lock = &adapter->fabric->lock;
	bool lost;

	pvr_lock(lock);
	lost = new_incarnation(adapter);
	pvr_unlock(lock);
	return lost;
}

struct pvr_adapter *pvr_fabric_look_up(struct pvr_engine *engine, const char *name,
				       const uint8_t gid[16], uint8_t gid_type)
{
	struct pvr_fabric *fabric = pvr_fabric_by_name(engine, name);
	struct pvr_adapter *owner = NULL;
	struct pvr_gid_node *node;

	if (!fabric)
		return NULL;
	pvr_lock(&fabric->lock);
	node = gid_find(fabric, gid);
	if (node && (!gid_type || node->adapter->gid_type == gid_type))
		owner = node->adapter;
	pvr_unlock(&fabric->lock);
	return owner;
}
