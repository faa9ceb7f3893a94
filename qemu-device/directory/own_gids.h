/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * GIDs and group memberships of this engine's adapters, as announce() reports them.
 *
 * No change may be lost, yet a guest can make any number of announcements. So there is a
 * table of the current state and a list of changes since the directory's last call, but
 * no queue. A GID that came and went in between leaves no trace.
 */
#ifndef PVR_DIRECTORY_OWN_GIDS_H
#define PVR_DIRECTORY_OWN_GIDS_H

#include <pthread.h>

#include "directory/key.h"

struct pvr_own_gid;

struct pvr_own_gids {
	pthread_mutex_t lock; /* protects all members; innermost */
	struct pvr_key_table table;
	TAILQ_HEAD(, pvr_own_gid) changed;
	bool incomplete; /* an allocation failed */
};

bool pvr_own_gids_init(struct pvr_own_gids *own);
void pvr_own_gids_exit(struct pvr_own_gids *own);

/* An adapter got or lost the GID. Any thread; idempotent. */
void pvr_own_gids_set(struct pvr_own_gids *own, const struct pvr_key *key, uint8_t type,
		      const uint8_t mac[6], bool present);
/* Return: the next change, with @type 0 for a removal; false if there is none. */
bool pvr_own_gids_next(struct pvr_own_gids *own, struct pvr_key *key, uint8_t *type);
size_t pvr_own_gids_num(struct pvr_own_gids *own);

#endif /* PVR_DIRECTORY_OWN_GIDS_H */
