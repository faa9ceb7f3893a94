/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * The event loop: file descriptors and timers of one thread.
 *
 * DOC: fairness
 *
 * A source's ready() does a bounded amount of work. When more is left it calls
 * pvr_loop_again() and is called in the next turn, after every other source had
 * its own. So edge-triggered sources need not be drained in one go, and a client
 * that always has something to say delays the others by one batch.
 *
 * Context: everything but pvr_loop_wake() is called from the loop's thread, or while that
 * does not run, ready() and expired() included. They may remove and free any source or
 * timer, their own too.
 */
#ifndef PVR_BASE_LOOP_H
#define PVR_BASE_LOOP_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>

#define PVR_NEVER UINT64_MAX
#define PVR_MSEC 1000000ull
#define PVR_SEC 1000000000ull

struct pvr_loop;

struct pvr_source {
	int fd;
	/* @events: EPOLL*; 0 when called because of pvr_loop_again() */
	void (*ready)(struct pvr_source *source, uint32_t events);
	/* private */
	struct pvr_loop *loop;
	bool again;
	TAILQ_ENTRY(pvr_source) link;
};

struct pvr_loop_timer {
	void (*expired)(struct pvr_loop_timer *timer);
	/* private */
	struct pvr_loop *loop;
	uint64_t deadline;
	LIST_ENTRY(pvr_loop_timer) link;
};

/* NULL if out of memory or file descriptors. */
struct pvr_loop *pvr_loop_create(void);
void pvr_loop_destroy(struct pvr_loop *loop);

/* Ends pvr_loop_wait(), now or the next time. From any thread, and from signal handlers. */
void pvr_loop_wake(struct pvr_loop *loop);

/* Monotonic nanoseconds. */
uint64_t pvr_loop_now(void);

/* Watch @source->fd for EPOLL* @events. Return: 0 or -errno. */
int pvr_loop_add(struct pvr_loop *loop, struct pvr_source *source, uint32_t events);
int pvr_loop_modify(struct pvr_source *source, uint32_t events);
/* Does not close the descriptor. A source that was never added is allowed. */
void pvr_loop_remove(struct pvr_source *source);
/* Call ready() again in the next turn, whatever the descriptor says. */
void pvr_loop_again(struct pvr_source *source);
/* What ready() has done is worth polling for: more of it may be on its way. */
void pvr_loop_worked(struct pvr_loop *loop);
/* Has it been said since the last time it was asked? */
bool pvr_loop_has_worked(struct pvr_loop *loop);

/* Expires once. Arming an armed timer moves it. */
void pvr_loop_timer_arm(struct pvr_loop *loop, struct pvr_loop_timer *timer, uint64_t after_ns);
void pvr_loop_timer_disarm(struct pvr_loop_timer *timer);

/*
 * Wait until a descriptor is ready, a timer expires or @deadline has passed; not at
 * all when a source asked to be called again. Return: false if a signal came first.
 */
bool pvr_loop_wait(struct pvr_loop *loop, uint64_t deadline);
/* Call whoever is due, each once. Return: true if a source was. */
bool pvr_loop_dispatch(struct pvr_loop *loop);

#endif /* PVR_BASE_LOOP_H */
