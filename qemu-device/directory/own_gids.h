/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * GIDs and group memberships of this engine's adapters, as announce() tells of them.
 *
 * Nothing may be lost here, and yet a guest can make announcements as fast as it likes.
 * So there is no queue, but a table of what is there now, and a list of what has changed
 * since the directory has looked; what has come and gone in between leaves no trace.
 */
#ifndef PVR_DIRECTORY_OWN_GIDS_H
#define PVR_DIRECTORY_OWN_GIDS_H

#include <pthread.h>

#include "directory/key.h"

struct pvr_own_gid;

struct pvr_own_gids {
	pthread_mutex_t lock; /* protects all; nothing is taken inside it */
	struct pvr_key_table table;
	TAILQ_HEAD(, pvr_own_gid) changed;
	bool incomplete; /* there was no memory */
};

bool pvr_own_gids_init(struct pvr_own_gids *own);
void pvr_own_gids_exit(struct pvr_own_gids *own);

/* From any thread. An adapter has, or has no more, the GID; saying so twice is once. */
void pvr_own_gids_set(struct pvr_own_gids *own, const struct pvr_key *key, uint8_t type,
		      const uint8_t mac[6], bool present);
/* What has changed: @type 0: it is not here any more. False: nothing has. */
bool pvr_own_gids_next(struct pvr_own_gids *own, struct pvr_key *key, uint8_t *type);
size_t pvr_own_gids_num(struct pvr_own_gids *own);

#endif /* PVR_DIRECTORY_OWN_GIDS_H */
