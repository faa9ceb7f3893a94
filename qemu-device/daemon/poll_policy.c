// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * When a worker polls and when it sleeps. Pure decisions: the caller passes all times in.
 */
#include "daemon/poll_policy.h"

/* Interval between two polls of the sockets. */
#define LOOK_MIN_NS 1000ull
#define LOOK_WORK_MAX_NS 25000ull
#define LOOK_WINDOW_MAX_NS 5000ull

/* A window with work scores 1, a window without scores -4. */
#define SCORE_MAX 16
#define SCORE_IN_VAIN 4
#define SCORE_USELESS (-8)

#define BACKOFF_MIN_NS 1000000ull
#define BACKOFF_MAX_NS 1000000000ull
#define BACKOFF_MOVING_MAX_NS 64000000ull /* while data moves between hosts */
/* After this many times the next backoff of good windows, the backoff is reset. */
#define CONTENT 4

#define USAGE_EVERY_NS 250000ull
/* While the worker yields, a rare competitor is no contention yet: measure rarely. */
#define USAGE_EVERY_MOVING_NS 20000000ull
#define LOST_MOVING_NS 5000000ull /* a quarter of the interval: measure earlier */
/* Time without the CPU that is not counted as lost. */
#define LOST_NS 50000ull

/* Data between hosts is expected for this long after the last. */
#define MOVING_NS 10000000ull
/* sched_yield() takes less than the first if no thread waits, and up to the second else. */
#define YIELD_ALONE_NS 700ull
#define YIELD_SHORT_NS 50000ull
/* A polling guest responds to data within this time. */
#define ANSWER_NS 1200ull

void pvr_poll_policy_init(struct pvr_poll_policy *policy, enum pvr_poll_mode mode,
			  uint64_t window_ns)
{
	*policy = (struct pvr_poll_policy){
		.mode = mode,
		.window = mode == PVR_POLL_AUTO ? PVR_POLL_WINDOW_NS : window_ns,
		.backoff = BACKOFF_MIN_NS,
	};
}

static void count(uint64_t *counter)
{
	__atomic_store_n(counter, *counter + 1, __ATOMIC_RELAXED);
}

void pvr_poll_get_stats(const struct pvr_poll_policy *policy, struct pvr_poll_stats *stats)
{
	const struct pvr_poll_stats *from = &policy->stats;

	*stats = (struct pvr_poll_stats){
		.poll_windows = __atomic_load_n(&from->poll_windows, __ATOMIC_RELAXED),
		.poll_hits = __atomic_load_n(&from->poll_hits, __ATOMIC_RELAXED),
		.sleeps = __atomic_load_n(&from->sleeps, __ATOMIC_RELAXED),
		.backoffs = __atomic_load_n(&from->backoffs, __ATOMIC_RELAXED),
		.cpu_contended = __atomic_load_n(&from->cpu_contended, __ATOMIC_RELAXED),
	};
}

bool pvr_poll_is_on(const struct pvr_poll_policy *policy, uint64_t now)
{
	return policy->mode != PVR_POLL_OFF && now >= policy->resume_at;
}

static bool is_moving(const struct pvr_poll_policy *policy, uint64_t now)
{
	return policy->moved_at && now - policy->moved_at < MOVING_NS;
}

static void back_off(struct pvr_poll_policy *policy, uint64_t now)
{
	uint64_t max = is_moving(policy, now) ? BACKOFF_MOVING_MAX_NS : BACKOFF_MAX_NS;

	if (policy->mode != PVR_POLL_AUTO)
		return;
	if (policy->was_good && now > policy->resume_at + CONTENT * policy->backoff)
		policy->backoff = BACKOFF_MIN_NS;
	if (policy->backoff > max)
		policy->backoff = max;
	policy->resume_at = now + policy->backoff;
	policy->backoff = 2 * policy->backoff < max ? 2 * policy->backoff : max;
	policy->score = 0;
	policy->was_good = false;
	policy->has_usage = false;
	count(&policy->stats.backoffs);
}

static void end_window(struct pvr_poll_policy *policy, uint64_t now, bool found)
{
	if (!policy->in_window)
		return;
	policy->in_window = false;
	count(&policy->stats.poll_windows);
	if (found)
		count(&policy->stats.poll_hits);
	policy->score += found ? 1 : -SCORE_IN_VAIN;
	if (policy->score > SCORE_MAX) {
		policy->score = SCORE_MAX;
		policy->was_good = true;
	}
	if (policy->score >= SCORE_USELESS)
		return;
	policy->score = 0;
	back_off(policy, now);
}

static bool may_sleep(const struct pvr_poll_policy *policy, uint64_t now, bool uar_mapped)
{
	if (!pvr_poll_is_on(policy, now))
		return true;
	return !uar_mapped && now - policy->last_work >= policy->window;
}

static uint64_t sockets_every(const struct pvr_poll_policy *policy, uint64_t now, bool worked)
{
	uint64_t max = worked ? LOOK_WORK_MAX_NS : LOOK_WINDOW_MAX_NS;

	if (policy->shared)
		return !worked && now - policy->moved_at < ANSWER_NS ? ANSWER_NS : 0;
	return policy->sockets_every < max ? policy->sockets_every : max;
}

enum pvr_poll_step pvr_poll_next(struct pvr_poll_policy *policy, uint64_t now, bool worked,
				 bool uar_mapped)
{
	if (worked) {
		policy->last_work = now;
		end_window(policy, now, true);
	} else if (may_sleep(policy, now, uar_mapped)) {
		end_window(policy, now, false);
		return PVR_POLL_SLEEP;
	} else if (!uar_mapped) {
		policy->in_window = true;
	}
	if (now - policy->sockets_polled_at >= sockets_every(policy, now, worked))
		return PVR_POLL_SOCKETS;
	return PVR_POLL_GO_ON;
}

void pvr_poll_sockets_done(struct pvr_poll_policy *policy, uint64_t now, bool events)
{
	policy->sockets_polled_at = now;
	policy->sockets_every = LOOK_MIN_NS + (events ? 0 : 2 * policy->sockets_every);
	if (policy->sockets_every > LOOK_WORK_MAX_NS)
		policy->sockets_every = LOOK_WORK_MAX_NS;
}

void pvr_poll_moved(struct pvr_poll_policy *policy, uint64_t now)
{
	policy->last_work = policy->moved_at = now;
	end_window(policy, now, true);
}

void pvr_poll_yielded(struct pvr_poll_policy *policy, uint64_t from, uint64_t now)
{
	uint64_t ns = now - from;

	policy->shared = is_moving(policy, now) && ns > YIELD_ALONE_NS;
	if (policy->shared && ns < YIELD_SHORT_NS)
		policy->slept += ns;
	else if (policy->shared)
		policy->lost += ns;
}

void pvr_poll_slept(struct pvr_poll_policy *policy, uint64_t from, uint64_t now)
{
	count(&policy->stats.sleeps);
	policy->slept += now - from;
}

bool pvr_poll_needs_usage(const struct pvr_poll_policy *policy, uint64_t now)
{
	if (policy->mode != PVR_POLL_AUTO || !pvr_poll_is_on(policy, now))
		return false;
	if (!policy->has_usage)
		return true;
	if (!is_moving(policy, now))
		return now - policy->usage_at >= USAGE_EVERY_NS;
	return now - policy->usage_at >= USAGE_EVERY_MOVING_NS || policy->lost > LOST_MOVING_NS;
}

static bool is_cpu_contended(const struct pvr_poll_policy *policy, uint64_t now, uint64_t cpu,
			     uint64_t switches)
{
	uint64_t awake = now - policy->usage_at - policy->slept;
	uint64_t used = cpu - policy->cpu;

	/* Time that other threads got by yields counts as sleep, which is no loss. */
	if (is_moving(policy, now))
		return used + (now - policy->usage_at) / 4 + LOST_NS < awake;
	return switches != policy->switches || used + awake / 4 + LOST_NS < awake;
}

void pvr_poll_usage(struct pvr_poll_policy *policy, uint64_t now, uint64_t cpu, uint64_t switches)
{
	bool cpu_contended = policy->has_usage && is_cpu_contended(policy, now, cpu, switches);

	policy->has_usage = true;
	policy->usage_at = now;
	policy->cpu = cpu;
	policy->switches = switches;
	policy->slept = policy->lost = 0;
	if (!cpu_contended)
		return;
	count(&policy->stats.cpu_contended);
	back_off(policy, now);
}
