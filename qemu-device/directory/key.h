/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/* A key, which is a GID in a fabric, and hash tables by key. */
#ifndef PVR_DIRECTORY_KEY_H
#define PVR_DIRECTORY_KEY_H

#include <stddef.h>
#include <sys/queue.h>

#include "engine.h"
#include "core/gid.h"

#define pvr_container_of(ptr, type, member) ((type *)((char *)(ptr)-offsetof(type, member)))

struct pvr_key {
	char fabric[PVR_NAME_MAX]; /* NUL-terminated */
	uint8_t gid[16];
};

#define PVR_KEY_TEXT 96

/* Return: false if the name of the fabric is too long. */
bool pvr_key_init(struct pvr_key *key, const char *fabric, const uint8_t gid[16]);
bool pvr_key_equal(const struct pvr_key *a, const struct pvr_key *b);
/* A multicast group has members instead of an owner. */
static inline bool pvr_key_is_group(const struct pvr_key *key)
{
	return pvr_gid_is_multicast(key->gid);
}
/* Formats "GID in fabric NAME". */
const char *pvr_key_text(const struct pvr_key *key, char text[PVR_KEY_TEXT]);

struct pvr_key_node {
	struct pvr_key key;
	LIST_ENTRY(pvr_key_node) link;
};

/* The hash has a secret seed, because guests choose GIDs. */
struct pvr_key_table {
	LIST_HEAD(, pvr_key_node) * buckets;
	size_t num_buckets, count;
	uint64_t secret[2];
};

/* @buckets: a power of two. Return: false without memory. */
bool pvr_key_table_init(struct pvr_key_table *table, size_t buckets);
/* The table must be empty. */
void pvr_key_table_exit(struct pvr_key_table *table);
struct pvr_key_node *pvr_key_find(const struct pvr_key_table *table, const struct pvr_key *key);
/* The table must not hold an equal key. */
void pvr_key_insert(struct pvr_key_table *table, struct pvr_key_node *node);
void pvr_key_remove(struct pvr_key_table *table, struct pvr_key_node *node);
/* Return: any node, or NULL if the table is empty. */
struct pvr_key_node *pvr_key_any(const struct pvr_key_table *table);

#endif /* PVR_DIRECTORY_KEY_H */
