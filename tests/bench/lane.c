// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* Pairs with workers of their own. */
#include "lane.h"

#include "thread.h"

#define BATCH 128 /* depth of the ring: each batch uses every slot */

void bench_lane_open(struct bench_lane *lane, struct fg_host *host, unsigned int number,
		     unsigned int from, unsigned int to)
{
	bench_pair_open(&lane->pair, &(struct bench_pair_config){ .type = PVR_QPT_RC,
								  .depth = BATCH,
								  .first = 1 + 2 * number,
								  .worker = { from, to },
								  .host = host });
	bench_load_init(&lane->load, &lane->pair, PVRDMA_WR_RDMA_WRITE, 8);
	lane->load.batch = BATCH;
	lane->engine = host->engine;
	lane->worker = from;
	/* Fills all slots, once. */
	bench_load_fill(&lane->load);
	bench_load_run(&lane->load);
	bench_load_reap(&lane->load);
}

void bench_lane_close(struct bench_lane *lane)
{
	bench_pair_close(&lane->pair);
}

static void post_again(struct fg_qp *qp)
{
	qp->sq_tail = (qp->sq_tail + BATCH) & (2 * qp->sq_wr - 1);
	__atomic_store_n(&qp->ring->tx.prod_tail, qp->sq_tail, __ATOMIC_RELEASE);
	fg_ring_send(qp);
}

void bench_lane_turn(void *arg)
{
	struct bench_lane *lane = arg;

	post_again(&lane->pair.a.qp);
	/* A quantum may wait for another worker's lock: no error. */
	while (pvr_engine_run(lane->engine, lane->worker) || fg_sq_space(&lane->pair.a.qp) < BATCH)
		;
	bench_load_reap(&lane->load);
	lane->done += BATCH;
}

double bench_lane_rate(void *arg, uint64_t ns)
{
	struct bench_lane *lane = arg;
	uint64_t begin, now;

	bench_pin();
	begin = now = bench_now();
	lane->done = 0;
	while (now - begin < ns) {
		for (int i = 0; i < 8; i++)
			bench_lane_turn(lane);
		now = bench_now();
	}
	bench_unpin();
	return (double)lane->done * FG_SEC / (now - begin);
}
