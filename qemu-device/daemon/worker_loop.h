/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * How a worker spends its time: engine, sockets, sleep.
 *
 * DOC: system calls of a worker
 *
 * None while it is idle, and none while it polls, but for a look at the sockets every few
 * microseconds. Before it sleeps it tells the guests to ring again
 * (pvr_engine_rest()), and does not sleep if one has just posted.
 */
#ifndef PVR_DAEMON_WORKER_LOOP_H
#define PVR_DAEMON_WORKER_LOOP_H

#include "base/loop.h"
#include "daemon/poll_policy.h"
#include "engine.h"

struct pvr_worker_loop {
	struct pvr_loop *loop;
	struct pvr_engine *engine;
	unsigned int worker;
	/* Called before the sockets are looked at, and before sleep. */
	void (*check)(void *opaque);
	void *opaque;
	struct pvr_poll_policy policy;
	uint64_t now; /* when it was last asked for */
	uint64_t turns; /* that the engine has had */
	bool polled; /* and has not laid the engine to rest since */
};

enum pvr_worker_loop_result {
	PVR_WORKER_LOOP_RAN, /* only the engine */
	PVR_WORKER_LOOP_POLLED, /* at the sockets, too, perhaps after sleep */
	PVR_WORKER_LOOP_INTERRUPTED, /* by a signal, perhaps in its sleep */
};

/*
 * One round: a run of the engine; then, if it is time, whoever is due of the loop's
 * sources and timers is called.
 */
enum pvr_worker_loop_result pvr_worker_loop_round(struct pvr_worker_loop *wl);

#endif /* PVR_DAEMON_WORKER_LOOP_H */
