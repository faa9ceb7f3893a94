/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/* Timers of an adapter: a heap of deadlines. Setting a timer never allocates. */
#ifndef PVR_TIMER_H
#define PVR_TIMER_H

#include <stdbool.h>
#include <stdint.h>

struct pvr_timer {
	uint64_t deadline; /* ns without pauses, see pvr_timer_deadline() */
	uint32_t slot; /* place in the heap, from 1; 0: not set */
	void (*expired)(struct pvr_timer *timer);
};

struct pvr_timers {
	struct pvr_timer **heap; /* from 1 */
	uint32_t count, size;
	uint32_t owners; /* timers that exist, set or not */
	uint64_t paused; /* ns; the sum of all pauses, see pvr_timers_pause() */
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
/* Times without pauses, for members that are compared with timers. */
static inline uint64_t pvr_timers_without_pauses(const struct pvr_timers *timers, uint64_t time)
{
	return time - timers->paused;
}
static inline uint64_t pvr_timers_with_pauses(const struct pvr_timers *timers, uint64_t time)
{
	return time + timers->paused;
}
static inline uint64_t pvr_timer_deadline(const struct pvr_timers *timers,
					  const struct pvr_timer *timer)
{
	return pvr_timers_with_pauses(timers, timer->deadline);
}

/* Call expired() of timers whose deadline has passed, at most @budget timers. */
void pvr_timers_run(struct pvr_timers *timers, uint64_t now, unsigned int budget);
static inline uint64_t pvr_timers_next(const struct pvr_timers *timers)
{
	return timers->count ? pvr_timer_deadline(timers, timers->heap[1]) : UINT64_MAX;
}
/* The timers have stood still: all that are set expire @ns later. Takes a constant time. */
static inline void pvr_timers_pause(struct pvr_timers *timers, uint64_t ns)
{
	timers->paused += ns;
}
void pvr_timers_exit(struct pvr_timers *timers);

#endif /* PVR_TIMER_H */
