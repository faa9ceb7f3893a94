// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* Log lines on their way to the thread that writes them. */
#include <string.h>
#include <time.h>

#include "daemon/log_ring.h"

#define SEC 1000000000ull

bool pvr_log_ring_init(struct pvr_log_ring *ring)
{
	pthread_condattr_t attr;
	bool ok;

	if (pthread_condattr_init(&attr))
		return false;
	ok = !pthread_condattr_setclock(&attr, CLOCK_MONOTONIC) &&
	     !pthread_cond_init(&ring->progress, &attr) && !pthread_cond_init(&ring->news, NULL) &&
	     !pthread_mutex_init(&ring->lock, NULL);
	pthread_condattr_destroy(&attr);
	return ok;
}

/* FNV-1a. Adapters of one value, which are very improbable, share their lines. */
uint32_t pvr_log_ring_source(const char *adapter)
{
	uint32_t hash = 2166136261u;

	while (*adapter)
		hash = (hash ^ (unsigned char)*adapter++) * 16777619u;
	return hash ? hash : 1;
}

static bool has_room(const struct pvr_log_ring *ring, uint32_t source)
{
	unsigned int count = 0, i;

	if (!source)
		return ring->num < PVR_LOG_LINES;
	if (ring->num == PVR_LOG_LINES ||
	    ring->num_of_adapters == PVR_LOG_LINES - PVR_LOG_DAEMON_LINES)
		return false;
	if (ring->num_of_adapters < PVR_LOG_ADAPTER_LINES)
		return true;
	for (i = 0; i < PVR_LOG_LINES; i++)
		count += ring->sources[i] == source;
	return count < PVR_LOG_ADAPTER_LINES;
}

static void append(struct pvr_log_ring *ring, uint32_t source, const char *text, size_t len)
{
	unsigned int i = (ring->head + ring->num++) % PVR_LOG_LINES;
	struct pvr_log_slot *slot = &ring->slots[i];

	ring->sources[i] = source;
	ring->num_of_adapters += source != 0;
	slot->number = ring->put;
	slot->dropped = ring->dropped;
	slot->len = len;
	memcpy(slot->text, text, len);
	ring->dropped = 0;
}

bool pvr_log_ring_put(struct pvr_log_ring *ring, uint32_t source, const char *text, size_t len)
{
	bool fits;

	if (len > PVR_LOG_LINE)
		len = PVR_LOG_LINE;
	pthread_mutex_lock(&ring->lock);
	ring->put++;
	fits = has_room(ring, source);
	if (fits)
		append(ring, source, text, len);
	else
		ring->dropped++;
	pthread_mutex_unlock(&ring->lock);
	/*
	 * No system call under the lock: a thread that is stopped in one stops no other thread that
	 * logs. After a dropped line the ring is not empty: the reader does not wait for a signal.
	 */
	if (fits)
		pthread_cond_signal(&ring->news);
	return fits;
}

static void take_first(struct pvr_log_ring *ring, struct pvr_log_slot *slot)
{
	const struct pvr_log_slot *first = &ring->slots[ring->head];

	slot->dropped = first->dropped;
	slot->len = first->len;
	memcpy(slot->text, first->text, first->len);
	ring->taken = first->number;
	ring->num_of_adapters -= ring->sources[ring->head] != 0;
	ring->sources[ring->head] = 0;
	ring->head = (ring->head + 1) % PVR_LOG_LINES;
	ring->num--;
}

/* The caller has written the line that it has taken before. */
static void finish_last(struct pvr_log_ring *ring)
{
	if (ring->done == ring->taken)
		return;
	ring->done = ring->taken;
	ring->stalled = false;
	pthread_cond_broadcast(&ring->progress);
}

bool pvr_log_ring_take(struct pvr_log_ring *ring, struct pvr_log_slot *slot)
{
	bool found = true;

	pthread_mutex_lock(&ring->lock);
	finish_last(ring);
	while (!ring->num && !ring->dropped && !ring->end)
		pthread_cond_wait(&ring->news, &ring->lock);
	slot->len = 0;
	if (ring->num) {
		take_first(ring, slot);
	} else {
		slot->dropped = ring->dropped;
		found = ring->dropped;
		ring->dropped = 0;
		ring->taken = ring->put;
	}
	pthread_mutex_unlock(&ring->lock);
	return found;
}

static struct timespec deadline(uint64_t timeout_ns)
{
	struct timespec until;
	uint64_t nsec;

	clock_gettime(CLOCK_MONOTONIC, &until);
	nsec = (uint64_t)until.tv_nsec + timeout_ns;
	until.tv_sec += (time_t)(nsec / SEC);
	until.tv_nsec = (long)(nsec % SEC);
	return until;
}

bool pvr_log_ring_flush(struct pvr_log_ring *ring, uint64_t timeout_ns)
{
	struct timespec until = deadline(timeout_ns);
	uint64_t target;
	bool flushed;

	pthread_mutex_lock(&ring->lock);
	target = ring->put;
	while (ring->done < target && !ring->stalled) {
		if (pthread_cond_timedwait(&ring->progress, &ring->lock, &until))
			ring->stalled = ring->done < target;
	}
	flushed = ring->done >= target;
	pthread_mutex_unlock(&ring->lock);
	return flushed;
}

void pvr_log_ring_end(struct pvr_log_ring *ring)
{
	pthread_mutex_lock(&ring->lock);
	ring->end = true;
	ring->stalled = false;
	pthread_cond_signal(&ring->news);
	pthread_mutex_unlock(&ring->lock);
}
