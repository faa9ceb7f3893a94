// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* Timers of an adapter: a binary heap. */
#include "core/timer.h"

#include <errno.h>
#include <stdlib.h>

int pvr_timer_init(struct pvr_timers *timers, struct pvr_timer *timer,
		   void (*expired)(struct pvr_timer *timer))
{
	uint32_t size = timers->size ? timers->size : 32;
	struct pvr_timer **heap;

	*timer = (struct pvr_timer){ .expired = expired };
	if (timers->owners + 2 > timers->size) {
		while (size < timers->owners + 2)
			size *= 2;
		heap = realloc(timers->heap, size * sizeof(*heap));
		if (!heap)
			return -ENOMEM;
		timers->heap = heap;
		timers->size = size;
	}
	timers->owners++;
	return 0;
}

void pvr_timer_exit(struct pvr_timers *timers, struct pvr_timer *timer)
{
	pvr_timer_cancel(timers, timer);
	timers->owners--;
}

static void heap_put(struct pvr_timers *timers, uint32_t slot, struct pvr_timer *timer)
{
	timers->heap[slot] = timer;
	timer->slot = slot;
}

static void heap_up(struct pvr_timers *timers, uint32_t slot, struct pvr_timer *timer)
{
	while (slot > 1 && timers->heap[slot / 2]->deadline > timer->deadline) {
		heap_put(timers, slot, timers->heap[slot / 2]);
		slot /= 2;
	}
	heap_put(timers, slot, timer);
}

static void heap_down(struct pvr_timers *timers, uint32_t slot, struct pvr_timer *timer)
{
	uint32_t child;

	for (; (child = 2 * slot) <= timers->count; slot = child) {
		if (child < timers->count &&
		    timers->heap[child + 1]->deadline < timers->heap[child]->deadline)
			child++;
		if (timers->heap[child]->deadline >= timer->deadline)
			break;
		heap_put(timers, slot, timers->heap[child]);
	}
	heap_put(timers, slot, timer);
}

void pvr_timer_cancel(struct pvr_timers *timers, struct pvr_timer *timer)
{
	uint32_t slot = timer->slot;
	struct pvr_timer *last;

	if (!slot)
		return;
	timer->slot = 0;
	last = timers->heap[timers->count--];
	if (last == timer)
		return;
	heap_down(timers, slot, last);
	heap_up(timers, last->slot, last);
}

void pvr_timer_set(struct pvr_timers *timers, struct pvr_timer *timer, uint64_t deadline)
{
	pvr_timer_cancel(timers, timer);
	timer->deadline = pvr_timers_without_pauses(timers, deadline);
	heap_up(timers, ++timers->count, timer);
}

void pvr_timers_run(struct pvr_timers *timers, uint64_t now, unsigned int budget)
{
	struct pvr_timer *timer;

	now = pvr_timers_without_pauses(timers, now);
	while (timers->count && budget--) {
		timer = timers->heap[1];
		if (timer->deadline > now)
			break;
		pvr_timer_cancel(timers, timer);
		timer->expired(timer);
	}
}

void pvr_timers_exit(struct pvr_timers *timers)
{
	free(timers->heap);
	*timers = (struct pvr_timers){ 0 };
}
