// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* GIDs and group memberships of this engine's adapters. */
#include <stdlib.h>
#include <string.h>

#include "directory/own_gids.h"

struct pvr_own_gid {
	struct pvr_key_node node;
	TAILQ_ENTRY(pvr_own_gid) link;
	bool changed; /* in the list of changes */
	uint8_t told; /* type last reported to the directory; 0: not reported */
	uint8_t type;
	uint8_t (*macs)[6]; /* MACs of the adapters: the owner, or all members */
	size_t num_macs;
};

bool pvr_own_gids_init(struct pvr_own_gids *own)
{
	memset(own, 0, sizeof(*own));
	TAILQ_INIT(&own->changed);
	pthread_mutex_init(&own->lock, NULL);
	return pvr_key_table_init(&own->table, 1024);
}

static void set_changed(struct pvr_own_gids *own, struct pvr_own_gid *gid, bool changed)
{
	if (changed == gid->changed)
		return;
	if (changed)
		TAILQ_INSERT_TAIL(&own->changed, gid, link);
	else
		TAILQ_REMOVE(&own->changed, gid, link);
	gid->changed = changed;
}

static void drop(struct pvr_own_gids *own, struct pvr_own_gid *gid)
{
	set_changed(own, gid, false);
	pvr_key_remove(&own->table, &gid->node);
	free(gid->macs);
	free(gid);
}

void pvr_own_gids_exit(struct pvr_own_gids *own)
{
	struct pvr_key_node *node;

	if (!own->table.buckets)
		return;
	while ((node = pvr_key_any(&own->table)))
		drop(own, pvr_container_of(node, struct pvr_own_gid, node));
	pvr_key_table_exit(&own->table);
	pthread_mutex_destroy(&own->lock);
}

static struct pvr_own_gid *get(struct pvr_own_gids *own, const struct pvr_key *key)
{
	struct pvr_key_node *node = pvr_key_find(&own->table, key);
	struct pvr_own_gid *gid;

	if (node)
		return pvr_container_of(node, struct pvr_own_gid, node);
	gid = calloc(1, sizeof(*gid));
	if (!gid)
		return NULL;
	gid->node.key = *key;
	pvr_key_insert(&own->table, &gid->node);
	return gid;
}

static size_t index_of(const struct pvr_own_gid *gid, const uint8_t mac[6])
{
	size_t i;

	for (i = 0; i < gid->num_macs && memcmp(gid->macs[i], mac, 6); i++)
		;
	return i;
}

static bool add_mac(struct pvr_own_gid *gid, const uint8_t mac[6])
{
	uint8_t(*grown)[6];

	if (index_of(gid, mac) < gid->num_macs)
		return true;
	grown = realloc(gid->macs, (gid->num_macs + 1) * sizeof(*grown));
	if (!grown)
		return false;
	gid->macs = grown;
	memcpy(gid->macs[gid->num_macs++], mac, 6);
	return true;
}

static void remove_mac(struct pvr_own_gid *gid, const uint8_t mac[6])
{
	size_t i = index_of(gid, mac);

	if (i == gid->num_macs)
		return;
	memcpy(gid->macs[i], gid->macs[gid->num_macs - 1], 6);
	gid->num_macs--;
}

static void come(struct pvr_own_gids *own, const struct pvr_key *key, uint8_t type,
		 const uint8_t mac[6])
{
	struct pvr_own_gid *gid = get(own, key);

	if (!gid || !add_mac(gid, mac)) {
		own->incomplete = true;
		if (gid && !gid->num_macs && !gid->told)
			drop(own, gid);
		return;
	}
	gid->type = type;
	set_changed(own, gid, gid->told != type);
}

static void go(struct pvr_own_gids *own, const struct pvr_key *key, const uint8_t mac[6])
{
	struct pvr_key_node *node = pvr_key_find(&own->table, key);
	struct pvr_own_gid *gid;

	if (!node)
		return;
	gid = pvr_container_of(node, struct pvr_own_gid, node);
	remove_mac(gid, mac);
	if (gid->num_macs)
		return;
	if (gid->told)
		set_changed(own, gid, true);
	else
		drop(own, gid);
}

void pvr_own_gids_set(struct pvr_own_gids *own, const struct pvr_key *key, uint8_t type,
		      const uint8_t mac[6], bool present)
{
	pthread_mutex_lock(&own->lock);
	if (present)
		come(own, key, type, mac);
	else
		go(own, key, mac);
	pthread_mutex_unlock(&own->lock);
}

static void take(struct pvr_own_gids *own, struct pvr_own_gid *gid, struct pvr_key *key,
		 uint8_t *type)
{
	*key = gid->node.key;
	*type = gid->num_macs ? gid->type : 0;
	set_changed(own, gid, false);
	gid->told = *type;
	if (!gid->told)
		drop(own, gid);
}

bool pvr_own_gids_next(struct pvr_own_gids *own, struct pvr_key *key, uint8_t *type)
{
	struct pvr_own_gid *gid;

	pthread_mutex_lock(&own->lock);
	gid = TAILQ_FIRST(&own->changed);
	if (gid)
		take(own, gid, key, type);
	pthread_mutex_unlock(&own->lock);
	return gid;
}

size_t pvr_own_gids_num(struct pvr_own_gids *own)
{
	size_t count;

	pthread_mutex_lock(&own->lock);
	count = own->table.count;
	pthread_mutex_unlock(&own->lock);
	return count;
}
