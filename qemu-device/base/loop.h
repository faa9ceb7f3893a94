/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * The event loop: file descriptors and timers of one thread.
 *
 * DOC: fairness
 *
 * ready() of a source does a bounded amount of work. If more work remains, ready()
 * calls pvr_loop_again(), and the loop calls it in the next iteration, after all other sources.
 * So edge-triggered sources need not be drained at once, and a client that always has
 * data delays the others by one batch.
 *
 * Context: pvr_loop_wake() can be called from any thread. All other functions are called
 * from the loop's thread, also from ready() and expired(), or while that thread does not
 * run. A callback may remove and free any source or timer, its own included.
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
	/* @events: EPOLL*; 0: called because of pvr_loop_again() */
	void (*ready)(struct pvr_source *source, uint32_t events);
	/* private */
	struct pvr_loop *loop;
	uint32_t events;
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

/* Return: the loop, or NULL without memory or file descriptors. */
struct pvr_loop *pvr_loop_create(void);
void pvr_loop_destroy(struct pvr_loop *loop);

/* Ends the current or the next pvr_loop_wait(). Any thread, also a signal handler. */
void pvr_loop_wake(struct pvr_loop *loop);

/* Return: CLOCK_MONOTONIC in ns. */
uint64_t pvr_loop_now(void);

/* Watches @source->fd for EPOLL* @events. Return: 0 or -errno. */
int pvr_loop_add(struct pvr_loop *loop, struct pvr_source *source, uint32_t events);
int pvr_loop_modify(struct pvr_source *source, uint32_t events);
/*
 * Stops watching; does not close the descriptor. @source may be one that was never added.
 */
void pvr_loop_remove(struct pvr_source *source);
/*
 * Let the loop @to watch the source, which may be one that was never added, or call the timer,
 * at the same time. Neither loop's thread runs, and no event is lost. Return: 0, or -errno: the
 * source is where it was.
 */
int pvr_loop_move(struct pvr_source *source, struct pvr_loop *to);
void pvr_loop_timer_move(struct pvr_loop_timer *timer, struct pvr_loop *to);
/* Calls ready() again in the next iteration, also without an event. */
void pvr_loop_again(struct pvr_source *source);
/* ready() has moved data; polling for more is likely to pay off. */
void pvr_loop_worked(struct pvr_loop *loop);
/* Return: whether pvr_loop_worked() was called since the last call of this function. */
bool pvr_loop_has_worked(struct pvr_loop *loop);

/* Arms the timer to expire once. An armed timer is rearmed. */
void pvr_loop_timer_arm(struct pvr_loop *loop, struct pvr_loop_timer *timer, uint64_t after_ns);
void pvr_loop_timer_disarm(struct pvr_loop_timer *timer);

/*
 * Waits until a descriptor is ready, a timer expires or @deadline passes. Does not wait
 * after pvr_loop_again(). Return: false if a signal interrupted it.
 */
bool pvr_loop_wait(struct pvr_loop *loop, uint64_t deadline);
/*
 * Calls each ready source and each expired timer once. Return: true if a source was
 * ready.
 */
bool pvr_loop_dispatch(struct pvr_loop *loop);

#endif /* PVR_BASE_LOOP_H */
