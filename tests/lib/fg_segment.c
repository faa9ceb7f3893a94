// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* An Ethernet in memory. */
#include "fg_segment.h"

#include <stdlib.h>
#include <string.h>
#include <sys/queue.h>

#include "fg_ram.h"
#include "roce/gso.h"

#define FRAME_MAX 9216
#define BATCH 16
#define PORT_MTU 4200
#define GHOSTS 256

struct frame {
	TAILQ_ENTRY(frame) link;
	uint64_t due;
	size_t bytes;
	uint16_t segment;
	uint8_t data[];
};

TAILQ_HEAD(frames, frame);

struct node {
	struct fg_segment *segment;
	unsigned int number;
	struct fg_host *host;
	struct pvr_port *port;
	struct frames to; /* on their way to it */
	unsigned int count;
	uint64_t sent, merged;
	uint8_t last[FRAME_MAX];
	size_t last_bytes;
};

/* A frame that was sent once. */
struct ghost {
	struct node *to;
	uint8_t data[FRAME_MAX];
	size_t bytes;
};

struct fg_segment {
	struct fg_segment_rules rules;
	uint32_t random;
	unsigned int burst; /* frames that are still to be lost */
	struct ghost ghosts[GHOSTS];
	uint64_t sent;
	struct node node[FG_SEGMENT_HOSTS];
};

/* ----------------------------------------------------------------------------- the rules */

static uint32_t next_random(struct fg_segment *segment)
{
	segment->random = segment->random * 1664525u + 1013904223u + segment->rules.seed;
	return segment->random >> 8;
}

static bool hit(struct fg_segment *segment, unsigned int of_1000)
{
	return of_1000 && next_random(segment) % 1000 < of_1000;
}

static uint64_t delay_of(struct fg_segment *segment)
{
	uint64_t jitter = segment->rules.jitter;

	return segment->rules.delay + (jitter ? next_random(segment) % jitter : 0);
}

static void insert(struct node *to, struct frame *frame)
{
	struct frame *before = TAILQ_LAST(&to->to, frames);

	while (before && before->due > frame->due)
		before = TAILQ_PREV(before, frames, link);
	if (before)
		TAILQ_INSERT_AFTER(&to->to, before, frame, link);
	else
		TAILQ_INSERT_HEAD(&to->to, frame, link);
}

static void put(struct node *to, const uint8_t *data, size_t bytes, uint16_t segment, bool first)
{
	struct frame *frame = malloc(sizeof(*frame) + bytes);

	if (!frame)
		fg_die("no memory for a frame");
	frame->due = to->host->now + delay_of(to->segment);
	frame->bytes = bytes;
	frame->segment = segment;
	memcpy(frame->data, data, bytes);
	if (first && !TAILQ_EMPTY(&to->to))
		frame->due = TAILQ_FIRST(&to->to)->due;
	if (first)
		TAILQ_INSERT_HEAD(&to->to, frame, link);
	else
		insert(to, frame);
	to->count++;
}

static void remember(struct node *to, const uint8_t *data, size_t bytes)
{
	struct ghost *ghost = &to->segment->ghosts[to->segment->sent++ % GHOSTS];

	ghost->to = to;
	ghost->bytes = bytes;
	memcpy(ghost->data, data, bytes);
}

static void haunt(struct fg_segment *segment)
{
	const struct ghost *ghost = &segment->ghosts[next_random(segment) % GHOSTS];

	if (ghost->to)
		put(ghost->to, ghost->data, ghost->bytes, 0, false);
}

void fg_segment_end_ghosts(struct fg_segment *segment)
{
	memset(segment->ghosts, 0, sizeof(segment->ghosts));
}

static bool is_lost(struct fg_segment *segment)
{
	if (segment->rules.cut)
		return true;
	if (segment->burst) {
		segment->burst--;
		return true;
	}
	if (!hit(segment, segment->rules.lose))
		return false;
	segment->burst = segment->rules.burst;
	return true;
}

/* A packet on its way, as the rules want it. */
static void send_packet(struct node *from, const uint8_t *data, size_t bytes)
{
	struct fg_segment *segment = from->segment;
	struct node *to = &segment->node[!from->number];
	uint8_t copy[FRAME_MAX];

	if (bytes > FRAME_MAX)
		fg_die("a frame of %zu bytes", bytes);
	from->sent++;
	memcpy(from->last, data, bytes);
	from->last_bytes = bytes;
	if (segment->rules.ghost)
		remember(to, data, bytes);
	if (hit(segment, segment->rules.ghost))
		haunt(segment);
	if (is_lost(segment))
		return;
	memcpy(copy, data, bytes);
	if (hit(segment, segment->rules.damage))
		copy[next_random(segment) % bytes] ^= (uint8_t)(1u << next_random(segment) % 8);
	put(to, copy, bytes, 0, hit(segment, segment->rules.swap));
	if (hit(segment, segment->rules.repeat))
		put(to, copy, bytes, 0, false);
}

/* As Linux cuts it: checksums of UDP are those of the packets. */
static void send_cut(struct node *from, const struct pvr_port_frame *frame)
{
	struct pvr_roce_cut cut;
	uint8_t *copy = malloc(frame->bytes), *packet;
	size_t bytes;

	if (!copy)
		fg_die("no memory for a frame");
	memcpy(copy, frame->data, frame->bytes);
	if (!pvr_roce_cut_begin(&cut, copy, frame->bytes, frame->segment))
		fg_die("a frame of several packets has no UDP header");
	if (cut.headers != frame->headers)
		fg_die("%u bytes of headers instead of %zu", frame->headers, cut.headers);
	while ((packet = pvr_roce_cut_next(&cut, &bytes)))
		send_packet(from, packet, bytes);
	free(copy);
}

/* A frame of several packets, as the rules want it. */
static void send_whole(struct node *from, const struct pvr_port_frame *frame)
{
	struct fg_segment *segment = from->segment;
	struct node *to = &segment->node[!from->number];
	uint8_t *copy;

	if (is_lost(segment))
		return;
	copy = malloc(frame->bytes);
	if (!copy)
		fg_die("no memory for a frame");
	memcpy(copy, frame->data, frame->bytes);
	if (hit(segment, segment->rules.damage))
		copy[next_random(segment) % frame->bytes] ^=
			(uint8_t)(1u << next_random(segment) % 8);
	put(to, copy, frame->bytes, frame->segment, hit(segment, segment->rules.swap));
	if (hit(segment, segment->rules.repeat))
		put(to, copy, frame->bytes, frame->segment, false);
	free(copy);
}

static unsigned int send_frames(void *opaque, const struct pvr_port_frame *frames,
				unsigned int count)
{
	struct node *from = opaque, *to = &from->segment->node[!from->number];
	const struct fg_segment_rules *rules = &from->segment->rules;

	for (unsigned int i = 0; i < count; i++) {
		if (rules->room && to->count >= rules->room)
			return i;
		from->merged += frames[i].segment != 0;
		if (!frames[i].segment)
			send_packet(from, frames[i].data, frames[i].bytes);
		else if (!rules->whole)
			send_cut(from, &frames[i]);
		else
			send_whole(from, &frames[i]);
	}
	return count;
}

static const struct pvr_port_ops port_ops = { .send = send_frames };

/* ------------------------------------------------------------------------------ delivery */

static unsigned int take(struct node *node, struct frame *frames[BATCH])
{
	unsigned int n = 0;

	while (n < BATCH && !TAILQ_EMPTY(&node->to) &&
	       TAILQ_FIRST(&node->to)->due <= node->host->now) {
		frames[n] = TAILQ_FIRST(&node->to);
		TAILQ_REMOVE(&node->to, frames[n], link);
		node->count--;
		n++;
	}
	return n;
}

static bool deliver(struct node *node)
{
	struct frame *frames[BATCH];
	struct pvr_port_frame input[BATCH];
	unsigned int n = take(node, frames), done;

	for (unsigned int i = 0; i < n; i++)
		input[i] = (struct pvr_port_frame){ .data = frames[i]->data,
						    .bytes = (uint32_t)frames[i]->bytes,
						    .segment = frames[i]->segment };
	done = pvr_port_input(node->port, input, n);
	while (n--) {
		if (n < done) {
			free(frames[n]);
			continue;
		}
		TAILQ_INSERT_HEAD(&node->to, frames[n], link);
		node->count++;
	}
	return done;
}

static bool step(void *opaque)
{
	struct fg_segment *segment = opaque;
	bool done = false;

	for (unsigned int i = 0; i < FG_SEGMENT_HOSTS; i++)
		done |= fg_host_step(segment->node[i].host);
	for (unsigned int i = 0; i < FG_SEGMENT_HOSTS; i++)
		done |= deliver(&segment->node[i]);
	return done;
}

static uint64_t deadline(void *opaque)
{
	struct fg_segment *segment = opaque;
	uint64_t first = UINT64_MAX;

	for (unsigned int i = 0; i < FG_SEGMENT_HOSTS; i++) {
		struct node *node = &segment->node[i];

		first = fg_sooner(first, fg_host_deadline(node->host));
		if (!TAILQ_EMPTY(&node->to))
			first = fg_sooner(first, TAILQ_FIRST(&node->to)->due);
	}
	return first;
}

static void set_clock(void *opaque, uint64_t now)
{
	struct fg_segment *segment = opaque;

	for (unsigned int i = 0; i < FG_SEGMENT_HOSTS; i++)
		segment->node[i].host->now = now;
}

static void tell(void *opaque)
{
	(void)opaque;
}

static const struct fg_neighbours neighbours = {
	.step = step,
	.deadline = deadline,
	.set_clock = set_clock,
	.tell = tell,
};

/* -------------------------------------------------------------------------------- a life */

static void node_make(struct fg_segment *segment, unsigned int number)
{
	struct node *node = &segment->node[number];

	node->segment = segment;
	node->number = number;
	TAILQ_INIT(&node->to);
	node->host = fg_host_create();
	node->host->neighbours = &neighbours;
	node->host->neighbours_opaque = segment;
	node->port = pvr_port_create(node->host->engine, "segment", PORT_MTU, &port_ops, node);
	if (!node->port)
		fg_die("no memory for a port");
	node->host->port = node->port;
}

struct fg_segment *fg_segment_create(void)
{
	struct fg_segment *segment = calloc(1, sizeof(*segment));

	if (!segment)
		fg_die("no memory for a segment");
	for (unsigned int i = 0; i < FG_SEGMENT_HOSTS; i++)
		node_make(segment, i);
	return segment;
}

void fg_segment_destroy(struct fg_segment *segment)
{
	struct frame *frame;

	for (unsigned int i = 0; i < FG_SEGMENT_HOSTS; i++) {
		struct node *node = &segment->node[i];

		fg_host_destroy(node->host);
		pvr_port_destroy(node->port);
		while ((frame = TAILQ_FIRST(&node->to))) {
			TAILQ_REMOVE(&node->to, frame, link);
			free(frame);
		}
	}
	free(segment);
}

struct fg_host *fg_segment_host(struct fg_segment *segment, unsigned int host)
{
	return segment->node[host].host;
}

struct fg_segment_rules *fg_segment_rules(struct fg_segment *segment)
{
	return &segment->rules;
}

bool fg_segment_deliver(struct fg_segment *segment, unsigned int host)
{
	return deliver(&segment->node[host]);
}

void fg_segment_inject(struct fg_segment *segment, unsigned int host, const uint8_t *frame,
		       size_t bytes)
{
	put(&segment->node[host], frame, bytes, 0, false);
}

void fg_segment_inject_whole(struct fg_segment *segment, unsigned int host, const uint8_t *frame,
			     size_t bytes, uint16_t segment_bytes)
{
	put(&segment->node[host], frame, bytes, segment_bytes, false);
}

const uint8_t *fg_segment_last(const struct fg_segment *segment, unsigned int host, size_t *bytes)
{
	*bytes = segment->node[host].last_bytes;
	return *bytes ? segment->node[host].last : NULL;
}

uint64_t fg_segment_sent(const struct fg_segment *segment, unsigned int host)
{
	return segment->node[host].sent;
}

struct pvr_port_stats fg_segment_stats(struct fg_segment *segment, unsigned int host)
{
	struct pvr_port_stats stats;

	pvr_port_get_stats(segment->node[host].port, &stats);
	return stats;
}

void fg_segment_set_gso(struct fg_segment *segment, bool on)
{
	for (unsigned int i = 0; i < FG_SEGMENT_HOSTS; i++)
		pvr_port_set_gso(segment->node[i].port, on);
}

uint64_t fg_segment_merged(const struct fg_segment *segment, unsigned int host)
{
	return segment->node[host].merged;
}
