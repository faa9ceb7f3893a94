/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * The turns of a worker: times in which it runs the engine or handles sockets, and found work.
 * Its other adapters and connections wait for the end of a turn.
 */
#ifndef PVR_DAEMON_TURNS_H
#define PVR_DAEMON_TURNS_H

#include <stdint.h>

#include "base/loop.h"

#define PVR_TURNS_PERIOD (60 * PVR_SEC)

/* Written by the worker, read by other threads; all times in ns of pvr_loop_now(). */
struct pvr_turns {
	uint64_t busy; /* sum of all turns */
	uint64_t longest, longest_before; /* of this period, and of the one before */
	uint64_t period_ends;
};

static inline void pvr_turns_store(uint64_t *to, uint64_t value)
{
	__atomic_store_n(to, value, __ATOMIC_RELAXED);
}

/* A turn from @begin to @end is over. */
static inline void pvr_turns_add(struct pvr_turns *turns, uint64_t begin, uint64_t end)
{
	uint64_t length = end - begin;

	pvr_turns_store(&turns->busy, turns->busy + length);
	if (end >= turns->period_ends) {
		/* A period without a turn has passed: the turns before it are too old. */
		pvr_turns_store(&turns->longest_before,
				end - turns->period_ends < PVR_TURNS_PERIOD ? turns->longest : 0);
		pvr_turns_store(&turns->longest, 0);
		pvr_turns_store(&turns->period_ends, end + PVR_TURNS_PERIOD);
	}
	if (length > turns->longest)
		pvr_turns_store(&turns->longest, length);
}

/* Return: the sum of all turns. Any thread. */
static inline uint64_t pvr_turns_busy(const struct pvr_turns *turns)
{
	return __atomic_load_n(&turns->busy, __ATOMIC_RELAXED);
}

/* Return: the longest turn of the last period or two. Any thread. */
static inline uint64_t pvr_turns_longest(const struct pvr_turns *turns, uint64_t now)
{
	uint64_t longest = __atomic_load_n(&turns->longest, __ATOMIC_RELAXED);
	uint64_t before = __atomic_load_n(&turns->longest_before, __ATOMIC_RELAXED);
	uint64_t ends = __atomic_load_n(&turns->period_ends, __ATOMIC_RELAXED);

	if (now < ends)
		return longest > before ? longest : before;
	return now - ends < PVR_TURNS_PERIOD ? longest : 0;
}

#endif /* PVR_DAEMON_TURNS_H */
