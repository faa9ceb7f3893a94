// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* A key, which is a GID in a fabric, and hash tables by key. */
#include <arpa/inet.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "directory/key.h"

bool pvr_key_init(struct pvr_key *key, const char *fabric, const uint8_t gid[16])
{
	size_t len = strlen(fabric);

	if (len >= sizeof(key->fabric))
		return false;
	memset(key, 0, sizeof(*key));
	memcpy(key->fabric, fabric, len);
	memcpy(key->gid, gid, sizeof(key->gid));
	return true;
}

bool pvr_key_equal(const struct pvr_key *a, const struct pvr_key *b)
{
	return !memcmp(a->gid, b->gid, sizeof(a->gid)) && !strcmp(a->fabric, b->fabric);
}

const char *pvr_key_text(const struct pvr_key *key, char text[PVR_KEY_TEXT])
{
	char gid[INET6_ADDRSTRLEN];

	snprintf(text, PVR_KEY_TEXT, "%s in fabric %s",
		 inet_ntop(AF_INET6, key->gid, gid, sizeof(gid)), key->fabric);
	return text;
}

bool pvr_key_table_init(struct pvr_key_table *table, size_t buckets)
{
	table->count = 0;
	table->num_buckets = buckets;
	table->buckets = calloc(buckets, sizeof(*table->buckets));
	return table->buckets &&
	       getrandom(table->secret, sizeof(table->secret), 0) == sizeof(table->secret);
}

void pvr_key_table_exit(struct pvr_key_table *table)
{
	free(table->buckets);
	table->buckets = NULL;
}

/* Folds the 128-bit product: each bit of the result depends on the secret. */
static uint64_t mix(uint64_t value, uint64_t secret)
{
	unsigned __int128 wide = (unsigned __int128)(value ^ secret) * 0x9e3779b97f4a7c15ull;

	return (uint64_t)wide ^ (uint64_t)(wide >> 64);
}

static size_t bucket_of(const struct pvr_key_table *table, const struct pvr_key *key)
{
	uint64_t hash = table->secret[1], words[sizeof(*key) / sizeof(uint64_t)];
	size_t i;

	memcpy(words, key, sizeof(words));
	for (i = 0; i < sizeof(words) / sizeof(words[0]); i++)
		hash = mix(hash ^ words[i], table->secret[0]);
	return hash & (table->num_buckets - 1);
}

struct pvr_key_node *pvr_key_find(const struct pvr_key_table *table, const struct pvr_key *key)
{
	struct pvr_key_node *node;

	LIST_FOREACH(node, &table->buckets[bucket_of(table, key)], link) {
		if (pvr_key_equal(&node->key, key))
			break;
	}
	return node;
}

void pvr_key_insert(struct pvr_key_table *table, struct pvr_key_node *node)
{
	LIST_INSERT_HEAD(&table->buckets[bucket_of(table, &node->key)], node, link);
	table->count++;
}

void pvr_key_remove(struct pvr_key_table *table, struct pvr_key_node *node)
{
	LIST_REMOVE(node, link);
	table->count--;
}

struct pvr_key_node *pvr_key_any(const struct pvr_key_table *table)
{
	size_t i;

	for (i = 0; table->count && i < table->num_buckets; i++) {
		if (!LIST_EMPTY(&table->buckets[i]))
			return LIST_FIRST(&table->buckets[i]);
	}
	return NULL;
}
