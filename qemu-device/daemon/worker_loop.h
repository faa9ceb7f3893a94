/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * The main loop of a worker: engine, sockets, sleep.
 *
 * DOC: system calls of a worker
 *
 * An idle worker makes none. A polling worker makes none except to poll its sockets every
 * few microseconds. Before it sleeps, it makes the guests ring doorbells again
 * (pvr_engine_enable_doorbells()). It does not sleep if a guest has posted a request in between.
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
	/* Called before the sockets are polled and before sleep. */
	void (*check)(void *opaque);
	void *opaque;
	struct pvr_poll_policy policy;
	uint64_t now; /* time of the last pvr_loop_now() */
	uint64_t quanta; /* of the engine, in total */
	bool polled; /* polled since the last pvr_engine_enable_doorbells() */
};

enum pvr_worker_loop_result {
	PVR_WORKER_LOOP_RAN, /* only the engine ran */
	PVR_WORKER_LOOP_POLLED, /* the sockets were polled, too, perhaps after sleep */
	PVR_WORKER_LOOP_INTERRUPTED, /* a signal interrupted it, perhaps during sleep */
};

/*
 * One iteration: runs the engine; then, if poll_policy decides so, polls or sleeps and
 * calls the ready sources and expired timers.
 */
enum pvr_worker_loop_result pvr_worker_loop_round(struct pvr_worker_loop *wl);

#endif /* PVR_DAEMON_WORKER_LOOP_H */
