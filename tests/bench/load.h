/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/* Load of a pair, in batches: the guest fills the rings, then the device runs. */
#ifndef BENCH_LOAD_H
#define BENCH_LOAD_H

#include "bench.h"
#include "pair.h"

struct bench_load {
	struct bench_pair *pair;
	enum pvrdma_wr_opcode opcode;
	uint32_t size; /* bytes of each message */
	uint32_t batch; /* requests per doorbell; at most the depth */
	uint32_t signal_every; /* a divisor of the batch */
	bool in_line; /* inline data */
	size_t span; /* bytes of the buffers to use; 0: all */
	uint32_t rkey; /* key of the remote memory: dst's, or that of a region that covers it */
	/* Private: */
	size_t offset; /* offset of the next message, in both buffers */
	struct pvrdma_av av; /* of UD */
};

void bench_load_init(struct bench_load *load, struct bench_pair *pair, enum pvrdma_wr_opcode opcode,
		     uint32_t size);

/* Writes one request into the ring, without a doorbell; also its receive request. */
void bench_load_put(struct bench_load *load, bool signaled);
/* Writes a batch. */
void bench_load_fill(struct bench_load *load);
/* Rings the doorbell and runs the device until it is idle. */
void bench_load_run(struct bench_load *load);
/* Polls all completions and checks their number and status. */
void bench_load_reap(struct bench_load *load);
/* Batches for @ns, each written by @fill. Return: requests per second. */
double bench_load_rate_of(struct bench_load *load, uint64_t ns,
			  void (*fill)(struct bench_load *load, void *arg), void *arg);

/* Sides of rows; @arg is the load. Requests per second; bytes per second. */
double bench_load_rate(void *arg, uint64_t ns);
double bench_load_bandwidth(void *arg, uint64_t ns);
/*
 * memcpy() between the same buffers at the same places, by the mapping of a guest's
 * program.
 */
double bench_load_memcpy(void *arg, uint64_t ns);
/* The same page by page in guest RAM, without a contiguous mapping. */
double bench_load_memcpy_pages(void *arg, uint64_t ns);

#endif /* BENCH_LOAD_H */
