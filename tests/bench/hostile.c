// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * A guest that keeps its worker busy with useless work, and the throughput of a pair on
 * another worker.
 */
#include <sched.h>

#include "lane.h"
#include "thread.h"

#define UNDER_WAY 1000 /* hostile operations between two runs of the victim */

struct attack {
	const char *name;
	void (*turn)(void *arg); /* runs guest and worker once; @arg: struct hostile */
};

struct hostile {
	struct fg_host *host;
	struct bench_lane victim, lane; /* of worker 0; of worker 1, hostile */
	const struct attack *attack;
	uint32_t random;
	atomic_ullong done; /* doorbells, or indices */
	uint64_t failures; /* of the hostile queue pair */
};

static uint32_t next_random(struct hostile *hostile)
{
	hostile->random ^= hostile->random << 13;
	hostile->random ^= hostile->random >> 17;
	hostile->random ^= hostile->random << 5;
	return hostile->random;
}

static void worker_turn(struct hostile *hostile)
{
	struct pvr_engine *engine = hostile->host->engine;

	pvr_engine_poll(engine, 1);
	pvr_engine_run(engine, 1);
}

/* ------------------------------------------------------------- doorbells */

/* Doorbells of its own queue pair and CQ and of unknown handles, at all offsets. */
static void ring_any(struct hostile *hostile)
{
	struct fg_end *end = &hostile->lane.pair.a;
	uint32_t random = next_random(hostile);

	switch (random % 4) {
	case 0:
		fg_ring_send(&end->qp);
		break;
	case 1:
		fg_ring_recv(&end->qp);
		break;
	case 2:
		fg_cq_arm(&end->scq);
		break;
	default:
		fg_uar_write(end->guest, random >> 8 & 1, random >> 12 & 0xffc, random);
	}
	hostile->done++;
}

static void turn_doorbells(void *arg)
{
	struct hostile *hostile = arg;

	for (int i = 0; i < 16; i++)
		ring_any(hostile);
	worker_turn(hostile);
}

/* --------------------------------------------------------------- indices */

/* Repairs the queue pair, so that the next round can break it again. */
static void repair(struct hostile *hostile)
{
	struct bench_pair *pair = &hostile->lane.pair;

	if (fg_qp_state(&pair->a.qp) == PVR_QPS_RTS)
		return;
	hostile->failures++;
	if (fg_qp_to_reset(&pair->a.qp) || fg_qp_to_reset(&pair->b.qp))
		fg_die("a hostile queue pair that cannot be reset");
	fg_end_connect(&pair->a, &pair->b, NULL);
	for (int i = 0; i < 2; i++)
		while (fg_events_pending(pair->guest[i]))
			fg_event_poll(pair->guest[i], &(struct pvr_eqe){ 0 });
	fg_cq_drain(&pair->a.scq);
	fg_cq_drain(&pair->a.rcq);
}

static void turn_indices(void *arg)
{
	struct hostile *hostile = arg;
	struct fg_qp *qp = &hostile->lane.pair.a.qp;

	for (int i = 0; i < 64; i++) {
		uint32_t random = next_random(hostile);
		/* Mostly a valid index, so that the device executes the elements. */
		uint32_t index = random >> 8 & (random % 16 ? 2 * qp->sq_wr - 1 : UINT32_MAX);

		__atomic_store_n(random & 16 ? &qp->ring->tx.prod_tail : &qp->ring->rx.prod_tail,
				 index, __ATOMIC_RELAXED);
		/* Rings the doorbell. */
		if (!fg_qp_db_suppress(qp)->sq)
			fg_ring_send(qp);
		worker_turn(hostile);
		fg_cq_drain(&hostile->lane.pair.a.scq);
		hostile->done++;
	}
	repair(hostile);
}

/* ------------------------------------------------------------------ rows */

static double beside(void *arg, uint64_t ns)
{
	struct hostile *hostile = arg;
	struct bench_thread thread = { .turn = hostile->attack->turn, .arg = hostile };
	unsigned long long before = hostile->done;
	double rate;

	bench_thread_start(&thread);
	while (hostile->done - before < UNDER_WAY)
		sched_yield();
	rate = bench_lane_rate(&hostile->victim, ns);
	bench_thread_stop(&thread);
	return rate;
}

static const struct attack attacks[] = {
	{ "hostile_doorbells", turn_doorbells },
	{ "hostile_indices", turn_indices },
};

static void row(const struct attack *attack)
{
	struct hostile hostile = { .host = fg_host_create_workers(2),
				   .attack = attack,
				   .random = 1 };
	struct bench_side us = { "beside it", beside, &hostile };
	struct bench_side peer = { "alone", bench_lane_rate, &hostile.victim };

	bench_lane_open(&hostile.victim, hostile.host, 0, 0, 0);
	bench_lane_open(&hostile.lane, hostile.host, 1, 1, 1);
	bench_row(attack->name, "1/s", &us, &peer);
	if (attack->turn == turn_indices && !hostile.failures)
		fg_die("%s: nothing hostile happened", attack->name);
	bench_lane_close(&hostile.victim);
	bench_lane_close(&hostile.lane);
	fg_host_destroy(hostile.host);
}

void bench_hostile(void)
{
	if (!bench_two_cpus("hostile"))
		return;
	for (size_t i = 0; i < sizeof(attacks) / sizeof(attacks[0]); i++)
		row(&attacks[i]);
}
