/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * When a worker polls instead of sleeping: decisions only, fed with times.
 *
 * DOC: polling
 *
 * Who sleeps is woken by a system call of somebody else, which costs both of them. So
 * after work a worker looks on for a window of some tens of microseconds, and as long as
 * windows find work it never sleeps. It looks at its sockets in between, often while
 * something comes through them and seldom while nothing does.
 *
 * On a host without a core to spare, polling keeps the guests from what it is waiting
 * for. That shows in the windows themselves:
 *
 *	others got our CPU though we did not sleep (involuntary switches; each look at the
 *	sockets in a window offers it to them), or less CPU time has passed than time
 *	most windows end without work
 *
 * Then it sleeps at once whenever there is nothing to do, for a while that doubles with
 * each trial that ends so, from BACKOFF_MIN_NS to BACKOFF_MAX_NS; after a long
 * time of useful windows it begins at the bottom again.
 *
 * DOC: other hosts
 *
 * What comes from another host is work, too, though not the engine's: more of it is some
 * microseconds away. Whoever else polls then, as the guest that waits for its answer does,
 * gives a CPU back at once that it was offered, and to take turns costs less than to be
 * woken. So while something moves between hosts a worker whose CPU is wanted offers it in
 * every round, and neither these switches nor the time that they take are a crowd, as long
 * as each of them is short; and it is over longer times that it sees what it has lost.
 */
#ifndef PVR_DAEMON_POLL_POLICY_H
#define PVR_DAEMON_POLL_POLICY_H

#include <stdbool.h>
#include <stdint.h>

#define PVR_POLL_WINDOW_NS 50000ull /* of PVR_POLL_AUTO */
#define PVR_POLL_WINDOW_MAX_US 1000000u

enum pvr_poll_mode {
	PVR_POLL_AUTO,
	PVR_POLL_OFF,
	PVR_POLL_ALWAYS, /* whatever comes of it */
};

enum pvr_poll_step {
	PVR_POLL_GO_ON, /* with the engine */
	PVR_POLL_LOOK, /* at the sockets, without waiting */
	PVR_POLL_SLEEP,
};

/* Other threads may read them. */
struct pvr_poll_stats {
	uint64_t windows, found; /* of the windows that have ended: those with work */
	uint64_t sleeps;
	uint64_t backoffs, crowded; /* of the backoffs: because others need the CPU */
};

struct pvr_poll_policy {
	enum pvr_poll_mode mode;
	uint64_t window; /* ns */

	uint64_t last_work;
	bool in_window;
	int score; /* of the last windows: found work or not */
	bool was_good; /* the score, since the last backoff */
	uint64_t last_look, look_every;
	uint64_t moved_at; /* when something came from another host, or went there */
	bool shared; /* somebody has used the CPU when it was offered last */

	uint64_t resume_at; /* not polled until then */
	uint64_t backoff; /* the next one's length */

	/* The worker's use of its CPU, when it was asked for last. */
	bool has_usage;
	uint64_t usage_at, cpu, switches;
	uint64_t slept; /* since then */
	uint64_t lost; /* ditto: to those who were offered the CPU and kept it */

	struct pvr_poll_stats stats;
};

/* @window_ns is for PVR_POLL_ALWAYS. */
void pvr_poll_policy_init(struct pvr_poll_policy *policy, enum pvr_poll_mode mode,
			  uint64_t window_ns);

void pvr_poll_get_stats(const struct pvr_poll_policy *policy, struct pvr_poll_stats *stats);

/* The worker may poll now: then it looks for work without being told. */
bool pvr_poll_is_on(const struct pvr_poll_policy *policy, uint64_t now);

/**
 * pvr_poll_next() - what to do after the engine's turn
 * @worked: there was something to do for it
 * @async: some doorbells can only be polled, so windows do not end
 */
enum pvr_poll_step pvr_poll_next(struct pvr_poll_policy *policy, uint64_t now, bool worked,
				 bool async);

/* The sockets have been looked at, after PVR_POLL_LOOK or sleep. */
void pvr_poll_looked(struct pvr_poll_policy *policy, uint64_t now, bool events);

/* Bytes have come from another host, or gone there, as sockets were looked at. */
void pvr_poll_moved(struct pvr_poll_policy *policy, uint64_t now);

/* The CPU was offered to others at @from, and is the worker's again. */
void pvr_poll_yielded(struct pvr_poll_policy *policy, uint64_t from, uint64_t now);
/* It is to be offered in each round. */
static inline bool pvr_poll_is_shared(const struct pvr_poll_policy *policy)
{
	return policy->shared;
}

/* The worker has slept from @from to @now. */
void pvr_poll_slept(struct pvr_poll_policy *policy, uint64_t from, uint64_t now);

/* Is pvr_poll_usage() wanted? Ask after PVR_POLL_LOOK and before sleep. */
bool pvr_poll_wants_usage(const struct pvr_poll_policy *policy, uint64_t now);
/* The thread's CPU time in ns and its involuntary context switches so far. */
void pvr_poll_usage(struct pvr_poll_policy *policy, uint64_t now, uint64_t cpu, uint64_t switches);

#endif /* PVR_DAEMON_POLL_POLICY_H */
