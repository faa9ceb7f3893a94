// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* Workers that poll. */
#include "poller.h"

static void turn(void *arg)
{
	struct bench_poller *poller = arg;

	if (atomic_load_explicit(&poller->rung, memory_order_relaxed)) {
		atomic_exchange(&poller->rung, false);
		fg_ring_send(poller->qp);
		poller->more = true;
	}
	if (pvr_engine_poll(poller->engine, poller->worker) || poller->more)
		poller->more = pvr_engine_run(poller->engine, poller->worker);
}

void bench_poller_start(struct bench_poller *poller, struct bench_pair *pair)
{
	poller->engine = pair->host->engine;
	poller->worker = 0;
	poller->qp = &pair->a.qp;
	poller->more = true; /* what was before */
	poller->thread.turn = turn;
	poller->thread.arg = poller;
	atomic_store(&poller->rung, false);
	bench_thread_start(&poller->thread);
}

void bench_poller_stop(struct bench_poller *poller)
{
	bench_thread_stop(&poller->thread);
	/* The worker must end without work, with doorbells enabled. */
	while (!pvr_engine_enable_doorbells(poller->engine, poller->worker) || poller->more)
		poller->more = pvr_engine_run(poller->engine, poller->worker);
}

void bench_poller_tell(struct bench_poller *poller)
{
	/* See struct pvr_db_suppress. */
	atomic_thread_fence(memory_order_seq_cst);
	if (!__atomic_load_n(&fg_qp_db_suppress(poller->qp)->sq, __ATOMIC_RELAXED))
		atomic_store(&poller->rung, true);
}
