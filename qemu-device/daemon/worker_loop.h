/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * The main loop of a worker: engine, sockets, sleep.
 *
 * DOC: system calls of a worker
 *
 * An idle worker makes none. A polling worker makes none except to poll its sockets every
 * few microseconds. Before it sleeps, it makes the guests ring doorbells again
 * (pvr_engine_enable_doorbells()). It does not sleep if a guest has posted a request in between.
 *
 * DOC: stall guard of a worker
 *
 * A client can make a descriptor block that it has passed. So the guard of process.h runs
 * while the worker runs the engine, its sources and its timers. It stops only in the wait
 * for events, when its signal finds the thread there, and an idle worker stays asleep.
 */
#ifndef PVR_DAEMON_WORKER_LOOP_H
#define PVR_DAEMON_WORKER_LOOP_H

#include "base/loop.h"
#include "daemon/heartbeat.h"
#include "daemon/poll_policy.h"
#include "daemon/process.h"
#include "daemon/turns.h"
#include "engine.h"

struct pvr_worker_loop {
	struct pvr_loop *loop;
	struct pvr_engine *engine;
	unsigned int worker;
	/* Called before the sockets are polled and before sleep. */
	void (*check)(void *opaque);
	void *opaque;
	struct pvr_poll_policy policy;
	struct pvr_stall_guard guard;
	uint64_t now; /* time of the last pvr_loop_now() */
	uint64_t quanta; /* of the engine, in total */
	struct pvr_heartbeat heartbeat;
	struct pvr_turns turns;
	bool polled; /* polled since the last pvr_engine_enable_doorbells() */
};

/* Starts the stall guard of the calling thread, which runs the loop. */
bool pvr_worker_loop_init(struct pvr_worker_loop *wl, struct pvr_error *err);
void pvr_worker_loop_exit(struct pvr_worker_loop *wl);

/*
 * One iteration: runs the engine; then, if poll_policy decides so, polls or sleeps and
 * calls the ready sources and expired timers.
 */
void pvr_worker_loop_round(struct pvr_worker_loop *wl);

#endif /* PVR_DAEMON_WORKER_LOOP_H */
