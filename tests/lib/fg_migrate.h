/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * Guests whose adapter is saved, emptied and loaded again. With FG_MIGRATE=n in the environment
 * that happens to all guests of a host after each n-th fg_run() of it. Each page that the
 * adapter has written must then be in its log of dirty pages.
 */
#ifndef FG_MIGRATE_H
#define FG_MIGRATE_H

#include "fg_guest.h"

/* A state, or a part of it. */
struct fg_state {
	uint8_t *data;
	size_t size;
};

/* Reads the environment. A program that does not call it migrates no guest. */
void fg_migrate_init(void);

/*
 * Dies if two states of the adapter differ in more than their identity, which @after, the last one
 * that was saved, gets from @before.
 */
void fg_state_compare(const struct fg_guest *guest, const struct fg_state *before,
		      struct fg_state *after);
/* Stops the adapter. Dies if that fails. */
void fg_stop(struct fg_guest *guest);
/* Return: 0 or a negative errno. The adapter is stopped. */
int fg_state_save(struct fg_guest *guest, struct fg_state *state);
/* For the process that takes the place of this one, see pvr_adapter_save_again(). */
int fg_state_save_again(struct fg_guest *guest, struct fg_state *state);
void fg_state_free(struct fg_state *state);
/* Empties the adapter, which is stopped. */
void fg_drop(struct fg_guest *guest);
/* Pushes and applies the state. Return: as pvr_adapter_load_finish(), which may take a while. */
int fg_state_load(struct fg_guest *guest, const struct fg_state *state);
/* Return: as pvr_adapter_start(), which may take a while. */
int fg_start(struct fg_guest *guest);

/* To another host, with the same RAM. Dies if that fails. */
void fg_move(struct fg_guest *guest, struct fg_host *host);
/* All of it. The state that is saved after the load must be equal. Dies otherwise. */
void fg_migrate(struct fg_guest *guest);
void fg_migrate_all(struct fg_host *host);

#endif /* FG_MIGRATE_H */
