/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * Log lines on their way to the thread that writes them. Memory is fixed. Any thread puts lines and
 * never waits for the reader; one thread takes them. Lines that find no space are counted.
 */
#ifndef PVR_DAEMON_LOG_RING_H
#define PVR_DAEMON_LOG_RING_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define PVR_LOG_LINE 1024
#define PVR_LOG_LINES 256

struct pvr_log_ring {
	pthread_mutex_t lock; /* held for a copy of one line */
	pthread_cond_t news; /* a line, or the end */
	unsigned int head, num;
	uint64_t dropped; /* since the last line that found space */
	bool end;
	struct pvr_log_slot {
		uint64_t dropped; /* before this line */
		size_t len;
		char text[PVR_LOG_LINE];
	} slots[PVR_LOG_LINES];
};

#define PVR_LOG_RING_INIT                                                            \
	{                                                                            \
		.lock = PTHREAD_MUTEX_INITIALIZER, .news = PTHREAD_COND_INITIALIZER, \
	}

/* Longer lines are cut to PVR_LOG_LINE bytes. */
void pvr_log_ring_put(struct pvr_log_ring *ring, const char *text, size_t len);

/*
 * Waits for a line. A slot with len 0 has a number of dropped lines only.
 * Return: false after the end, when the ring is empty.
 */
bool pvr_log_ring_take(struct pvr_log_ring *ring, struct pvr_log_slot *slot);

void pvr_log_ring_end(struct pvr_log_ring *ring);

#endif /* PVR_DAEMON_LOG_RING_H */
