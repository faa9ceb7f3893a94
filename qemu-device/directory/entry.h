/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * The cache: what is known of a GID, and being found out.
 *
 *	ASKING	 the engine knows nothing; the backend is looking it up, and may have found
 *		 some members of the group
 *	FOUND	 the engine knows the owner, or the members of the group, of whom there is
 *		 one at least
 *	ABSENT	 the engine knows that there is none, for a while; then it is forgotten
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

/* Why an entry needs attention later; each kind has a delay of its own. */
enum pvr_due {
	PVR_DUE_NEVER,
	PVR_DUE_ROUND,
	PVR_DUE_ABSENT,
	PVR_DUE_GROUP,
	PVR_DUE_FOUND,
	PVR_DUE_VERIFY,
	PVR_DUES,
};

/* A reference. A host has members of one version of RoCE. */
struct pvr_entry_member {
	struct pvr_dir_host *host;
	uint8_t type; /* PVR_GID_TYPE_* */
};

struct pvr_entry {
	struct pvr_key_node node;
	enum pvr_entry_state state;
	uint8_t type; /* FOUND, if it is no group: PVR_GID_TYPE_* */
	struct pvr_dir_host *owner; /* FOUND, if it is no group; a reference */
	LIST_ENTRY(pvr_entry) by_owner;
	struct pvr_entry_member *members; /* if it is a group */
	size_t num_members;
	TAILQ_ENTRY(pvr_entry) used; /* least recently first */
	enum pvr_due due;
	uint64_t deadline;
	TAILQ_ENTRY(pvr_entry) by_deadline;
	/* The backend's own, zero at first. */
	_Alignas(16) unsigned char private[];
};

TAILQ_HEAD(pvr_entry_list, pvr_entry);

struct pvr_entries {
	struct pvr_key_table table;
	size_t max;
	size_t num[PVR_ENTRY_STATES];
	struct pvr_entry_list used;
	/* Each in the order of deadlines, as all in one wait equally long. */
	struct pvr_entry_list due[PVR_DUES];
	uint64_t delay[PVR_DUES];
};

bool pvr_entries_init(struct pvr_entries *entries, size_t max);
/* Drops all, without telling the engine. */
void pvr_entries_exit(struct pvr_directory *directory);

struct pvr_entry *pvr_entry_find(struct pvr_directory *directory, const struct pvr_key *key);
/* A new one, ASKING. Another may have to go. NULL: no memory. */
struct pvr_entry *pvr_entry_create(struct pvr_directory *directory, const struct pvr_key *key);
/* It has been asked for. */
void pvr_entry_touch(struct pvr_directory *directory, struct pvr_entry *entry);
/* Instead of an earlier one. */
void pvr_entry_set_due(struct pvr_directory *directory, struct pvr_entry *entry, enum pvr_due due);
/* The one whose time has come first, if it has; NULL else, and @next is when it will. */
struct pvr_entry *pvr_entry_next_due(struct pvr_directory *directory, uint64_t now, uint64_t *next);

/* ------------------------------------- what the backend has found out; tells the engine */

/* @host has it. Whatever was known before is no more. */
void pvr_entry_found(struct pvr_directory *directory, struct pvr_entry *entry,
		     struct pvr_dir_host *host, uint8_t type);
/*
 * One more member, one less; there may be none then. Those that are found first are told
 * together, by pvr_entry_complete().
 */
void pvr_entry_join(struct pvr_directory *directory, struct pvr_entry *entry,
		    struct pvr_dir_host *host, uint8_t type);
void pvr_entry_leave(struct pvr_directory *directory, struct pvr_entry *entry,
		     struct pvr_dir_host *host);
/* No more are to be waited for, unless there is none yet. */
void pvr_entry_complete(struct pvr_directory *directory, struct pvr_entry *entry);
bool pvr_entry_has_member(const struct pvr_entry *entry, const struct pvr_dir_host *host);
/* It is not known any more, and being looked up. */
void pvr_entry_unknown(struct pvr_directory *directory, struct pvr_entry *entry);
/* Nobody has it. */
void pvr_entry_absent(struct pvr_directory *directory, struct pvr_entry *entry);
/* Nothing is known, and it is not being looked up: it is asked for anew when it is needed. */
void pvr_entry_forget(struct pvr_directory *directory, struct pvr_entry *entry);
/* Say once more what is known. */
void pvr_entry_tell(struct pvr_directory *directory, struct pvr_entry *entry);

#endif /* PVR_DIRECTORY_ENTRY_H */
