/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * Pairs that several workers serve at the same time, in one engine.
 *
 * No guest runs meanwhile: the rings are filled once. The worker's thread publishes them
 * as full again, by one store and a doorbell.
 */
#ifndef BENCH_LANE_H
#define BENCH_LANE_H

#include "load.h"

struct bench_lane {
	struct bench_pair pair;
	struct bench_load load;
	struct pvr_engine *engine;
	unsigned int worker;
	uint64_t done; /* requests */
};

/*
 * @number: of the lane, from 0; @from and @to: the workers of both adapters. The lane's
 * requests are executed by @from.
 */
void bench_lane_open(struct bench_lane *lane, struct fg_host *host, unsigned int number,
		     unsigned int from, unsigned int to);
void bench_lane_close(struct bench_lane *lane);

/* A batch of requests. @arg: the lane. */
void bench_lane_turn(void *arg);
/* A side of a row; @arg: the lane. Runs turns on the first CPU. Return: requests per second. */
double bench_lane_rate(void *arg, uint64_t ns);

#endif /* BENCH_LANE_H */
