/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * Heartbeat of the workers for the service manager's watchdog.
 *
 * DOC: when a worker is alive
 *
 * A worker counts its iterations, and stores before it sleeps until when. The first thread
 * checks all workers at an interval: a worker is alive if it has ended an iteration since
 * the last check, or sleeps and its deadline is less than an interval ago. So an idle
 * worker needs no wakeup. Only if all are alive, the first thread sends WATCHDOG=1. The
 * service manager restarts a daemon that does not send it in time (WatchdogSec=); it also
 * restarts one whose first thread stands still.
 */
#ifndef PVR_DAEMON_HEARTBEAT_H
#define PVR_DAEMON_HEARTBEAT_H

#include <stdbool.h>
#include <stdint.h>

#include "base/loop.h"
#include "engine.h"

/* Written by the worker, read by the first thread. */
struct pvr_heartbeat {
	uint64_t rounds;
	uint64_t sleeps_until; /* time of pvr_loop_now(); 0: awake */
};

static inline void pvr_heartbeat_round(struct pvr_heartbeat *beat)
{
	__atomic_store_n(&beat->rounds, beat->rounds + 1, __ATOMIC_RELAXED);
}

/* @until: 0 after the sleep */
static inline void pvr_heartbeat_sleep(struct pvr_heartbeat *beat, uint64_t until)
{
	__atomic_store_n(&beat->sleeps_until, until, __ATOMIC_RELAXED);
}

static inline uint64_t pvr_heartbeat_rounds(const struct pvr_heartbeat *beat)
{
	return __atomic_load_n(&beat->rounds, __ATOMIC_RELAXED);
}

/* @seen: rounds at the last check, updated. Times in ns. */
bool pvr_heartbeat_is_alive(const struct pvr_heartbeat *beat, uint64_t *seen, uint64_t now,
			    uint64_t interval);

struct pvr_worker_pool;

struct pvr_watchdog {
	struct pvr_loop_timer timer;
	struct pvr_loop *loop;
	const struct pvr_worker_pool *pool;
	uint64_t interval; /* 0: no watchdog */
	uint64_t seen[PVR_MAX_WORKERS];
	bool stuck; /* at the last check, and the log has it */
};

/* Starts the checks if $WATCHDOG_USEC and $WATCHDOG_PID request them, see sd_watchdog_enabled(3). */
void pvr_watchdog_start(struct pvr_watchdog *watchdog, struct pvr_loop *loop,
			const struct pvr_worker_pool *pool);

#endif /* PVR_DAEMON_HEARTBEAT_H */
