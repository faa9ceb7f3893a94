/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * When a worker polls and when it sleeps. Pure decisions: the caller passes all times in.
 *
 * DOC: polling
 *
 * A wakeup of a worker costs the sender a system call, and a context switch. So after work
 * a worker polls for a window of some tens of microseconds. It does not sleep as long as
 * windows find work. In a window it polls its sockets, too: often while they deliver data,
 * rarely otherwise.
 *
 * Without a spare core, polling takes the CPU from the guests whose work it waits for.
 * Two signs of contention:
 *
 *	Other threads got the CPU although the worker did not sleep: involuntary context
 *	switches (each poll of the sockets yields), or less CPU time than time passed.
 *	Most windows end without work.
 *
 * Then the worker backs off: it sleeps as soon as there is no work. The backoff doubles
 * after each failed trial, from BACKOFF_MIN_NS to BACKOFF_MAX_NS. After a long
 * time of windows with work it starts at BACKOFF_MIN_NS again.
 *
 * DOC: other hosts
 *
 * Data from another host also counts as work: more data follows within microseconds. A
 * polling guest returns a yielded CPU at once, which costs less than a wakeup. So while
 * data moves between hosts, a worker with a contended CPU yields in every round. Short
 * yields do not count as contention. Lost time is measured over longer periods then.
 */
#ifndef PVR_DAEMON_POLL_POLICY_H
#define PVR_DAEMON_POLL_POLICY_H

#include <stdbool.h>
#include <stdint.h>

#define PVR_POLL_WINDOW_NS 50000ull /* window of PVR_POLL_AUTO */
#define PVR_POLL_WINDOW_MAX_US 1000000u

enum pvr_poll_mode {
	PVR_POLL_AUTO,
	PVR_POLL_OFF,
	PVR_POLL_ALWAYS, /* also while the CPU is contended */
};

enum pvr_poll_step {
	PVR_POLL_GO_ON, /* call the engine again */
	PVR_POLL_SOCKETS, /* poll the sockets without waiting */
	PVR_POLL_SLEEP,
};

/* Read by other threads. */
struct pvr_poll_stats {
	uint64_t poll_windows, poll_hits; /* windows that ended; those of them that found work */
	uint64_t sleeps;
	uint64_t backoffs, cpu_contended; /* backoffs; those of them because the CPU is contended */
};

struct pvr_poll_policy {
	enum pvr_poll_mode mode;
	uint64_t window; /* ns */

	uint64_t last_work;
	bool in_window;
	int score; /* result of the last windows */
	bool was_good; /* the score was good since the last backoff */
	uint64_t sockets_polled_at, sockets_every;
	uint64_t moved_at; /* when data came from or went to another host */
	bool shared; /* another thread ran at the last yield */

	uint64_t resume_at; /* no polling before this time */
	uint64_t backoff; /* length of the next backoff */

	/* CPU usage of the worker at the last measurement. */
	bool has_usage;
	uint64_t usage_at, cpu, switches;
	uint64_t slept; /* ns since then */
	uint64_t lost; /* ns since then that other threads kept the yielded CPU */

	struct pvr_poll_stats stats;
};

/* @window_ns: the window of PVR_POLL_ALWAYS; ignored in other modes. */
void pvr_poll_policy_init(struct pvr_poll_policy *policy, enum pvr_poll_mode mode,
			  uint64_t window_ns);

void pvr_poll_get_stats(const struct pvr_poll_policy *policy, struct pvr_poll_stats *stats);

/* Return: true if the worker polls now: it finds requests without a doorbell. */
bool pvr_poll_is_on(const struct pvr_poll_policy *policy, uint64_t now);

/**
 * pvr_poll_next() - choose the next step after the engine ran
 * @worked: the engine had work
 * @uar_mapped: some doorbells can only be polled, so a window never ends
 */
enum pvr_poll_step pvr_poll_next(struct pvr_poll_policy *policy, uint64_t now, bool worked,
				 bool uar_mapped);

/* The sockets were polled, after PVR_POLL_SOCKETS or sleep. @events: some were ready. */
void pvr_poll_sockets_done(struct pvr_poll_policy *policy, uint64_t now, bool events);

/* The last poll of the sockets moved data from or to another host. */
void pvr_poll_moved(struct pvr_poll_policy *policy, uint64_t now);

/* The worker yielded the CPU at @from and got it back at @now. */
void pvr_poll_yielded(struct pvr_poll_policy *policy, uint64_t from, uint64_t now);
/* Return: true if the worker should yield in every round. */
static inline bool pvr_poll_is_shared(const struct pvr_poll_policy *policy)
{
	return policy->shared;
}

/* The worker slept from @from to @now. */
void pvr_poll_slept(struct pvr_poll_policy *policy, uint64_t from, uint64_t now);

/* Return: true if pvr_poll_usage() is due. Check after PVR_POLL_SOCKETS and before sleep. */
bool pvr_poll_needs_usage(const struct pvr_poll_policy *policy, uint64_t now);
/*
 * @cpu: CPU time of the thread in ns. @switches: its involuntary context switches. Both
 * in total.
 */
void pvr_poll_usage(struct pvr_poll_policy *policy, uint64_t now, uint64_t cpu, uint64_t switches);

#endif /* PVR_DAEMON_POLL_POLICY_H */
