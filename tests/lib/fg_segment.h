/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * An Ethernet in memory: two engines that reach each other by RoCE frames only. One thread
 * runs all of it: fg_run() of one host runs both, and their clocks go together.
 *
 * Tests can make it lose, repeat, delay, reorder and damage frames. The choice is pseudo-random from a
 * seed, so a failure repeats.
 */
#ifndef FG_SEGMENT_H
#define FG_SEGMENT_H

#include "fg_host.h"
#include "port.h"

#define FG_SEGMENT_HOSTS 2

/* Of 1,000 frames so many are treated. */
struct fg_segment_rules {
	uint32_t seed;
	unsigned int lose, repeat, swap, damage;
	unsigned int ghost; /* one of the last 256 frames comes again, also an old one */
	unsigned int burst; /* frames that are lost with a lost one */
	unsigned int room; /* frames on their way at most; 0: no limit */
	uint64_t delay; /* ns */
	uint64_t jitter; /* ns at most, in addition; frames overtake each other */
	bool cut; /* all are lost */
	bool whole; /* frames of several packets arrive as they are, else cut */
};

struct fg_segment;

struct fg_segment *fg_segment_create(void);
void fg_segment_destroy(struct fg_segment *segment);
struct fg_host *fg_segment_host(struct fg_segment *segment, unsigned int host);
struct fg_segment_rules *fg_segment_rules(struct fg_segment *segment);

/* The frames that are due at @host. Return: whether it took one. */
bool fg_segment_deliver(struct fg_segment *segment, unsigned int host);

/* A frame that none of the engines has sent arrives at @host. */
void fg_segment_inject(struct fg_segment *segment, unsigned int host, const uint8_t *frame,
		       size_t bytes);
/* The same with one of several packets, of @segment_bytes of UDP payload each. */
void fg_segment_inject_whole(struct fg_segment *segment, unsigned int host, const uint8_t *frame,
			     size_t bytes, uint16_t segment_bytes);
/* The last frame that @host has sent, of *bytes bytes; NULL: none. */
const uint8_t *fg_segment_last(const struct fg_segment *segment, unsigned int host, size_t *bytes);
/* Frames that @host has sent so far, whether they were lost or not. */
uint64_t fg_segment_sent(const struct fg_segment *segment, unsigned int host);
/* No frame that was sent until now comes again: longer than that they do not live. */
void fg_segment_end_ghosts(struct fg_segment *segment);
/* Whether the engines may send frames of several packets; not at first. */
void fg_segment_set_gso(struct fg_segment *segment, bool on);
/* Those that @host has sent so far. */
uint64_t fg_segment_merged(const struct fg_segment *segment, unsigned int host);
struct pvr_port_stats fg_segment_stats(struct fg_segment *segment, unsigned int host);

#endif /* FG_SEGMENT_H */
