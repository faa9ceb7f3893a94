// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* The event loop: epoll, a list of sources to call again, timers. */
#include <errno.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>

#include "base/loop.h"

#define LOOP_BATCH 64

TAILQ_HEAD(source_list, pvr_source);

struct pvr_loop {
	int epoll_fd;
	struct pvr_source wake; /* an eventfd */
	/*
	 * Events of this iteration; pvr_loop_remove() clears data.ptr of events not
	 * dispatched yet.
	 */
	struct epoll_event events[LOOP_BATCH];
	int num_events;
	struct source_list again;
	bool worked;
	LIST_HEAD(timer_list, pvr_loop_timer) timers;
};

static void wake_ready(struct pvr_source *source, uint32_t events)
{
	uint64_t count;

	if (read(source->fd, &count, sizeof(count)) < 0)
		return; /* the counter is at its limit: a wakeup is pending */
}

static bool make_wake(struct pvr_loop *loop)
{
	loop->wake.fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	loop->wake.ready = wake_ready;
	return loop->wake.fd >= 0 && pvr_loop_add(loop, &loop->wake, EPOLLIN) == 0;
}

struct pvr_loop *pvr_loop_create(void)
{
	struct pvr_loop *loop = calloc(1, sizeof(*loop));

	if (!loop)
		return NULL;
	TAILQ_INIT(&loop->again);
	LIST_INIT(&loop->timers);
	loop->wake.fd = -1;
	loop->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	if (loop->epoll_fd >= 0 && make_wake(loop))
		return loop;
	pvr_loop_destroy(loop);
	return NULL;
}

void pvr_loop_wake(struct pvr_loop *loop)
{
	const uint64_t one = 1;
	int saved = errno;

	if (write(loop->wake.fd, &one, sizeof(one)) < 0)
		errno = saved; /* a wakeup is pending */
}

void pvr_loop_destroy(struct pvr_loop *loop)
{
	if (!loop)
		return;
	if (loop->wake.fd >= 0)
		close(loop->wake.fd);
	if (loop->epoll_fd >= 0)
		close(loop->epoll_fd);
	free(loop);
}

uint64_t pvr_loop_now(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * PVR_SEC + (uint64_t)ts.tv_nsec;
}

int pvr_loop_add(struct pvr_loop *loop, struct pvr_source *source, uint32_t events)
{
	struct epoll_event event = { .events = events, .data.ptr = source };

	if (epoll_ctl(loop->epoll_fd, EPOLL_CTL_ADD, source->fd, &event) < 0)
		return -errno;
	source->loop = loop;
	source->events = events;
	return 0;
}

int pvr_loop_modify(struct pvr_source *source, uint32_t events)
{
	struct epoll_event event = { .events = events, .data.ptr = source };

	if (epoll_ctl(source->loop->epoll_fd, EPOLL_CTL_MOD, source->fd, &event) < 0)
		return -errno;
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
	int i;

	if (!loop)
		return;
	epoll_ctl(loop->epoll_fd, EPOLL_CTL_DEL, source->fd, NULL);
	for (i = 0; i < loop->num_events; i++) {
		if (loop->events[i].data.ptr == source)
			loop->events[i].data.ptr = NULL;
	}
	forget_again(source);
	source->loop = NULL;
}

/* The new epoll instance reports what is ready, also to a source that waits for edges. */
int pvr_loop_move(struct pvr_source *source, struct pvr_loop *to)
{
	struct epoll_event event = { .events = source->events, .data.ptr = source };
	bool again = source->again;

	if (!source->loop || source->loop == to)
		return 0;
	if (epoll_ctl(to->epoll_fd, EPOLL_CTL_ADD, source->fd, &event) < 0)
		return -errno;
	pvr_loop_remove(source);
	source->loop = to;
	if (again)
		pvr_loop_again(source);
	return 0;
}

void pvr_loop_again(struct pvr_source *source)
{
	if (source->again)
		return;
	TAILQ_INSERT_TAIL(&source->loop->again, source, link);
	source->again = true;
}

void pvr_loop_worked(struct pvr_loop *loop)
{
	loop->worked = true;
}

bool pvr_loop_has_worked(struct pvr_loop *loop)
{
	bool worked = loop->worked;

	loop->worked = false;
	return worked;
}

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

void pvr_loop_timer_move(struct pvr_loop_timer *timer, struct pvr_loop *to)
{
	if (!timer->loop)
		return;
	LIST_REMOVE(timer, link);
	timer->loop = to;
	LIST_INSERT_HEAD(&to->timers, timer, link);
}

static uint64_t earliest(const struct pvr_loop *loop, uint64_t deadline)
{
	const struct pvr_loop_timer *timer;

	LIST_FOREACH(timer, &loop->timers, link) {
		if (timer->deadline < deadline)
			deadline = timer->deadline;
	}
	return deadline;
}

/* The timeout of epoll_pwait2(); NULL: no timeout. */
static const struct timespec *timeout(const struct pvr_loop *loop, uint64_t deadline,
				      struct timespec *ts)
{
	uint64_t now, left = 0;

	if (TAILQ_EMPTY(&loop->again) && deadline) {
		deadline = earliest(loop, deadline);
		if (deadline == PVR_NEVER)
			return NULL;
		now = pvr_loop_now();
		left = deadline > now ? deadline - now : 0;
	}
	ts->tv_sec = (time_t)(left / PVR_SEC);
	ts->tv_nsec = (long)(left % PVR_SEC);
	return ts;
}

static void call_ready(struct pvr_loop *loop)
{
	struct pvr_source *source;
	int i;

	for (i = 0; i < loop->num_events; i++) {
		source = loop->events[i].data.ptr;
		if (!source)
			continue;
		forget_again(source);
		source->ready(source, loop->events[i].events);
	}
	loop->num_events = 0;
}

/*
 * Calls each source that called pvr_loop_again() before this iteration. New calls wait
 * for the next.
 */
static void call_again(struct pvr_loop *loop)
{
	struct pvr_source *last = TAILQ_LAST(&loop->again, source_list);
	struct pvr_source *source;
	struct pvr_source end = { .again = true };

	if (!last)
		return;
	TAILQ_INSERT_AFTER(&loop->again, last, &end, link);
	while ((source = TAILQ_FIRST(&loop->again)) != &end) {
		forget_again(source);
		source->ready(source, 0);
	}
	TAILQ_REMOVE(&loop->again, &end, link);
}

static struct pvr_loop_timer *first_expired(const struct pvr_loop *loop, uint64_t now)
{
	struct pvr_loop_timer *timer;

	LIST_FOREACH(timer, &loop->timers, link) {
		if (timer->deadline <= now)
			return timer;
	}
	return NULL;
}

static void call_expired(struct pvr_loop *loop)
{
	struct pvr_loop_timer *timer;
	uint64_t now;

	if (LIST_EMPTY(&loop->timers))
		return;
	now = pvr_loop_now();
	while ((timer = first_expired(loop, now))) {
		pvr_loop_timer_disarm(timer);
		timer->expired(timer);
	}
}

bool pvr_loop_wait(struct pvr_loop *loop, uint64_t deadline)
{
	struct timespec ts;
	int n = epoll_pwait2(loop->epoll_fd, loop->events, LOOP_BATCH, timeout(loop, deadline, &ts),
			     NULL);

	loop->num_events = n > 0 ? n : 0;
	return n >= 0;
}

bool pvr_loop_dispatch(struct pvr_loop *loop)
{
	bool any = loop->num_events || !TAILQ_EMPTY(&loop->again);

	call_again(loop);
	call_ready(loop);
	call_expired(loop);
	return any;
}
