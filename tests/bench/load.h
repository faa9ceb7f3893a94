/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/* What a pair is given to do, in batches: the rings are filled, then the device runs. */
#ifndef BENCH_LOAD_H
#define BENCH_LOAD_H

#include "bench.h"
#include "pair.h"

struct bench_load {
	struct bench_pair *pair;
	enum pvrdma_wr_opcode opcode;
	uint32_t size; /* bytes of each message */
	uint32_t batch; /* requests from one doorbell to the next; at most the depth */
	uint32_t signal_every; /* a divisor of the batch */
	bool in_line; /* requests bring their data along */
	size_t span; /* of the buffers, that messages go through; all */
	uint32_t rkey; /* of what requests write to or read: dst's, or another that covers it */
	/* Private: */
	size_t offset; /* of the next message, in both buffers */
	struct pvrdma_av av; /* of UD */
};

void bench_load_init(struct bench_load *load, struct bench_pair *pair, enum pvrdma_wr_opcode opcode,
		     uint32_t size);

/* One request into the ring, without a doorbell; with its receive request. */
void bench_load_put(struct bench_load *load, bool signaled);
/* A batch of them. */
void bench_load_fill(struct bench_load *load);
/* The doorbell, and the device until it has nothing to do. */
void bench_load_run(struct bench_load *load);
/* Polls all completions, which must be as many as expected, and successes. */
void bench_load_reap(struct bench_load *load);

/* Sides of rows; @arg is the load. Requests per second; bytes per second. */
double bench_load_rate(void *arg, uint64_t ns);
double bench_load_bandwidth(void *arg, uint64_t ns);
/* memcpy() between the same buffers at the same places, as a guest's program sees them. */
double bench_load_memcpy(void *arg, uint64_t ns);
/* The same, page by page where they lie in RAM, as whoever has no mapping of them must. */
double bench_load_memcpy_pages(void *arg, uint64_t ns);

#endif /* BENCH_LOAD_H */
