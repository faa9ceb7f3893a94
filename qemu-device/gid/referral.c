// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* Referrals: locations of GIDs that other hosts know and the directory does not. */
#include "gid/referral.h"

#include <stdlib.h>

#include "core/adapter.h"
#include "core/gid.h"
#include "gid/fabric.h"
#include "gid/resolve.h"

#define GUIDE 0 /* as gid_type */

static struct pvr_gid_key key_of(const char *fabric, const uint8_t gid[16], uint8_t gid_type)
{
	return (struct pvr_gid_key){ .fabric = fabric, .gid = gid, .gid_type = gid_type };
}

/* ---------------------------------------------------------------------- one scope */

/* Return: the host, and its version or GUIDE; NULL: none. */
static struct pvr_host *find(const struct pvr_referrals *referrals, const struct pvr_gid_key *key,
			     uint8_t *gid_type)
{
	struct pvr_gid_location location;

	*gid_type = GUIDE;
	if (!referrals || !referrals->cache ||
	    !pvr_gid_cache_find(referrals->cache, key, &location))
		return NULL;
	*gid_type = location.gid_type;
	return location.hosts[0];
}

/* Return: the host that has the GID or knows where it is. */
static struct pvr_host *find_guide(const struct pvr_referrals *referrals,
				   const struct pvr_gid_key *key)
{
	uint8_t gid_type;
	struct pvr_host *host = find(referrals, key, &gid_type);

	return host || !referrals ? host : referrals->source;
}

/* Return: false if out of memory. */
static bool cache_get(struct pvr_engine *engine, struct pvr_referrals *referrals)
{
	if (!referrals->cache)
		referrals->cache = pvr_gid_cache_new(engine->fabrics->seed, &referrals->count);
	return referrals->cache;
}

/* Referrals are few. At the limit no more are taken: a host must not end those of others. */
static bool has_room(struct pvr_engine *engine, struct pvr_referrals *referrals,
		     const struct pvr_gid_key *key)
{
	struct pvr_gid_location location;

	return cache_get(engine, referrals) &&
	       (referrals->count < PVR_REFERRALS_MAX ||
		pvr_gid_cache_find(referrals->cache, key, &location));
}

/* Without memory the GID stays unknown. */
static bool put(struct pvr_engine *engine, struct pvr_referrals **at, struct pvr_gid_key key,
		uint8_t gid_type, struct pvr_host *host)
{
	bool changed = false;

	if (!*at)
		*at = calloc(1, sizeof(**at));
	if (!*at || !has_room(engine, *at, &key))
		return false;
	key.gid_type = gid_type;
	pvr_gid_cache_set((*at)->cache, &key, PVR_GID_AT_HOST, host, &changed);
	return changed;
}

static bool drop(struct pvr_referrals *referrals, const struct pvr_gid_key *key)
{
	bool changed = false;

	if (referrals && referrals->cache)
		pvr_gid_cache_set(referrals->cache, key, PVR_GID_UNKNOWN, NULL, &changed);
	return changed;
}

void pvr_referrals_free(struct pvr_referrals *referrals)
{
	if (referrals)
		pvr_gid_cache_free(referrals->cache);
	free(referrals);
}

/* ---------------------------------------------------------------------- all scopes */

/* The shard, which is for all adapters of its fabrics, then each adapter of one fabric. */
struct scopes {
	const struct pvr_fabric *fabric; /* NULL: it has no adapters with referrals */
	struct pvr_adapter *adapter;
};

/* The shard's lock is held. Without referrals of adapters, the work does not depend on them. */
static struct scopes scopes_of(const struct pvr_engine *engine, const struct pvr_gid_shard *shard,
			       const struct pvr_gid_key *key)
{
	return (struct scopes){
		.fabric = shard->num_referring ? pvr_fabric_by_name(engine, key->fabric) : NULL,
	};
}

static struct pvr_referrals **next(struct scopes *scopes)
{
	if (scopes->adapter)
		scopes->adapter = LIST_NEXT(scopes->adapter, fabric_link);
	else if (scopes->fabric)
		scopes->adapter = LIST_FIRST(&scopes->fabric->adapters);
	return scopes->adapter ? &scopes->adapter->referrals : NULL;
}

struct pvr_host *pvr_referral_find(const struct pvr_gid_shard *shard,
				   const struct pvr_adapter *adapter, const struct pvr_gid_key *key)
{
	uint8_t gid_type;
	struct pvr_host *host = find(shard->referrals, key, &gid_type);

	if (!host && adapter)
		host = find(adapter->referrals, key, &gid_type);
	return gid_type != GUIDE && gid_type == key->gid_type ? host : NULL;
}

struct pvr_host *pvr_referral_guide(const struct pvr_gid_shard *shard,
				    const struct pvr_adapter *adapter,
				    const struct pvr_gid_key *key)
{
	struct pvr_host *host = find_guide(shard->referrals, key);

	return host || !adapter ? host : find_guide(adapter->referrals, key);
}

bool pvr_referral_query(struct pvr_engine *engine, struct pvr_referrals *referrals,
			const struct pvr_gid_key *key, uint64_t now, uint64_t ns)
{
	return cache_get(engine, referrals) && pvr_gid_cache_query(referrals->cache, key, now, ns);
}

bool pvr_referral_lost(struct pvr_engine *engine, struct pvr_gid_shard *shard,
		       const struct pvr_gid_key *key, struct pvr_host *host, bool known)
{
	struct scopes scopes = scopes_of(engine, shard, key);
	struct pvr_referrals **at;
	bool changed = known;
	uint8_t gid_type;

	if (known && !find(shard->referrals, key, &gid_type))
		put(engine, &shard->referrals, *key, GUIDE, host);
	for (at = &shard->referrals; at; at = next(&scopes))
		if (find(*at, key, &gid_type) == host && gid_type != GUIDE)
			changed |= put(engine, at, *key, GUIDE, host);
	return changed;
}

bool pvr_referral_drop(struct pvr_engine *engine, struct pvr_gid_shard *shard,
		       const struct pvr_gid_key *key, bool asked)
{
	struct scopes scopes = scopes_of(engine, shard, key);
	struct pvr_referrals **at;
	bool changed = false;

	if (asked)
		shard->answered_at = pvr_now(engine);
	for (at = &shard->referrals; at; at = next(&scopes)) {
		changed |= drop(*at, key);
		if (asked && *at)
			(*at)->source = NULL;
	}
	return changed;
}

/*
 * The directory may have reported the GID as absent before the adapter here had it: during an upgrade
 * another process has the adapter. The hand-over is newer.
 */
static void forget_absence(struct pvr_gid_shard *shard, const struct pvr_gid_key *key)
{
	struct pvr_gid_location location;
	bool changed;

	if (shard->cache && pvr_gid_cache_find(shard->cache, key, &location) &&
	    location.state == PVR_GID_ABSENT)
		pvr_gid_cache_set(shard->cache, key, PVR_GID_UNKNOWN, NULL, &changed);
}

void pvr_referral_set(struct pvr_engine *engine, const char *fabric, const uint8_t gid[16],
		      uint8_t gid_type, struct pvr_host *host)
{
	const struct pvr_gid_key key = key_of(fabric, gid, gid_type);
	struct pvr_gid_shard *shard = pvr_fabric_shard(engine, fabric);
	const struct pvr_fabrics *fabrics = engine->fabrics;

	pvr_lock(&shard->lock);
	forget_absence(shard, &key);
	if (put(engine, &shard->referrals, key, gid_type, host))
		pvr_fabric_changed(engine, fabric);
	pvr_unlock(&shard->lock);
	if (fabrics->gid_ops && fabrics->gid_ops->handed_over)
		fabrics->gid_ops->handed_over(fabrics->gid_opaque, host, fabric, gid);
}

void pvr_referral_set_source(struct pvr_adapter *adapter, struct pvr_host *source, uint64_t since)
{
	struct pvr_gid_shard *shard = adapter->fabric->shard;

	pvr_lock(&shard->lock);
	if (shard->answered_at <= since && !adapter->referrals) {
		adapter->referrals = calloc(1, sizeof(*adapter->referrals));
		shard->num_referring += adapter->referrals != NULL;
	}
	if (shard->answered_at <= since && adapter->referrals)
		adapter->referrals->source = source;
	pvr_unlock(&shard->lock);
}

/* The shard's lock is held. Return: the host at which the directory has located the GID, or NULL. */
static struct pvr_host *find_located_host(const struct pvr_gid_shard *shard,
					  const struct pvr_gid_key *key)
{
	struct pvr_gid_location location;

	return shard->cache && pvr_gid_cache_find(shard->cache, key, &location) &&
			       location.state == PVR_GID_AT_HOST
		       ? location.hosts[0]
		       : NULL;
}

void pvr_referral_bound(struct pvr_adapter *adapter, const uint8_t gid[16])
{
	const struct pvr_gid_key key = key_of(adapter->fabric->name, gid, 0);
	struct pvr_gid_shard *shard = adapter->fabric->shard;
	struct pvr_host *before;

	pvr_lock(&shard->lock);
	before = find_located_host(shard, &key);
	pvr_unlock(&shard->lock);
	/* Nor may a location of before come back when the adapter leaves. */
	if (before)
		pvr_gid_forget_host(adapter->engine, before, adapter->fabric->name, gid);
	pvr_lock(&shard->lock);
	if (drop(shard->referrals, &key))
		pvr_fabric_changed(adapter->engine, adapter->fabric->name);
	pvr_unlock(&shard->lock);
}

void pvr_referrals_forget(struct pvr_adapter *adapter)
{
	struct pvr_gid_shard *shard = adapter->fabric->shard;

	pvr_lock(&shard->lock);
	shard->num_referring -= adapter->referrals != NULL;
	pvr_referrals_free(adapter->referrals);
	adapter->referrals = NULL;
	pvr_unlock(&shard->lock);
}

static void forget_fabric(struct pvr_engine *engine, struct pvr_fabric *fabric)
{
	struct pvr_adapter *adapter;

	LIST_FOREACH(adapter, &fabric->adapters, fabric_link)
		pvr_referrals_forget(adapter);
	pvr_lock(&fabric->shard->lock);
	pvr_fabric_changed(engine, fabric->name);
	pvr_unlock(&fabric->shard->lock);
}

void pvr_referrals_forget_all(struct pvr_engine *engine)
{
	struct pvr_fabrics *fabrics = engine->fabrics;
	struct pvr_gid_shard *shard;
	struct pvr_fabric *fabric;
	unsigned int i;

	for (i = 0; i < PVR_GID_SHARDS; i++) {
		shard = &fabrics->shards[i];
		pvr_lock(&shard->lock);
		pvr_referrals_free(shard->referrals);
		shard->referrals = NULL;
		pvr_unlock(&shard->lock);
	}
	for (i = 0; i < PVR_FABRIC_NAMES; i++)
		LIST_FOREACH(fabric, &fabrics->names[i], link)
			forget_fabric(engine, fabric);
}

/* ----------------------------------------------------------------------- responses */

/* @to: as for pvr_referral_answered() */
static bool take_answer(struct pvr_engine *engine, struct pvr_referrals **at,
			const struct pvr_gid_key *key, struct pvr_host *from, struct pvr_host *to)
{
	uint8_t gid_type;

	if (!*at || find_guide(*at, key) != from)
		return false;
	if (to)
		return put(engine, at, *key, key->gid_type, to);
	if (find(*at, key, &gid_type) != from)
		return false;
	/* An adapter that is between two hosts has no GIDs. So @from is asked again. */
	if (!(*at)->source || (*at)->source == from)
		return gid_type != GUIDE && put(engine, at, *key, GUIDE, from);
	/* The source may know more. */
	return drop(*at, key);
}

bool pvr_referral_answered(struct pvr_engine *engine, const char *fabric, const uint8_t gid[16],
			   uint8_t gid_type, struct pvr_host *from, struct pvr_host *to)
{
	const struct pvr_gid_key key = key_of(fabric, gid, gid_type);
	struct pvr_gid_shard *shard = pvr_fabric_shard(engine, fabric);
	struct scopes scopes;
	struct pvr_referrals **at;
	bool changed = false;

	if (pvr_gid_is_multicast(gid) || (to && !pvr_gid_may_have(engine, to, fabric, gid)))
		return false;
	pvr_lock(&shard->lock);
	scopes = scopes_of(engine, shard, &key);
	for (at = &shard->referrals; at; at = next(&scopes))
		changed |= take_answer(engine, at, &key, from, to);
	if (changed)
		pvr_fabric_changed(engine, fabric);
	pvr_unlock(&shard->lock);
	return changed;
}

bool pvr_referral_believes(struct pvr_engine *engine, const char *fabric, const uint8_t gid[16],
			   const struct pvr_host *from)
{
	const struct pvr_gid_key key = key_of(fabric, gid, 0);
	struct pvr_gid_shard *shard = pvr_fabric_shard(engine, fabric);
	struct scopes scopes;
	struct pvr_referrals **at;
	bool believes;

	if (pvr_gid_is_multicast(gid))
		return false;
	pvr_lock(&shard->lock);
	scopes = scopes_of(engine, shard, &key);
	believes = find_located_host(shard, &key) == from;
	for (at = &shard->referrals; at && !believes; at = next(&scopes))
		believes = find_guide(*at, &key) == from;
	pvr_unlock(&shard->lock);
	return believes;
}

struct pvr_host *pvr_referral_to(struct pvr_engine *engine, const char *fabric,
				 const uint8_t gid[16], uint8_t *gid_type)
{
	const struct pvr_gid_key key = key_of(fabric, gid, 0);
	struct pvr_gid_shard *shard = pvr_fabric_shard(engine, fabric);
	struct pvr_gid_location location;
	struct pvr_host *host = NULL;

	if (pvr_gid_is_multicast(gid))
		return NULL;
	pvr_lock(&shard->lock);
	if (!shard->cache || !pvr_gid_cache_find(shard->cache, &key, &location)) {
		host = find(shard->referrals, &key, gid_type);
	} else if (location.state == PVR_GID_AT_HOST) {
		host = location.hosts[0];
		*gid_type = location.gid_type;
	}
	pvr_unlock(&shard->lock);
	return host;
}
