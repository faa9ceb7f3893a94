/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/* Thousands of queue pairs between two fake guests. */
#ifndef BENCH_MANY_H
#define BENCH_MANY_H

#include "bench.h"
#include "pair.h"

#define BENCH_MANY_BATCH 64 /* requests of a visit at most: the depth of the send queues */

struct bench_many {
	struct bench_pair pair; /* guests, PDs, buffers; its own queue pair is not used */
	uint32_t n;
	struct fg_qp *a, *b; /* n each, connected one to one */
	struct fg_cq *cq; /* ncq, of all of a */
	uint32_t ncq;
};

void bench_many_open(struct bench_many *many, uint32_t n);
void bench_many_close(struct bench_many *many);

/* A round of the device over queue pairs, each visit with the same requests. */
struct bench_visits {
	struct bench_many *many;
	uint32_t qps; /* how many are visited, one after the other */
	uint32_t wave; /* so many are filled before the device runs; at most qps */
	uint32_t batch; /* requests of a visit, the last one signaled */
};

/* A side of a row; @arg: struct bench_visits. Requests per second, as bench_load_rate(). */
double bench_visits_rate(void *arg, uint64_t ns);

#endif /* BENCH_MANY_H */
