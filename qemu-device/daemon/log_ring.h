/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * Log lines on their way to the thread that writes them. Memory is fixed. Any thread puts lines and
 * never waits for the reader; one thread takes them. Lines that find no space are counted.
 *
 * One adapter has PVR_LOG_ADAPTER_LINES lines in the ring at most, and all adapters together leave
 * PVR_LOG_DAEMON_LINES to the daemon itself. So lines of one VM displace only lines of that VM.
 */
#ifndef PVR_DAEMON_LOG_RING_H
#define PVR_DAEMON_LOG_RING_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define PVR_LOG_LINE 1024
#define PVR_LOG_LINES 1024
#define PVR_LOG_ADAPTER_LINES 128
#define PVR_LOG_DAEMON_LINES 128

struct pvr_log_ring {
	pthread_mutex_t lock; /* held for a copy of one line */
	pthread_cond_t news; /* a line, or the end */
	pthread_cond_t progress; /* done has increased; CLOCK_MONOTONIC */
	unsigned int head, num, num_of_adapters;
	uint64_t put; /* lines so far, dropped ones included */
	uint64_t done; /* of these: written, or reported as dropped */
	uint64_t taken; /* done after the next pvr_log_ring_take() */
	uint64_t dropped; /* since the last line that found space */
	bool end, stalled;
	uint32_t sources[PVR_LOG_LINES]; /* 0: the daemon, or a free slot */
	struct pvr_log_slot {
		uint64_t number; /* put, after this line */
		uint64_t dropped; /* before this line */
		size_t len;
		char text[PVR_LOG_LINE];
	} slots[PVR_LOG_LINES];
};

/* @ring: zeros. Return: false if there are no resources. */
bool pvr_log_ring_init(struct pvr_log_ring *ring);

/* Return: the source of an adapter's lines. */
uint32_t pvr_log_ring_source(const char *adapter);

/*
 * Longer lines are cut to PVR_LOG_LINE bytes.
 * @source: of pvr_log_ring_source(); 0: the daemon
 * Return: false if there was no space: the line is dropped.
 */
bool pvr_log_ring_put(struct pvr_log_ring *ring, uint32_t source, const char *text, size_t len);

/*
 * Waits for a line. The previous one is written. A slot with len 0 has a number of dropped lines
 * only.
 * Return: false after the end, when the ring is empty.
 */
bool pvr_log_ring_take(struct pvr_log_ring *ring, struct pvr_log_slot *slot);

/*
 * Waits until all lines that are in the ring now are written, for @timeout_ns at most. After a
 * timeout it does not wait until one more line is written: a stuck writer costs one timeout only.
 * Return: true if all lines are written.
 */
bool pvr_log_ring_flush(struct pvr_log_ring *ring, uint64_t timeout_ns);

/* The next pvr_log_ring_flush() waits in any case. */
void pvr_log_ring_end(struct pvr_log_ring *ring);

#endif /* PVR_DAEMON_LOG_RING_H */
