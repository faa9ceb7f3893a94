// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* Event loops on the virtual clock, in place of base/loop.c. */
#include "loop.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <sys/epoll.h>

#include "fg_ram.h"

#define SOURCES 4

TAILQ_HEAD(source_list, pvr_source);

struct pvr_loop {
	void *owner;
	struct pvr_source *source[SOURCES]; /* NULL: none */
	bool rung;
	struct source_list again;
	LIST_HEAD(, pvr_loop_timer) timers; /* the one that was armed last is first */
};

static const uint64_t *clock_now;

void sim_loop_set_clock(const uint64_t *now)
{
	clock_now = now;
}

uint64_t pvr_loop_now(void)
{
	return clock_now ? *clock_now : 0;
}

struct pvr_loop *sim_loop_create(void *owner)
{
	struct pvr_loop *loop = calloc(1, sizeof(*loop));

	if (!loop)
		fg_die("no memory for a loop");
	loop->owner = owner;
	TAILQ_INIT(&loop->again);
	LIST_INIT(&loop->timers);
	return loop;
}

struct pvr_loop *pvr_loop_create(void)
{
	return sim_loop_create(NULL);
}

void pvr_loop_destroy(struct pvr_loop *loop)
{
	free(loop);
}

void *sim_loop_owner(const struct pvr_loop *loop)
{
	return loop->owner;
}

/* ------------------------------------------------------------------------- sources */

int pvr_loop_add(struct pvr_loop *loop, struct pvr_source *source, uint32_t events)
{
	unsigned int i;

	for (i = 0; i < SOURCES && loop->source[i]; i++)
		;
	if (i == SOURCES || events != EPOLLIN)
		fg_die("a loop of the simulator has %d descriptors that are read", SOURCES);
	loop->source[i] = source;
	source->loop = loop;
	source->events = events;
	return 0;
}

static void forget_again(struct pvr_source *source)
{
	if (!source->again)
		return;
	TAILQ_REMOVE(&source->loop->again, source, link);
	source->again = false;
}

void pvr_loop_remove(struct pvr_source *source)
{
	struct pvr_loop *loop = source->loop;

	if (!loop)
		return;
	for (unsigned int i = 0; i < SOURCES; i++)
		if (loop->source[i] == source)
			loop->source[i] = NULL;
	forget_again(source);
	source->loop = NULL;
}

void pvr_loop_again(struct pvr_source *source)
{
	if (source->again)
		return;
	TAILQ_INSERT_TAIL(&source->loop->again, source, link);
	source->again = true;
}

void sim_loop_ring(struct pvr_loop *loop)
{
	loop->rung = true;
}

static bool is_readable(const struct pvr_source *source)
{
	struct pollfd fd = { .fd = source->fd, .events = POLLIN };

	return poll(&fd, 1, 0) > 0;
}

static bool call_readable(struct pvr_loop *loop)
{
	bool done = false;

	if (!loop->rung)
		return false;
	loop->rung = false;
	for (unsigned int i = 0; i < SOURCES; i++) {
		struct pvr_source *source = loop->source[i];

		if (!source || !is_readable(source))
			continue;
		forget_again(source);
		source->ready(source, EPOLLIN);
		done = true;
	}
	return done;
}

/* One at a time: hosts run between two calls. */
static bool call_again(struct pvr_loop *loop)
{
	struct pvr_source *source = TAILQ_FIRST(&loop->again);

	if (!source)
		return false;
	forget_again(source);
	source->ready(source, 0);
	return true;
}

/* -------------------------------------------------------------------------- timers */

void pvr_loop_timer_arm(struct pvr_loop *loop, struct pvr_loop_timer *timer, uint64_t after_ns)
{
	pvr_loop_timer_disarm(timer);
	timer->loop = loop;
	timer->deadline = pvr_loop_now() + after_ns;
	LIST_INSERT_HEAD(&loop->timers, timer, link);
}

void pvr_loop_timer_disarm(struct pvr_loop_timer *timer)
{
	if (!timer->loop)
		return;
	LIST_REMOVE(timer, link);
	timer->loop = NULL;
}

/* Of several at the same time the one that was armed first. */
static struct pvr_loop_timer *first_timer(const struct pvr_loop *loop)
{
	struct pvr_loop_timer *timer, *first = NULL;

	LIST_FOREACH(timer, &loop->timers, link)
		if (!first || timer->deadline <= first->deadline)
			first = timer;
	return first;
}

static bool call_expired(struct pvr_loop *loop)
{
	uint64_t now = pvr_loop_now();
	struct pvr_loop_timer *timer;
	bool done = false;

	while ((timer = first_timer(loop)) && timer->deadline <= now) {
		pvr_loop_timer_disarm(timer);
		timer->expired(timer);
		done = true;
	}
	return done;
}

/* ---------------------------------------------------------------------------- steps */

bool sim_loop_step(struct pvr_loop *loop)
{
	bool done = call_again(loop);

	done |= call_readable(loop);
	return call_expired(loop) || done;
}

uint64_t sim_loop_deadline(const struct pvr_loop *loop)
{
	const struct pvr_loop_timer *timer = first_timer(loop);

	if (loop->rung || !TAILQ_EMPTY(&loop->again))
		return pvr_loop_now();
	return timer ? timer->deadline : PVR_NEVER;
}
