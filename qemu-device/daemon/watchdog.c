// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* Heartbeat to the service manager. */
#include <inttypes.h>
#include <stddef.h>
#include <stdlib.h>
#include <unistd.h>

#include "daemon/heartbeat.h"
#include "daemon/log.h"
#include "daemon/worker_pool.h"

/* Checks per WatchdogSec: two may come late. */
#define CHECKS 3
#define NOTIFY_NS (100 * PVR_MSEC) /* control requests wait meanwhile */

/*
 * A worker stands still in the kernel if the QEMU of one of these VMs punches holes in its RAM file: the
 * page fault waits for that.
 */
static void log_stuck(const struct pvr_watchdog *watchdog, unsigned int worker)
{
	const char *adapter, *peer;

	pvr_engine_worker_request(watchdog->pool->threads[worker].worker_loop.engine, worker,
				  &adapter, &peer);
	pvrd_log(PVR_LOG_ERR, adapter,
		 "worker %u has ended no iteration for %" PRIu64
		 " ms: no heartbeat for the service manager%s%s%s",
		 worker, (uint64_t)(watchdog->interval / PVR_MSEC),
		 adapter ? "; it executes a request of this adapter" : "",
		 peer ? " to the adapter " : "", peer ? peer : "");
}

/* Return: the number of workers that stand still. */
static unsigned int count_stuck(struct pvr_watchdog *watchdog)
{
	const struct pvr_worker_pool *pool = watchdog->pool;
	uint64_t now = pvr_loop_now();
	unsigned int stuck = 0, i;

	for (i = 0; i < pool->num; i++) {
		if (pvr_heartbeat_is_alive(&pool->threads[i].worker_loop.heartbeat,
					   &watchdog->seen[i], now, watchdog->interval))
			continue;
		stuck++;
		if (!watchdog->stuck)
			log_stuck(watchdog, i);
	}
	return stuck;
}

static void check(struct pvr_loop_timer *timer)
{
	struct pvr_watchdog *watchdog =
		(struct pvr_watchdog *)((char *)timer - offsetof(struct pvr_watchdog, timer));
	bool stuck = count_stuck(watchdog) > 0;

	if (!stuck)
		pvr_notify("WATCHDOG=1", NOTIFY_NS);
	if (watchdog->stuck && !stuck)
		pvrd_log(PVR_LOG_WARN, NULL, "all workers run again");
	watchdog->stuck = stuck;
	pvr_loop_timer_arm(watchdog->loop, timer, watchdog->interval);
}

void pvr_watchdog_start(struct pvr_watchdog *watchdog, struct pvr_loop *loop,
			const struct pvr_worker_pool *pool)
{
	uint64_t usec = pvr_environment_number("WATCHDOG_USEC");

	if (!usec || usec > UINT64_MAX / 1000)
		return;
	if (getenv("WATCHDOG_PID") && pvr_environment_number("WATCHDOG_PID") != (uint64_t)getpid())
		return;
	watchdog->loop = loop;
	watchdog->pool = pool;
	watchdog->timer.expired = check;
	watchdog->interval = usec * 1000 / CHECKS;
	/*
	 * The service manager counts from the last heartbeat of the process that this one replaces,
	 * and a process may be replaced before its first interval is over.
	 */
	pvr_notify("WATCHDOG=1", NOTIFY_NS);
	pvr_loop_timer_arm(loop, &watchdog->timer, watchdog->interval);
}
