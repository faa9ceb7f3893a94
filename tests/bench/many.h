/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/* Thousands of queue pairs between two fake guests. */
#ifndef BENCH_MANY_H
#define BENCH_MANY_H

#include "bench.h"
#include "pair.h"

#define BENCH_MANY_BATCH 64 /* maximum number of requests per visit: the depth of the send queues */

struct bench_many {
	struct bench_pair pair; /* guests, PDs, buffers; its own queue pair is not used */
	uint32_t n;
	struct fg_qp *a, *b; /* n each, connected pairwise */
	struct fg_cq *cq; /* ncq CQs of all queue pairs of a */
	uint32_t ncq;
};

void bench_many_open(struct bench_many *many, uint32_t n);
void bench_many_close(struct bench_many *many);

/* A round over queue pairs: the device executes the same number of requests of each. */
struct bench_visits {
	struct bench_many *many;
	uint32_t qps; /* number of queue pairs, visited one after the other */
	uint32_t wave; /* queue pairs to fill before the device runs; at most qps */
	uint32_t batch; /* requests per visit, the last one signaled */
};

/* A side of a row; @arg: struct bench_visits. Requests per second, as bench_load_rate(). */
double bench_visits_rate(void *arg, uint64_t ns);

#endif /* BENCH_MANY_H */
