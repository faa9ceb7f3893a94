// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* Resolution of GIDs to other hosts. */
#include "gid/resolve.h"

#include <errno.h>
#include <string.h>

#include "gid/dest.h"
#include "gid/gid_cache.h"
#include "gid/referral.h"
#include "gid/mcast_group.h"
#include "core/adapter.h"
#include "gid/fabric.h"

/*
 * Minimum time between two resolve() calls for a GID, because guests may query at any
 * rate.
 */
#define ASK_AGAIN_NS 10000000ull
/* Queries to guides that an adapter may cause at once, and one more per PVR_GID_QUOTA_NS. */
#define GUIDE_QUERIES 1024u
/* The same for doubt(), of all hosts. */
#define DOUBT_AGAIN_NS 200000000ull

static struct pvr_gid_key key_of(const char *fabric, const uint8_t gid[16], uint8_t gid_type)
{
	return (struct pvr_gid_key){
		.fabric = fabric,
		.gid = gid,
		.gid_type = gid_type,
		.multicast = pvr_gid_is_multicast(gid),
	};
}

/* The shard's lock is held, also for look_up(). Return: NULL if out of memory. */
static struct pvr_gid_cache *cache_get(struct pvr_fabrics *fabrics, struct pvr_gid_shard *shard)
{
	if (!shard->cache)
		shard->cache = pvr_gid_cache_new(fabrics->seed, &fabrics->cached);
	return shard->cache;
}

static bool has_quota(struct pvr_gid_quota *quota, uint32_t max, uint64_t now)
{
	uint64_t returned = (now - quota->counted) / PVR_GID_QUOTA_NS;

	quota->counted += returned * PVR_GID_QUOTA_NS;
	quota->used -= returned < quota->used ? (uint32_t)returned : quota->used;
	return quota->used < max;
}

/* @quota: or NULL. Return: whether the caller must call resolve(). */
static bool look_up(struct pvr_engine *engine, struct pvr_gid_shard *shard,
		    const struct pvr_gid_key *key, struct pvr_gid_quota *quota,
		    struct pvr_gid_location *location)
{
	struct pvr_gid_cache *cache = cache_get(engine->fabrics, shard);
	uint64_t now;

	location->state = PVR_GID_UNKNOWN;
	if (!cache || pvr_gid_cache_find(cache, key, location))
		return false;
	now = pvr_now(engine);
	if ((quota && !has_quota(quota, PVR_GID_QUOTA, now)) ||
	    !pvr_gid_cache_query(cache, key, now, ASK_AGAIN_NS))
		return false;
	if (quota)
		quota->used++;
	return true;
}

/* No lock of GIDs is held. */
static void resolve(struct pvr_engine *engine, const struct pvr_gid_key *key,
		    const struct pvr_host *from)
{
	const struct pvr_fabrics *fabrics = engine->fabrics;

	if (fabrics->gid_ops->resolve)
		fabrics->gid_ops->resolve(fabrics->gid_opaque, key->fabric, key->gid, from);
}

/* ----------------------------------------------------------------------- referrals */

/*
 * The shard's lock is held. @ask: resolve() is called. Frames of other hosts use up that record, so
 * the adapter's own guides have another one. Return: the guide to be asked, or NULL.
 */
static struct pvr_host *guide_of(struct pvr_engine *engine, const struct pvr_gid_shard *shard,
				 struct pvr_adapter *adapter, const struct pvr_gid_key *key,
				 bool ask)
{
	struct pvr_host *guide = pvr_referral_guide(shard, NULL, key);
	struct pvr_gid_quota *queries;
	uint64_t now;

	if (guide || !adapter->referrals)
		return ask ? guide : NULL;
	guide = pvr_referral_guide(shard, adapter, key);
	/* A guest can send datagrams to any number of GIDs. */
	queries = &adapter->referrals->queries;
	now = pvr_now(engine);
	if (!guide || !has_quota(queries, GUIDE_QUERIES, now) ||
	    !pvr_referral_query(engine, adapter->referrals, key, now, ASK_AGAIN_NS))
		return NULL;
	queries->used++;
	return guide;
}

/* No lock of GIDs is held. @guide: or NULL */
static void query(struct pvr_engine *engine, struct pvr_host *guide, const struct pvr_gid_key *key)
{
	if (guide)
		engine->move_ops->query(guide, key->fabric, key->gid);
}

/*
 * As pvr_gid_check_host(), for a GID that the directory does not know. @ask: its guide may be
 * asked. A host that has lost the GID to @host may not have told this.
 */
static enum pvr_gid_state check_referral(struct pvr_engine *engine, struct pvr_gid_shard *shard,
					 const struct pvr_host *host, const struct pvr_gid_key *key,
					 const uint8_t dgid[16], bool ask)
{
	struct pvr_adapter *to = pvr_fabric_look_up(engine, key->fabric, dgid, key->gid_type);
	struct pvr_host *owner, *guide = NULL;

	pvr_lock(&shard->lock);
	owner = pvr_referral_find(shard, to, key);
	if (ask && owner != host)
		guide = pvr_referral_guide(shard, to, key);
	pvr_unlock(&shard->lock);
	query(engine, guide, key);
	return owner == host ? PVR_GID_AT_HOST : PVR_GID_UNKNOWN;
}

/* ------------------------------------------------------------------- for queue pairs */

static enum pvr_gid_state search(struct pvr_adapter *adapter, const uint8_t gid[16],
				 struct pvr_gid_quota *quota, struct pvr_host **host)
{
	const struct pvr_gid_key key = key_of(adapter->fabric->name, gid, adapter->gid_type);
	struct pvr_gid_shard *shard = adapter->fabric->shard;
	struct pvr_engine *engine = adapter->engine;
	struct pvr_gid_location location;
	struct pvr_host *guide = NULL;
	bool ask;

	*host = NULL;
	/* The GID of a group is not the address of an adapter. */
	if (!engine->fabrics->gid_ops || key.multicast)
		return PVR_GID_ABSENT;
	pvr_lock(&shard->lock);
	ask = look_up(engine, shard, &key, quota, &location);
	if (location.state == PVR_GID_AT_HOST && location.gid_type == adapter->gid_type)
		*host = location.hosts[0];
	if (location.state == PVR_GID_UNKNOWN) {
		*host = pvr_referral_find(shard, adapter, &key);
		if (!*host)
			guide = guide_of(engine, shard, adapter, &key, ask);
	}
	pvr_unlock(&shard->lock);
	if (ask)
		resolve(engine, &key, NULL);
	query(engine, guide, &key);
	if (*host)
		return PVR_GID_AT_HOST;
	return location.state == PVR_GID_UNKNOWN ? PVR_GID_UNKNOWN : PVR_GID_ABSENT;
}

/*
 * Each change of a result that is remembered increments gid_gen. A GID of unknown location is
 * searched again each time.
 */
enum pvr_gid_state pvr_gid_resolve(struct pvr_adapter *adapter, const uint8_t gid[16],
				   struct pvr_gid_quota *quota, struct pvr_host **host)
{
	struct pvr_dest *dest = pvr_dest_get(adapter, gid);

	if (dest->state == PVR_GID_UNKNOWN)
		dest->state = search(adapter, gid, quota, &dest->host);
	*host = dest->host;
	return dest->state;
}

struct pvr_host *pvr_gid_find_host(struct pvr_adapter *adapter, const uint8_t gid[16])
{
	struct pvr_host *host;

	pvr_gid_resolve(adapter, gid, NULL, &host);
	return host;
}

enum pvr_gid_state pvr_gid_check_host(struct pvr_engine *engine, const struct pvr_host *host,
				      const char *fabric, const uint8_t gid[16], uint8_t gid_type,
				      const uint8_t dgid[16], struct pvr_gid_quota *quota)
{
	const struct pvr_gid_key key = key_of(fabric, gid, gid_type);
	const struct pvr_fabric *local = pvr_fabric_by_name(engine, fabric);
	enum pvr_gid_state state = PVR_GID_ABSENT;
	struct pvr_gid_location location;
	struct pvr_gid_shard *shard;
	bool ask;

	/*
	 * No host may send as a group or as a local adapter. A fabric without a local
	 * adapter has no receiver, so its GIDs need no resolution.
	 */
	if (key.multicast || !local || pvr_fabric_look_up(engine, fabric, gid, 0))
		return PVR_GID_ABSENT;
	shard = local->shard;
	pvr_lock(&shard->lock);
	ask = look_up(engine, shard, &key, quota, &location);
	if (location.state == PVR_GID_UNKNOWN)
		state = PVR_GID_UNKNOWN;
	else if (location.state == PVR_GID_AT_HOST && location.hosts[0] == host &&
		 location.gid_type == gid_type)
		state = PVR_GID_AT_HOST;
	pvr_unlock(&shard->lock);
	if (ask)
		resolve(engine, &key, host);
	return state == PVR_GID_UNKNOWN ? check_referral(engine, shard, host, &key, dgid, ask)
					: state;
}

bool pvr_gid_name_may_have(const struct pvr_engine *engine, const char *host, const char *fabric,
			   const uint8_t gid[16])
{
	const struct pvr_fabrics *fabrics = engine->fabrics;

	return !fabrics->gid_ops || !fabrics->gid_ops->may_have ||
	       fabrics->gid_ops->may_have(fabrics->gid_opaque, host, fabric, gid);
}

bool pvr_gid_may_have(const struct pvr_engine *engine, struct pvr_host *host, const char *fabric,
		      const uint8_t gid[16])
{
	return pvr_gid_name_may_have(engine, engine->move_ops->host_name(host), fabric, gid);
}

/* The shard's lock is held. */
static bool may_doubt(struct pvr_engine *engine, struct pvr_gid_cache *cache,
		      const struct pvr_gid_key *key, struct pvr_gid_quota *quota)
{
	uint64_t now = pvr_now(engine);

	if (!has_quota(quota, PVR_GID_QUOTA, now) ||
	    !pvr_gid_cache_query(cache, key, now, DOUBT_AGAIN_NS))
		return false;
	quota->used++;
	return true;
}

struct pvr_host *pvr_gid_doubt(struct pvr_engine *engine, const struct pvr_host *host,
			       const char *fabric, const uint8_t gid[16],
			       struct pvr_gid_quota *quota)
{
	const struct pvr_gid_key key = key_of(fabric, gid, 0);
	const struct pvr_fabric *local = pvr_fabric_by_name(engine, fabric);
	const struct pvr_fabrics *fabrics = engine->fabrics;
	struct pvr_gid_location location;
	struct pvr_host *owner = NULL;
	bool tell = false;

	if (key.multicast || !local || pvr_fabric_look_up(engine, fabric, gid, 0))
		return NULL;
	pvr_lock(&local->shard->lock);
	if (local->shard->cache && pvr_gid_cache_find(local->shard->cache, &key, &location) &&
	    location.state == PVR_GID_AT_HOST && location.hosts[0] != host) {
		owner = location.hosts[0];
		tell = may_doubt(engine, local->shard->cache, &key, quota);
	}
	pvr_unlock(&local->shard->lock);
	if (tell && fabrics->gid_ops->doubt)
		fabrics->gid_ops->doubt(fabrics->gid_opaque, host, fabric, gid);
	if (tell)
		query(engine, owner, &key);
	return owner;
}

enum pvr_gid_state pvr_mcast_hosts_find(const struct pvr_adapter *adapter, const uint8_t mgid[16],
					struct pvr_host_group *group)
{
	const struct pvr_gid_key key = key_of(adapter->fabric->name, mgid, adapter->gid_type);
	struct pvr_gid_shard *shard = adapter->fabric->shard;
	struct pvr_engine *engine = adapter->engine;
	struct pvr_gid_location location;
	bool ask;

	group->count = 0;
	if (!engine->fabrics->gid_ops)
		return PVR_GID_ABSENT;
	pvr_lock(&shard->lock);
	ask = look_up(engine, shard, &key, NULL, &location);
	if (location.state == PVR_GID_AT_HOST) {
		group->count = location.count < PVR_MCAST_FANOUT ? location.count
								 : PVR_MCAST_FANOUT;
		memcpy(group->hosts, location.hosts, group->count * sizeof(group->hosts[0]));
	}
	pvr_unlock(&shard->lock);
	if (ask)
		resolve(engine, &key, NULL);
	return location.state;
}

/* --------------------------------------------------------------------- the directory */

/*
 * Return: whether queue pairs may wait for a change to @state. Hosts announce many GIDs that none
 * waits for. @known: there was a location, or an absence. Queue pairs may wait for a connection to
 * that host, or have had the response to their query before.
 */
static bool is_awaited(const struct pvr_gid_key *key, enum pvr_gid_state state,
		       enum pvr_gid_queried queried, bool known)
{
	return queried || known || (!key->multicast && state != PVR_GID_AT_HOST);
}

/* As pvr_host_gid_set(), for one key. The lock of @shard is held. */
static int set(struct pvr_engine *engine, struct pvr_gid_shard *shard,
	       const struct pvr_gid_key *key, enum pvr_gid_state state, struct pvr_host *host,
	       bool *wake)
{
	struct pvr_gid_cache *cache = cache_get(engine->fabrics, shard);
	struct pvr_gid_location before;
	enum pvr_gid_queried queried;
	bool changed, known, referred = false;
	int err;

	if (!cache)
		return -ENOMEM;
	known = pvr_gid_cache_find(cache, key, &before) &&
		(!key->multicast || before.state == PVR_GID_ABSENT);
	err = pvr_gid_cache_set(cache, key, state, host, &changed);
	if (err)
		return err;
	if (state == PVR_GID_AT_HOST_MORE)
		return 0;
	queried = state == PVR_GID_UNKNOWN ? PVR_GID_NOT_QUERIED
					   : pvr_gid_cache_was_queried(cache, key);
	if (!key->multicast && (state == PVR_GID_AT_HOST || state == PVR_GID_ABSENT))
		referred = pvr_referral_drop(engine, shard, key, queried == PVR_GID_QUERIED);
	changed |= referred;
	if (changed && !key->multicast)
		pvr_fabric_changed(engine, key->fabric);
	*wake |= queried == PVR_GID_QUERIED ||
		 (changed && is_awaited(key, state, queried, known || referred));
	return 0;
}

/* A group without a RoCE version or host is set for both versions. */
static int set_each(struct pvr_engine *engine, struct pvr_gid_shard *shard, struct pvr_gid_key *key,
		    enum pvr_gid_state state, struct pvr_host *host, bool *wake)
{
	int err;

	if (!key->multicast || key->gid_type || host)
		return set(engine, shard, key, state, host, wake);
	key->gid_type = PVR_GID_TYPE_ROCE_V1;
	err = set(engine, shard, key, state, NULL, wake);
	key->gid_type = PVR_GID_TYPE_ROCE_V2;
	return err ? err : set(engine, shard, key, state, NULL, wake);
}

int pvr_host_gid_set(struct pvr_engine *engine, const char *fabric, const uint8_t gid[16],
		     uint8_t gid_type, enum pvr_gid_state state, struct pvr_host *host, bool *wake)
{
	struct pvr_gid_key key = key_of(fabric, gid, gid_type);
	struct pvr_gid_shard *shard;
	int err;

	*wake = false;
	if (strlen(fabric) >= PVR_NAME_MAX)
		return -EINVAL;
	shard = pvr_fabric_shard(engine, fabric);
	pvr_lock(&shard->lock);
	err = set_each(engine, shard, &key, state, host, wake);
	pvr_unlock(&shard->lock);
	return err;
}

bool pvr_gid_forget_host(struct pvr_engine *engine, struct pvr_host *host, const char *fabric,
			 const uint8_t gid[16])
{
	const struct pvr_gid_key key = key_of(fabric, gid, 0);
	const struct pvr_fabrics *fabrics = engine->fabrics;
	struct pvr_gid_shard *shard = pvr_fabric_shard(engine, fabric);
	struct pvr_gid_cache *cache;
	bool known = false, changed;

	if (key.multicast)
		return false;
	pvr_lock(&shard->lock);
	cache = cache_get(engine->fabrics, shard);
	if (cache)
		pvr_gid_cache_set(cache, &key, PVR_GID_LEFT_HOST, host, &known);
	changed = pvr_referral_lost(engine, shard, &key, host, known);
	if (changed)
		pvr_fabric_changed(engine, fabric);
	pvr_unlock(&shard->lock);
	if (known && fabrics->gid_ops && fabrics->gid_ops->moved)
		fabrics->gid_ops->moved(fabrics->gid_opaque, host, fabric, gid);
	return changed;
}

void pvr_gid_left_host(struct pvr_engine *engine, struct pvr_host *host, const char *fabric,
		       const uint8_t gid[16])
{
	const struct pvr_gid_key key = key_of(fabric, gid, 0);

	if (pvr_gid_forget_host(engine, host, fabric, gid))
		query(engine, host, &key);
}

bool pvr_engine_find_gid(struct pvr_engine *engine, const char *fabric, const uint8_t gid[16],
			 uint8_t *gid_type, uint8_t mac[6])
{
	const struct pvr_adapter *adapter;

	memset(mac, 0, 6);
	if (pvr_gid_is_multicast(gid))
		return pvr_group_exists(engine, fabric, gid, gid_type);
	adapter = pvr_fabric_look_up(engine, fabric, gid, 0);
	if (!adapter)
		return false;
	*gid_type = adapter->gid_type;
	memcpy(mac, adapter->mac, 6);
	return true;
}

void pvr_announce(struct pvr_engine *engine, const char *fabric, const uint8_t gid[16],
		  uint8_t gid_type, const uint8_t mac[6], bool present)
{
	const struct pvr_fabrics *fabrics = engine->fabrics;

	if (fabrics->gid_ops && fabrics->gid_ops->announce)
		fabrics->gid_ops->announce(fabrics->gid_opaque, fabric, gid, gid_type, mac,
					   present);
}
