// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* How a worker spends its time: engine, sockets, sleep. */
#include <sched.h>
#include <sys/resource.h>
#include <time.h>

#include "daemon/pace.h"

/* Doorbells that nobody tells of wait no longer than this for a worker that sleeps. */
#define ASYNC_SLEEP_NS 50000ull

static void measure(struct pvr_pace *pace, uint64_t now)
{
	struct rusage usage;
	struct timespec cpu;

	if (!pvr_poll_wants_usage(&pace->policy, now))
		return;
	if (getrusage(RUSAGE_THREAD, &usage) < 0 ||
	    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &cpu) < 0)
		return;
	pvr_poll_usage(&pace->policy, now, (uint64_t)cpu.tv_sec * PVR_SEC + (uint64_t)cpu.tv_nsec,
		       (uint64_t)usage.ru_nivcsw);
}

/* Return: false if a signal came first. */
static bool look(struct pvr_pace *pace, uint64_t deadline)
{
	bool ok, events;

	pace->check(pace->opaque);
	ok = pvr_loop_wait(pace->loop, deadline);
	events = pvr_loop_dispatch(pace->loop);
	pace->now = pvr_loop_now();
	pvr_poll_looked(&pace->policy, pace->now, events);
	if (pvr_loop_has_worked(pace->loop))
		pvr_poll_moved(&pace->policy, pace->now);
	return ok;
}

/* Who waits for this CPU may be the guest that we wait for. */
static void yield(struct pvr_pace *pace)
{
	uint64_t from = pvr_loop_now();

	sched_yield();
	pvr_poll_yielded(&pace->policy, from, pvr_loop_now());
}

static enum pvr_pace_result look_now(struct pvr_pace *pace, bool worked)
{
	measure(pace, pace->now);
	if (!worked || pvr_poll_is_shared(&pace->policy))
		yield(pace);
	return look(pace, 0) ? PVR_PACE_LOOKED : PVR_PACE_INTERRUPTED;
}

static uint64_t sleep_until(struct pvr_pace *pace, uint64_t now, bool async)
{
	uint64_t deadline = pvr_engine_deadline(pace->engine, pace->worker);

	if (async && now + ASYNC_SLEEP_NS < deadline)
		return now + ASYNC_SLEEP_NS;
	return deadline;
}

static bool rest(struct pvr_pace *pace)
{
	if (!pace->polled)
		return true;
	pace->polled = false;
	return pvr_engine_rest(pace->engine, pace->worker);
}

static enum pvr_pace_result sleep_now(struct pvr_pace *pace, bool async)
{
	uint64_t now = pace->now;
	bool ok;

	measure(pace, now);
	if (!rest(pace))
		return PVR_PACE_RAN;
	ok = look(pace, sleep_until(pace, now, async));
	pvr_poll_slept(&pace->policy, now, pace->now);
	return ok ? PVR_PACE_LOOKED : PVR_PACE_INTERRUPTED;
}

/* Return: whether there was anything to do, and perhaps is. */
static bool run(struct pvr_pace *pace, bool polls)
{
	uint64_t turns = pace->turns;
	struct pvr_worker_stats stats;
	bool more = false;

	if (polls)
		more = pvr_engine_poll(pace->engine, pace->worker);
	pace->polled |= polls;
	more |= pvr_engine_run(pace->engine, pace->worker);
	pvr_engine_worker_stats(pace->engine, pace->worker, &stats);
	pace->turns = stats.turns;
	return more || stats.turns != turns;
}

enum pvr_pace_result pvr_pace_round(struct pvr_pace *pace)
{
	struct pvr_poll_policy *policy = &pace->policy;
	bool async = pvr_engine_is_async(pace->engine, pace->worker);
	bool worked = run(pace, async || pvr_poll_is_on(policy, pace->now));

	pace->now = pvr_loop_now();
	switch (pvr_poll_next(policy, pace->now, worked, async)) {
	case PVR_POLL_LOOK:
		return look_now(pace, worked);
	case PVR_POLL_SLEEP:
		return sleep_now(pace, async);
	default:
		return PVR_PACE_RAN;
	}
}
