// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* The cache of GIDs: found, absent, or being looked up. */
#include <stdlib.h>
#include <string.h>

#include "directory/backend.h"

bool pvr_entries_init(struct pvr_entries *entries, size_t max)
{
	size_t i;

	memset(entries, 0, sizeof(*entries));
	entries->max = max;
	TAILQ_INIT(&entries->used);
	for (i = 0; i < PVR_DUES; i++)
		TAILQ_INIT(&entries->due[i]);
	return pvr_key_table_init(&entries->table, 8192);
}

struct pvr_entry *pvr_entry_find(struct pvr_directory *directory, const struct pvr_key *key)
{
	struct pvr_key_node *node = pvr_key_find(&directory->entries.table, key);

	return node ? pvr_container_of(node, struct pvr_entry, node) : NULL;
}

static void set_state(struct pvr_directory *directory, struct pvr_entry *entry,
		      enum pvr_entry_state state)
{
	directory->entries.num[entry->state]--;
	directory->entries.num[state]++;
	entry->state = state;
}

/* ---------------------------------------------------- reports to the engine */

static void notify_type(struct pvr_directory *directory, const struct pvr_entry *entry,
			uint8_t type, enum pvr_gid_state state, const struct pvr_dir_host *host)
{
	const struct pvr_directory_env *env = &directory->env;
	int err =
		env->set_gid(env->opaque, &entry->node.key, type, state, host ? host->name : NULL);

	if (err)
		pvr_directory_log(directory, PVR_LOG_ERR, "cannot cache the host of a GID: %s",
				  strerror(-err));
}

/* Absence and an unknown owner apply to both GID types. */
static void notify(struct pvr_directory *directory, const struct pvr_entry *entry,
		   enum pvr_gid_state state, const struct pvr_dir_host *host)
{
	notify_type(directory, entry, host ? entry->type : 0, state, host);
}

static void set_owner(struct pvr_directory *directory, struct pvr_entry *entry,
		      struct pvr_dir_host *host)
{
	struct pvr_dir_host *before = entry->owner;

	if (before)
		LIST_REMOVE(entry, by_owner);
	if (host) {
		host->refs++;
		LIST_INSERT_HEAD(&host->owns, entry, by_owner);
	}
	entry->owner = host;
	if (before)
		pvr_dir_host_put(directory, before);
}

static void lose_members(struct pvr_directory *directory, struct pvr_entry *entry)
{
	while (entry->num_members)
		pvr_dir_host_put(directory, entry->members[--entry->num_members].host);
	free(entry->members);
	entry->members = NULL;
}

static size_t member_index(const struct pvr_entry *entry, const struct pvr_dir_host *host)
{
	size_t i;

	for (i = 0; i < entry->num_members && entry->members[i].host != host; i++)
		;
	return i;
}

bool pvr_entry_has_member(const struct pvr_entry *entry, const struct pvr_dir_host *host)
{
	return member_index(entry, host) < entry->num_members;
}

void pvr_entry_found(struct pvr_directory *directory, struct pvr_entry *entry,
		     struct pvr_dir_host *host, uint8_t type)
{
	bool news = entry->state != PVR_ENTRY_FOUND || entry->owner != host || entry->type != type;

	entry->type = type;
	set_owner(directory, entry, host);
	set_state(directory, entry, PVR_ENTRY_FOUND);
	if (!news)
		return;
	notify(directory, entry, PVR_GID_AT_HOST, host);
	directory->env.want(directory->env.opaque, host->name);
}

void pvr_entry_join(struct pvr_directory *directory, struct pvr_entry *entry,
		    struct pvr_dir_host *host, uint8_t type)
{
	struct pvr_entry_member *grown;

	if (pvr_entry_has_member(entry, host))
		return;
	grown = entry->num_members < PVR_ENTRY_MEMBERS_MAX
			? realloc(entry->members, (entry->num_members + 1) * sizeof(*grown))
			: NULL;
	if (!grown) {
		pvr_directory_refuse(directory, &entry->node.key, host->name,
				     "the group has too many hosts");
		return;
	}
	entry->members = grown;
	entry->members[entry->num_members++] = (struct pvr_entry_member){ host, type };
	host->refs++;
	directory->env.want(directory->env.opaque, host->name);
	if (entry->state == PVR_ENTRY_ASKING)
		return;
	set_state(directory, entry, PVR_ENTRY_FOUND);
	notify_type(directory, entry, type, PVR_GID_AT_HOST, host);
}

static size_t count_members(const struct pvr_entry *entry, uint8_t type)
{
	size_t i, num = 0;

	for (i = 0; i < entry->num_members; i++)
		num += entry->members[i].type == type;
	return num;
}

/*
 * The engine must not take some members for all: PVR_GID_AT_HOST_MORE marks all but the
 * last.
 */
static void notify_members_of(struct pvr_directory *directory, const struct pvr_entry *entry,
			      uint8_t type)
{
	size_t left = count_members(entry, type), i;

	if (!left)
		notify_type(directory, entry, type, PVR_GID_ABSENT, NULL);
	for (i = 0; i < entry->num_members && left; i++) {
		if (entry->members[i].type == type)
			notify_type(directory, entry, type,
				    --left ? PVR_GID_AT_HOST_MORE : PVR_GID_AT_HOST,
				    entry->members[i].host);
	}
}

static void notify_members(struct pvr_directory *directory, const struct pvr_entry *entry)
{
	notify_members_of(directory, entry, PVR_GID_TYPE_ROCE_V1);
	notify_members_of(directory, entry, PVR_GID_TYPE_ROCE_V2);
}

void pvr_entry_complete(struct pvr_directory *directory, struct pvr_entry *entry)
{
	if (entry->state != PVR_ENTRY_ASKING || !entry->num_members)
		return;
	set_state(directory, entry, PVR_ENTRY_FOUND);
	notify_members(directory, entry);
}

void pvr_entry_leave(struct pvr_directory *directory, struct pvr_entry *entry,
		     struct pvr_dir_host *host)
{
	size_t i = member_index(entry, host);

	if (i == entry->num_members)
		return;
	if (entry->state == PVR_ENTRY_FOUND)
		notify_type(directory, entry, entry->members[i].type, PVR_GID_LEFT_HOST, host);
	entry->members[i] = entry->members[--entry->num_members];
	pvr_dir_host_put(directory, host);
}

void pvr_entry_absent(struct pvr_directory *directory, struct pvr_entry *entry)
{
	set_owner(directory, entry, NULL);
	lose_members(directory, entry);
	entry->type = 0;
	set_state(directory, entry, PVR_ENTRY_ABSENT);
	notify(directory, entry, PVR_GID_ABSENT, NULL);
	pvr_entry_set_due(directory, entry, PVR_DUE_ABSENT);
}

void pvr_entry_unknown(struct pvr_directory *directory, struct pvr_entry *entry)
{
	set_owner(directory, entry, NULL);
	lose_members(directory, entry);
	set_state(directory, entry, PVR_ENTRY_ASKING);
	notify(directory, entry, PVR_GID_UNKNOWN, NULL);
}

void pvr_entry_notify(struct pvr_directory *directory, struct pvr_entry *entry)
{
	if (entry->state == PVR_ENTRY_ABSENT)
		notify(directory, entry, PVR_GID_ABSENT, NULL);
	if (entry->owner)
		notify(directory, entry, PVR_GID_AT_HOST, entry->owner);
	if (entry->state == PVR_ENTRY_FOUND && entry->num_members)
		notify_members(directory, entry);
}

/* ---------------------------------------------------------- create and drop */

static void drop(struct pvr_directory *directory, struct pvr_entry *entry)
{
	struct pvr_entries *entries = &directory->entries;

	if (directory->ops->drop)
		directory->ops->drop(directory, entry);
	pvr_entry_set_due(directory, entry, PVR_DUE_NEVER);
	set_owner(directory, entry, NULL);
	lose_members(directory, entry);
	entries->num[entry->state]--;
	TAILQ_REMOVE(&entries->used, entry, used);
	pvr_key_remove(&entries->table, &entry->node);
	free(entry);
}

void pvr_entry_forget(struct pvr_directory *directory, struct pvr_entry *entry)
{
	notify(directory, entry, PVR_GID_UNKNOWN, NULL);
	drop(directory, entry);
}

struct pvr_entry *pvr_entry_create(struct pvr_directory *directory, const struct pvr_key *key)
{
	struct pvr_entries *entries = &directory->entries;
	struct pvr_entry *entry;

	if (entries->table.count >= entries->max)
		pvr_entry_forget(directory, TAILQ_FIRST(&entries->used));
	entry = calloc(1, sizeof(*entry) + directory->ops->entry_size);
	if (!entry)
		return NULL;
	entry->node.key = *key;
	entry->state = PVR_ENTRY_ASKING;
	entries->num[PVR_ENTRY_ASKING]++;
	TAILQ_INSERT_TAIL(&entries->used, entry, used);
	pvr_key_insert(&entries->table, &entry->node);
	return entry;
}

void pvr_entry_touch(struct pvr_directory *directory, struct pvr_entry *entry)
{
	TAILQ_REMOVE(&directory->entries.used, entry, used);
	TAILQ_INSERT_TAIL(&directory->entries.used, entry, used);
}

void pvr_entries_exit(struct pvr_directory *directory)
{
	struct pvr_entries *entries = &directory->entries;

	if (!entries->table.buckets)
		return;
	while (!TAILQ_EMPTY(&entries->used))
		drop(directory, TAILQ_FIRST(&entries->used));
	pvr_key_table_exit(&entries->table);
}

/* --------------------------------------------------------------------- deadlines */

void pvr_entry_set_due(struct pvr_directory *directory, struct pvr_entry *entry, enum pvr_due due)
{
	struct pvr_entries *entries = &directory->entries;

	if (entry->due)
		TAILQ_REMOVE(&entries->due[entry->due], entry, by_deadline);
	entry->due = due;
	if (!due)
		return;
	entry->deadline = pvr_loop_now() + entries->delay[due];
	TAILQ_INSERT_TAIL(&entries->due[due], entry, by_deadline);
	pvr_directory_rearm(directory);
}

struct pvr_entry *pvr_entry_next_due(struct pvr_directory *directory, uint64_t now, uint64_t *next)
{
	struct pvr_entry *entry;
	int due;

	*next = PVR_NEVER;
	for (due = 1; due < PVR_DUES; due++) {
		entry = TAILQ_FIRST(&directory->entries.due[due]);
		if (!entry)
			continue;
		if (entry->deadline <= now)
			return entry;
		if (entry->deadline < *next)
			*next = entry->deadline;
	}
	return NULL;
}
