// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* The main loop of a worker: engine, sockets, sleep. */
#include <sched.h>
#include <sys/resource.h>
#include <time.h>

#include "daemon/worker_loop.h"

/* A sleeping worker polls doorbells in memory at this interval. */
#define UAR_POLL_SLEEP_NS 50000ull

static void measure(struct pvr_worker_loop *wl, uint64_t now)
{
	struct rusage usage;
	struct timespec cpu;

	if (!pvr_poll_needs_usage(&wl->policy, now))
		return;
	if (getrusage(RUSAGE_THREAD, &usage) < 0 ||
	    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &cpu) < 0)
		return;
	pvr_poll_usage(&wl->policy, now, (uint64_t)cpu.tv_sec * PVR_SEC + (uint64_t)cpu.tv_nsec,
		       (uint64_t)usage.ru_nivcsw);
}

/*
 * Waits for events until @deadline. The stall guard's signal during the wait means that
 * the thread is idle: the guard stops. It runs again before the first event is handled, so
 * it is off only during a wait.
 */
static void wait_guarded(struct pvr_worker_loop *wl, uint64_t deadline)
{
	if (pvr_loop_wait(wl->loop, deadline))
		return;
	pvr_stall_guard_idle(&wl->guard);
	pvr_loop_wait(wl->loop, deadline);
	pvr_stall_guard_busy(&wl->guard);
}

/* Polls the sockets or sleeps until @deadline. */
static void poll_sockets(struct pvr_worker_loop *wl, uint64_t deadline)
{
	uint64_t begin;
	bool events;

	wl->check(wl->opaque);
	pvr_heartbeat_sleep(&wl->heartbeat, deadline);
	wait_guarded(wl, deadline);
	pvr_heartbeat_sleep(&wl->heartbeat, 0);
	begin = pvr_loop_now();
	events = pvr_loop_dispatch(wl->loop);
	wl->now = pvr_loop_now();
	if (events)
		pvr_turns_add(&wl->turns, begin, wl->now);
	pvr_poll_sockets_done(&wl->policy, wl->now, events);
	if (pvr_loop_has_worked(wl->loop))
		pvr_poll_moved(&wl->policy, wl->now);
}

/* The thread that waits for this CPU may be the guest that the worker waits for. */
static void yield(struct pvr_worker_loop *wl)
{
	uint64_t from = pvr_loop_now();

	sched_yield();
	pvr_poll_yielded(&wl->policy, from, pvr_loop_now());
}

static void poll_sockets_now(struct pvr_worker_loop *wl, bool worked)
{
	measure(wl, wl->now);
	if (!worked || pvr_poll_is_shared(&wl->policy))
		yield(wl);
	poll_sockets(wl, 0);
}

static uint64_t sleep_until(struct pvr_worker_loop *wl, uint64_t now, bool uar_mapped)
{
	uint64_t deadline = pvr_engine_deadline(wl->engine, wl->worker);

	if (uar_mapped && now + UAR_POLL_SLEEP_NS < deadline)
		return now + UAR_POLL_SLEEP_NS;
	return deadline;
}

static bool rest(struct pvr_worker_loop *wl)
{
	if (!wl->polled)
		return true;
	wl->polled = false;
	return pvr_engine_enable_doorbells(wl->engine, wl->worker);
}

static void sleep_now(struct pvr_worker_loop *wl, bool uar_mapped)
{
	uint64_t now = wl->now;

	measure(wl, now);
	if (!rest(wl))
		return;
	poll_sockets(wl, sleep_until(wl, now, uar_mapped));
	pvr_poll_slept(&wl->policy, now, wl->now);
}

/* Return: whether the engine had work, and may have more. */
static bool run(struct pvr_worker_loop *wl, bool polls)
{
	uint64_t quanta = wl->quanta;
	struct pvr_worker_stats stats;
	bool more = false;

	if (polls)
		more = pvr_engine_poll(wl->engine, wl->worker);
	wl->polled |= polls;
	more |= pvr_engine_run(wl->engine, wl->worker);
	pvr_engine_worker_stats(wl->engine, wl->worker, &stats);
	wl->quanta = stats.quanta;
	return more || stats.quanta != quanta;
}

bool pvr_worker_loop_init(struct pvr_worker_loop *wl, struct pvr_error *err)
{
	if (!pvr_stall_guard_init(&wl->guard, err))
		return false;
	pvr_stall_guard_busy(&wl->guard);
	return true;
}

void pvr_worker_loop_exit(struct pvr_worker_loop *wl)
{
	pvr_stall_guard_exit(&wl->guard);
}

void pvr_worker_loop_round(struct pvr_worker_loop *wl)
{
	struct pvr_poll_policy *policy = &wl->policy;
	bool uar_mapped = pvr_engine_is_uar_mapped(wl->engine, wl->worker);
	bool worked = run(wl, uar_mapped || pvr_poll_is_on(policy, wl->now));
	uint64_t begin = wl->now;

	pvr_heartbeat_round(&wl->heartbeat);
	wl->now = pvr_loop_now();
	if (worked)
		pvr_turns_add(&wl->turns, begin, wl->now);
	switch (pvr_poll_next(policy, wl->now, worked, uar_mapped)) {
	case PVR_POLL_SOCKETS:
		poll_sockets_now(wl, worked);
		break;
	case PVR_POLL_SLEEP:
		sleep_now(wl, uar_mapped);
		break;
	case PVR_POLL_GO_ON:
		break;
	}
}
