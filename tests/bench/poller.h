/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * A worker that polls on a thread of its own, as pvrdmad's do, and the guest's way to it.
 *
 * A guest of pvrdmad does not call the engine: its doorbells are messages that the worker
 * finds. Here they go through a mailbox.
 */
#ifndef BENCH_POLLER_H
#define BENCH_POLLER_H

#include "pair.h"
#include "thread.h"

struct bench_poller {
	struct pvr_engine *engine;
	unsigned int worker;
	struct fg_qp *qp; /* whose doorbell it is */
	bool more; /* the device has something to do */
	struct bench_thread thread;
	/* On a line of its own. */
	_Alignas(64) atomic_bool rung;
};

/* On CPU @nth. */
void bench_poller_start(struct bench_poller *poller, struct bench_pair *pair, unsigned int nth);
void bench_poller_stop(struct bench_poller *poller);

/* From the guest's thread: what has been posted wants to be seen, by doorbell if need be. */
void bench_poller_tell(struct bench_poller *poller);

#endif /* BENCH_POLLER_H */
