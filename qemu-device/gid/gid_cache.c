// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * The GID cache: locations of GIDs, by fabric.
 *
 * The cache is a hash table with linear hashing. Each insertion splits at most one
 * bucket. Buckets lie in segments that never move.
 */
#include "gid/gid_cache.h"
#include "gid/hash.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define SEGMENT 4096u
#define SEGMENTS 64u
#define BUCKETS_MIN 256u
#define LOAD 4u /* entries per bucket */
#define NAME_BUCKETS 256u
#define QUERIES 1024u

/* The name of a fabric, shared by all its entries. */
struct cached_fabric {
	struct cached_fabric *next;
	uint32_t entries;
	char name[PVR_NAME_MAX];
};

struct entry {
	struct entry *next;
	uint64_t hash;
	struct cached_fabric *fabric;
	uint8_t gid[16];
	uint8_t gid_type;
	bool multicast;
	bool more; /* more members follow */
	uint8_t state; /* enum pvr_gid_state */
	uint32_t count, size; /* members of a group, and allocated members */
	struct pvr_host *host; /* of a unicast GID */
	struct pvr_host **members;
};

/* A recent query. A newer query with the same index replaces it, and is then one of several. */
struct query {
	uint64_t hash; /* 0: none */
	uint64_t when;
	bool several;
};

struct pvr_gid_cache {
	uint64_t seed;
	uint32_t *total; /* entries of all caches with this limit; atomic */
	uint32_t count, buckets;
	struct entry **segment[SEGMENTS];
	struct cached_fabric *names[NAME_BUCKETS];
	struct query query[QUERIES];
};

/* ------------------------------------------------------------------------- hashing */

static uint64_t hash_key(const struct pvr_gid_cache *cache, const struct pvr_gid_key *key)
{
	uint64_t hash = pvr_hash_gid(pvr_hash_name(cache->seed, key->fabric), key->gid,
				     key->multicast ? key->gid_type : 0);

	return hash ? hash : 1;
}

/* Return: the least power of two that is not below @n. */
static uint32_t round_up(uint32_t n)
{
	return n & (n - 1) ? 1u << (32 - __builtin_clz(n)) : n;
}

static struct entry **bucket_at(const struct pvr_gid_cache *cache, uint32_t index)
{
	return &cache->segment[index / SEGMENT][index % SEGMENT];
}

/* Buckets that are split already use one more bit of the hash. */
static struct entry **bucket_of(const struct pvr_gid_cache *cache, uint64_t hash)
{
	uint32_t mask = round_up(cache->buckets) - 1, index = (uint32_t)hash & mask;

	return bucket_at(cache, index < cache->buckets ? index : index & mask >> 1);
}

static bool grow_segments(struct pvr_gid_cache *cache)
{
	uint32_t i = cache->buckets / SEGMENT;

	if (i == SEGMENTS)
		return false;
	if (!cache->segment[i])
		cache->segment[i] = calloc(SEGMENT, sizeof(struct entry *));
	return cache->segment[i];
}

/*
 * Add one bucket, and move the entries that belong there from the bucket that is split.
 */
static void split(struct pvr_gid_cache *cache)
{
	struct entry **from, **to, *entry;

	if (cache->count <= LOAD * cache->buckets || !grow_segments(cache))
		return;
	from = bucket_of(cache, cache->buckets);
	to = bucket_at(cache, cache->buckets++);
	while ((entry = *from)) {
		if (bucket_of(cache, entry->hash) != to) {
			from = &entry->next;
			continue;
		}
		*from = entry->next;
		entry->next = *to;
		*to = entry;
	}
}

/* --------------------------------------------------------------------------- names */

static struct cached_fabric *fabric_get(struct pvr_gid_cache *cache, const char *name)
{
	struct cached_fabric **bucket =
		&cache->names[pvr_hash_name(cache->seed, name) % NAME_BUCKETS];
	struct cached_fabric *fabric;

	for (fabric = *bucket; fabric; fabric = fabric->next)
		if (!strcmp(fabric->name, name))
			return fabric;
	fabric = calloc(1, sizeof(*fabric));
	if (!fabric)
		return NULL;
	strncpy(fabric->name, name, sizeof(fabric->name) - 1);
	fabric->next = *bucket;
	*bucket = fabric;
	return fabric;
}

static void fabric_put(struct pvr_gid_cache *cache, struct cached_fabric *fabric)
{
	struct cached_fabric **at =
		&cache->names[pvr_hash_name(cache->seed, fabric->name) % NAME_BUCKETS];

	if (fabric->entries)
		return;
	while (*at != fabric)
		at = &(*at)->next;
	*at = fabric->next;
	free(fabric);
}

/* ------------------------------------------------------------------------- entries */

static bool is_it(const struct entry *entry, uint64_t hash, const struct pvr_gid_key *key)
{
	return entry->hash == hash && !memcmp(entry->gid, key->gid, sizeof(entry->gid)) &&
	       entry->multicast == key->multicast &&
	       (!key->multicast || entry->gid_type == key->gid_type) &&
	       !strcmp(entry->fabric->name, key->fabric);
}

/* Return: the link to the entry of @key; the link is NULL if there is no entry. */
static struct entry **find(const struct pvr_gid_cache *cache, const struct pvr_gid_key *key)
{
	uint64_t hash = hash_key(cache, key);
	struct entry **at = bucket_of(cache, hash);

	while (*at && !is_it(*at, hash, key))
		at = &(*at)->next;
	return at;
}

/* Return: false if there are PVR_GID_CACHE_MAX entries. */
static bool count_one(struct pvr_gid_cache *cache)
{
	if (__atomic_add_fetch(cache->total, 1, __ATOMIC_RELAXED) > PVR_GID_CACHE_MAX) {
		__atomic_sub_fetch(cache->total, 1, __ATOMIC_RELAXED);
		return false;
	}
	cache->count++;
	return true;
}

static void uncount_one(struct pvr_gid_cache *cache)
{
	cache->count--;
	__atomic_sub_fetch(cache->total, 1, __ATOMIC_RELAXED);
}

static int add(struct pvr_gid_cache *cache, const struct pvr_gid_key *key, struct entry **added)
{
	struct cached_fabric *fabric;
	struct entry *entry, **bucket;

	if (!count_one(cache))
		return -ENOSPC;
	fabric = fabric_get(cache, key->fabric);
	entry = fabric ? calloc(1, sizeof(*entry)) : NULL;
	if (!entry) {
		if (fabric)
			fabric_put(cache, fabric);
		uncount_one(cache);
		return -ENOMEM;
	}
	entry->hash = hash_key(cache, key);
	entry->fabric = fabric;
	entry->multicast = key->multicast;
	entry->gid_type = key->gid_type;
	memcpy(entry->gid, key->gid, sizeof(entry->gid));
	bucket = bucket_of(cache, entry->hash);
	entry->next = *bucket;
	*bucket = entry;
	fabric->entries++;
	split(cache);
	*added = entry;
	return 0;
}

static void del(struct pvr_gid_cache *cache, struct entry **at)
{
	struct entry *entry = *at;

	*at = entry->next;
	entry->fabric->entries--;
	fabric_put(cache, entry->fabric);
	free(entry->members);
	free(entry);
	uncount_one(cache);
}

/* ------------------------------------------------------------------------ one entry */

static int mcast_qp_find(const struct entry *entry, const struct pvr_host *host)
{
	uint32_t i;

	for (i = 0; i < entry->count; i++)
		if (entry->members[i] == host)
			return (int)i;
	return -1;
}

static int mcast_qp_add(struct entry *entry, struct pvr_host *host)
{
	uint32_t size = entry->size ? 2 * entry->size : 4;
	struct pvr_host **members;

	if (entry->count == entry->size) {
		members = realloc(entry->members, size * sizeof(struct pvr_host *));
		if (!members)
			return -ENOMEM;
		entry->members = members;
		entry->size = size;
	}
	entry->members[entry->count++] = host;
	return 0;
}

/* Return: 1 if the location has changed, 0 if not, or -ENOMEM. */
static int put(struct entry *entry, const struct pvr_gid_key *key, struct pvr_host *host)
{
	bool same = entry->state == PVR_GID_AT_HOST && entry->gid_type == key->gid_type;
	int err;

	if (!entry->multicast) {
		same = same && entry->host == host;
		entry->host = host;
		entry->count = 1;
	} else {
		same = mcast_qp_find(entry, host) >= 0;
		err = same ? 0 : mcast_qp_add(entry, host);
		if (err)
			return err;
	}
	entry->state = PVR_GID_AT_HOST;
	entry->gid_type = key->gid_type;
	return !same;
}

/* Return: whether @host was a location of the entry. */
static bool revoke(struct pvr_gid_cache *cache, struct entry **at, const struct pvr_host *host)
{
	struct entry *entry = *at;
	int i;

	if (!entry || entry->state != PVR_GID_AT_HOST)
		return false;
	if (!entry->multicast) {
		if (entry->host != host)
			return false;
		del(cache, at);
		return true;
	}
	i = mcast_qp_find(entry, host);
	if (i < 0)
		return false;
	entry->members[i] = entry->members[--entry->count];
	if (!entry->count)
		del(cache, at);
	return true;
}

static int set_nowhere(struct pvr_gid_cache *cache, const struct pvr_gid_key *key,
		       struct entry *entry, bool *changed)
{
	int err = entry ? 0 : add(cache, key, &entry);

	if (err)
		return err;
	*changed = entry->state == PVR_GID_AT_HOST;
	entry->state = PVR_GID_ABSENT;
	entry->more = false;
	entry->count = 0;
	return 0;
}

static void forget(struct pvr_gid_cache *cache, const struct pvr_gid_key *key)
{
	struct entry **at = find(cache, key);

	if (*at)
		del(cache, at);
}

/* @more: further hosts may follow, and the entry's state is unknown until then. */
static int set_host(struct pvr_gid_cache *cache, const struct pvr_gid_key *key, struct entry *entry,
		    struct pvr_host *host, bool more, bool *changed)
{
	bool is_new = !entry;
	int ret = is_new ? add(cache, key, &entry) : 0;

	if (ret)
		return ret;
	ret = put(entry, key, host);
	if (ret < 0) {
		if (is_new)
			forget(cache, key);
		return ret;
	}
	entry->more = more;
	*changed = ret;
	return 0;
}

/* ------------------------------------------------------------------------ the cache */

struct pvr_gid_cache *pvr_gid_cache_new(uint64_t seed, uint32_t *total)
{
	struct pvr_gid_cache *cache = calloc(1, sizeof(*cache));

	if (!cache)
		return NULL;
	cache->seed = seed;
	cache->total = total;
	if (!grow_segments(cache)) {
		free(cache);
		return NULL;
	}
	cache->buckets = BUCKETS_MIN;
	return cache;
}

void pvr_gid_cache_free(struct pvr_gid_cache *cache)
{
	uint32_t i;

	if (!cache)
		return;
	for (i = 0; i < cache->buckets; i++)
		while (*bucket_at(cache, i))
			del(cache, bucket_at(cache, i));
	for (i = 0; i < SEGMENTS; i++)
		free(cache->segment[i]);
	free(cache);
}

bool pvr_gid_cache_find(const struct pvr_gid_cache *cache, const struct pvr_gid_key *key,
			struct pvr_gid_location *location)
{
	const struct entry *entry = *find(cache, key);

	if (!entry)
		return false;
	*location = (struct pvr_gid_location){
		.state = entry->more ? PVR_GID_UNKNOWN : entry->state,
		.gid_type = entry->gid_type,
		.count = entry->count,
		.hosts = entry->multicast ? entry->members : &entry->host,
	};
	return true;
}

int pvr_gid_cache_set(struct pvr_gid_cache *cache, const struct pvr_gid_key *key,
		      enum pvr_gid_state state, struct pvr_host *host, bool *changed)
{
	struct entry **at = find(cache, key);

	*changed = false;
	switch (state) {
	case PVR_GID_AT_HOST:
		return set_host(cache, key, *at, host, false, changed);
	case PVR_GID_AT_HOST_MORE:
		return set_host(cache, key, *at, host, key->multicast, changed);
	case PVR_GID_ABSENT:
		return set_nowhere(cache, key, *at, changed);
	case PVR_GID_LEFT_HOST:
		*changed = revoke(cache, at, host);
		return 0;
	case PVR_GID_UNKNOWN:
		break;
	}
	if (!*at)
		return 0;
	/*
	 * Deletion of an ABSENT entry is a change, too: queue pairs must resolve it
	 * again.
	 */
	*changed = (*at)->state != PVR_GID_UNKNOWN;
	del(cache, at);
	return 0;
}

uint32_t pvr_gid_cache_count(const struct pvr_gid_cache *cache)
{
	return cache->count;
}

bool pvr_gid_cache_query(struct pvr_gid_cache *cache, const struct pvr_gid_key *key, uint64_t now,
			 uint64_t ns)
{
	uint64_t hash = hash_key(cache, key);
	struct query *query = &cache->query[hash % QUERIES];

	if (query->hash == hash && now - query->when < ns)
		return false;
	query->several |= query->hash && query->hash != hash;
	query->hash = hash;
	query->when = now;
	return true;
}

enum pvr_gid_queried pvr_gid_cache_was_queried(struct pvr_gid_cache *cache,
					       const struct pvr_gid_key *key)
{
	uint64_t hash = hash_key(cache, key);
	struct query *query = &cache->query[hash % QUERIES];

	if (query->hash != hash)
		return query->several ? PVR_GID_PERHAPS_QUERIED : PVR_GID_NOT_QUERIED;
	query->hash = 0;
	return PVR_GID_QUERIED;
}
