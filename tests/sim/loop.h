/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * Event loops on the virtual clock: they take the place of base/loop.c. Timers expire in the order of
 * their deadlines. A descriptor is looked at only after sim_loop_ring().
 */
#ifndef SIM_LOOP_H
#define SIM_LOOP_H

#include "base/loop.h"

/* Of all loops. */
void sim_loop_set_clock(const uint64_t *now);
/* @owner: see sim_loop_owner() */
struct pvr_loop *sim_loop_create(void *owner);
void *sim_loop_owner(const struct pvr_loop *loop);
/* A descriptor may be readable. */
void sim_loop_ring(struct pvr_loop *loop);
/* Calls what is due now. Return: whether there was anything. */
bool sim_loop_step(struct pvr_loop *loop);
/* Return: when something is due; PVR_NEVER: nothing is. */
uint64_t sim_loop_deadline(const struct pvr_loop *loop);

#endif /* SIM_LOOP_H */
