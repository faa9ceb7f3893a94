/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * A table of GIDs by fabric: where each one is. It grows a bucket at a time, so that a
 * million of them never keeps anybody waiting.
 */
#ifndef PVR_GID_CACHE_H
#define PVR_GID_CACHE_H

#include <stdbool.h>
#include <stdint.h>

#include "engine.h"

#define PVR_GID_CACHE_MAX (1u << 20)

struct pvr_gid_cache;

/* Whose GID that is. A multicast group is one for each version of RoCE. */
struct pvr_gid_key {
	const char *fabric;
	const uint8_t *gid;
	uint8_t gid_type;
	bool multicast;
};

struct pvr_gid_location {
	enum pvr_gid_state state; /* NOWHERE or REMOTE; UNKNOWN: more members follow at once */
	uint8_t gid_type;
	uint32_t count; /* of hosts: 1, or members of the group */
	struct pvr_host *const *hosts;
};

/* @seed: something that others do not know. NULL: no memory. */
struct pvr_gid_cache *pvr_gid_cache_new(uint64_t seed);
/* NULL is allowed. */
void pvr_gid_cache_free(struct pvr_gid_cache *cache);

/* Return: whether it is in the book; @location is good until something is changed. */
bool pvr_gid_cache_find(const struct pvr_gid_cache *cache, const struct pvr_gid_key *key,
			struct pvr_gid_location *location);
/* As pvr_engine_set_gid(). Return: 0, -ENOMEM or -ENOSPC; *changed: whether it was news. */
int pvr_gid_cache_set(struct pvr_gid_cache *cache, const struct pvr_gid_key *key,
		      enum pvr_gid_state state, struct pvr_host *host, bool *changed);
uint32_t pvr_gid_cache_count(const struct pvr_gid_cache *cache);

/*
 * Somebody asks for what is not in the book. Return: whether that has to be passed on, as
 * nobody has asked within @ns.
 */
bool pvr_gid_cache_query(struct pvr_gid_cache *cache, const struct pvr_gid_key *key, uint64_t now,
			 uint64_t ns);
/* Somebody has asked for it, probably; forgets that. */
bool pvr_gid_cache_was_queried(struct pvr_gid_cache *cache, const struct pvr_gid_key *key);

#endif /* PVR_GID_CACHE_H */
