/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * The cache of GIDs. States of an entry:
 *
 *	ASKING	 The engine holds nothing. The backend is looking the GID up, and may have
 *		 found some members of the group.
 *	FOUND	 The engine holds the owner, or the members of the group, at least one.
 *	ABSENT	 The engine holds that no host has the GID. The entry expires after a while.
 */
#ifndef PVR_DIRECTORY_ENTRY_H
#define PVR_DIRECTORY_ENTRY_H

#include "directory/host.h"
#include "directory/key.h"

#define PVR_ENTRY_MEMBERS_MAX 1024

enum pvr_entry_state {
	PVR_ENTRY_ASKING,
	PVR_ENTRY_FOUND,
	PVR_ENTRY_ABSENT,
	PVR_ENTRY_STATES,
};

/* The event at an entry's deadline. Each kind has one fixed delay. */
enum pvr_due {
	PVR_DUE_NEVER,
	PVR_DUE_ROUND,
	PVR_DUE_ABSENT,
	PVR_DUE_GROUP,
	PVR_DUE_FOUND,
	PVR_DUE_VERIFY,
	PVR_DUES,
};

/* Holds a reference to the host. All members of one host have the same RoCE version. */
struct pvr_entry_member {
	struct pvr_dir_host *host;
	uint8_t type; /* PVR_GID_TYPE_* */
};

struct pvr_entry {
	struct pvr_key_node node;
	enum pvr_entry_state state;
	uint8_t type; /* FOUND, and no group: PVR_GID_TYPE_* */
	struct pvr_dir_host *owner; /* FOUND, and no group; holds a reference */
	LIST_ENTRY(pvr_entry) by_owner;
	struct pvr_entry_member *members; /* only of a group */
	size_t num_members;
	TAILQ_ENTRY(pvr_entry) used; /* least recently used first */
	enum pvr_due due;
	uint64_t deadline;
	TAILQ_ENTRY(pvr_entry) by_deadline;
	/* Private to the backend; zero-initialized. */
	_Alignas(16) unsigned char private[];
};

TAILQ_HEAD(pvr_entry_list, pvr_entry);

struct pvr_entries {
	struct pvr_key_table table;
	size_t max;
	size_t num[PVR_ENTRY_STATES];
	struct pvr_entry_list used;
	/*
	 * One list per kind, ordered by deadline: all entries of a kind have the same
	 * delay.
	 */
	struct pvr_entry_list due[PVR_DUES];
	uint64_t delay[PVR_DUES];
};

bool pvr_entries_init(struct pvr_entries *entries, size_t max);
/* Drops all entries without a report to the engine. */
void pvr_entries_exit(struct pvr_directory *directory);

struct pvr_entry *pvr_entry_find(struct pvr_directory *directory, const struct pvr_key *key);
/* A new entry in state ASKING; may drop another. Return: NULL without memory. */
struct pvr_entry *pvr_entry_create(struct pvr_directory *directory, const struct pvr_key *key);
/* Marks it as recently used. */
void pvr_entry_touch(struct pvr_directory *directory, struct pvr_entry *entry);
/* Replaces an earlier deadline. */
void pvr_entry_set_due(struct pvr_directory *directory, struct pvr_entry *entry, enum pvr_due due);
/*
 * Return: the entry with the earliest deadline if that has passed; else NULL, and @next
 * is the earliest deadline.
 */
struct pvr_entry *pvr_entry_next_due(struct pvr_directory *directory, uint64_t now, uint64_t *next);

/* --------------------------- results of the backend, reported to the engine */

/* @host is the only owner; earlier results are dropped. */
void pvr_entry_found(struct pvr_directory *directory, struct pvr_entry *entry,
		     struct pvr_dir_host *host, uint8_t type);
/*
 * Adds or removes one member of a group, which may then be empty. Members found before
 * pvr_entry_complete() are reported together by it.
 */
void pvr_entry_join(struct pvr_directory *directory, struct pvr_entry *entry,
		    struct pvr_dir_host *host, uint8_t type);
void pvr_entry_leave(struct pvr_directory *directory, struct pvr_entry *entry,
		     struct pvr_dir_host *host);
/* Ends the collection of members. Does nothing if there is none yet. */
void pvr_entry_complete(struct pvr_directory *directory, struct pvr_entry *entry);
bool pvr_entry_has_member(const struct pvr_entry *entry, const struct pvr_dir_host *host);
/* Back to ASKING: the owner is unknown and is looked up again. */
void pvr_entry_unknown(struct pvr_directory *directory, struct pvr_entry *entry);
/* No host has it. */
void pvr_entry_absent(struct pvr_directory *directory, struct pvr_entry *entry);
/* Drops the entry without a look-up; the engine queries again when needed. */
void pvr_entry_forget(struct pvr_directory *directory, struct pvr_entry *entry);
/* Reports the current result again. */
void pvr_entry_notify(struct pvr_directory *directory, struct pvr_entry *entry);

#endif /* PVR_DIRECTORY_ENTRY_H */
