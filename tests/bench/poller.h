/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * A worker that polls on a thread of its own, as in pvrdmad, and the guest's interface to
 * it.
 *
 * A guest of pvrdmad does not call the engine: its doorbells are messages to the worker.
 * Here a doorbell is an atomic flag.
 */
#ifndef BENCH_POLLER_H
#define BENCH_POLLER_H

#include "pair.h"
#include "thread.h"

struct bench_poller {
	struct pvr_engine *engine;
	unsigned int worker;
	struct fg_qp *qp; /* adapter of the doorbell */
	bool more; /* the device has work */
	struct bench_thread thread;
	/* in a cache line of its own */
	_Alignas(64) atomic_bool rung;
};

/* See bench_thread_start(). */
void bench_poller_start(struct bench_poller *poller, struct bench_pair *pair);
void bench_poller_stop(struct bench_poller *poller);

/* Guest's thread: publishes posted requests, with a doorbell if needed. */
void bench_poller_tell(struct bench_poller *poller);

#endif /* BENCH_POLLER_H */
