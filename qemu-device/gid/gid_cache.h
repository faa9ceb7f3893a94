/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * The GID cache: locations of GIDs, by fabric. The table grows by one bucket at a time,
 * so an insertion into a table of a million GIDs takes no longer than into a small one.
 */
#ifndef PVR_GID_CACHE_H
#define PVR_GID_CACHE_H

#include <stdbool.h>
#include <stdint.h>

#include "engine.h"

#define PVR_GID_CACHE_MAX (1u << 20)

struct pvr_gid_cache;

/* The key of a GID. A multicast group is a separate group for each RoCE version. */
struct pvr_gid_key {
	const char *fabric;
	const uint8_t *gid;
	uint8_t gid_type;
	bool multicast;
};

struct pvr_gid_location {
	enum pvr_gid_state state; /* ABSENT or AT_HOST; UNKNOWN: more members follow at once */
	uint8_t gid_type;
	uint32_t count; /* number of hosts: 1, or the members of the group */
	struct pvr_host *const *hosts;
};

/*
 * @seed: a value that guests cannot predict. @total: number of entries of all caches that share
 * the limit PVR_GID_CACHE_MAX, 0 at first. Return: NULL if out of memory.
 */
struct pvr_gid_cache *pvr_gid_cache_new(uint64_t seed, uint32_t *total);
/* @cache may be NULL. */
void pvr_gid_cache_free(struct pvr_gid_cache *cache);

/* Return: whether @key is in the cache. *location is valid until the next change. */
bool pvr_gid_cache_find(const struct pvr_gid_cache *cache, const struct pvr_gid_key *key,
			struct pvr_gid_location *location);
/*
 * As pvr_engine_set_gid(). *changed: whether the location has changed. Return: the same.
 */
int pvr_gid_cache_set(struct pvr_gid_cache *cache, const struct pvr_gid_key *key,
		      enum pvr_gid_state state, struct pvr_host *host, bool *changed);
uint32_t pvr_gid_cache_count(const struct pvr_gid_cache *cache);

/*
 * Record a query for a GID that is not in the cache. @now, @ns: in ns. Return: whether
 * the caller must resolve the GID: there was no query for it within @ns.
 */
bool pvr_gid_cache_query(struct pvr_gid_cache *cache, const struct pvr_gid_key *key, uint64_t now,
			 uint64_t ns);
enum pvr_gid_queried {
	PVR_GID_NOT_QUERIED,
	PVR_GID_PERHAPS_QUERIED, /* another query may have replaced the record */
	PVR_GID_QUERIED,
};

/* Return: whether there was a query for @key. Deletes its record. */
enum pvr_gid_queried pvr_gid_cache_was_queried(struct pvr_gid_cache *cache,
					       const struct pvr_gid_key *key);

#endif /* PVR_GID_CACHE_H */
