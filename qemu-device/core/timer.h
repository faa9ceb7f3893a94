/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/* Timers of an adapter: a heap of deadlines. Setting a timer never allocates. */
#ifndef PVR_TIMER_H
#define PVR_TIMER_H

#include <stdbool.h>
#include <stdint.h>

struct pvr_timer {
	uint64_t deadline; /* ns */
	uint32_t slot; /* place in the heap, from 1; 0: not set */
	void (*expired)(struct pvr_timer *timer);
};

struct pvr_timers {
	struct pvr_timer **heap; /* from 1 */
	uint32_t count, size;
	uint32_t owners; /* timers that exist, set or not */
};

/* Reserve space for one more timer. Return: 0 or -ENOMEM. Pairs with pvr_timer_exit(). */
int pvr_timer_init(struct pvr_timers *timers, struct pvr_timer *timer,
		   void (*expired)(struct pvr_timer *timer));
void pvr_timer_exit(struct pvr_timers *timers, struct pvr_timer *timer);

void pvr_timer_set(struct pvr_timers *timers, struct pvr_timer *timer, uint64_t deadline);
void pvr_timer_cancel(struct pvr_timers *timers, struct pvr_timer *timer);
static inline bool pvr_timer_is_set(const struct pvr_timer *timer)
{
	return timer->slot != 0;
}

/* Call expired() of timers whose deadline has passed, at most @budget timers. */
void pvr_timers_run(struct pvr_timers *timers, uint64_t now, unsigned int budget);
static inline uint64_t pvr_timers_next(const struct pvr_timers *timers)
{
	return timers->count ? timers->heap[1]->deadline : UINT64_MAX;
}
/* All timers that are set expire @ns later. */
void pvr_timers_shift(struct pvr_timers *timers, uint64_t ns);
void pvr_timers_exit(struct pvr_timers *timers);

#endif /* PVR_TIMER_H */
