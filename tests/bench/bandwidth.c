// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* RDMA WRITE and READ of all sizes, compared with memcpy between the same buffers. */
#include <stdio.h>

#include "load.h"

#define COLD_BYTES (32u << 20) /* bytes of each buffer: both together exceed the caches */
#define BATCH_BYTES (1u << 20)

static const struct verb {
	const char *name;
	enum pvrdma_wr_opcode opcode;
} verbs[] = {
	{ "write_bw", PVRDMA_WR_RDMA_WRITE },
	{ "read_bw", PVRDMA_WR_RDMA_READ },
};

/*
 * A batch is long compared with reading the clock, and short compared with a time slice.
 */
static uint32_t batch_of(uint32_t size)
{
	uint32_t n = BATCH_BYTES / size;

	return n < 4 ? 4 : n > 128 ? 128 : n;
}

/* The pair, and the side to compare with. */
static const struct flavour {
	const char *suffix;
	enum fg_buf_kind kind;
	const char *peer;
	double (*copy)(void *arg, uint64_t ns);
	uint32_t pages; /* bytes of each buffer to use; 0: one message, always at the same place */
	uint32_t first, last; /* sizes */
} flavours[] = {
	/* The same message repeatedly, as perftest does: it stays in the caches. */
	{ "", FG_SCATTERED, "memcpy", bench_load_memcpy, 0, 8, 4u << 20 },
	{ "_linear", FG_LINEAR, "memcpy", bench_load_memcpy, 0, 64u << 10, 1u << 20 },
	{ "_pages", FG_SCATTERED, "memcpy_pages", bench_load_memcpy_pages, 0, 64u << 10, 1u << 20 },
	/* Each message at another place. */
	{ "_cold", FG_SCATTERED, "memcpy", bench_load_memcpy, COLD_BYTES / PVR_PAGE_SIZE, 64u << 10,
	  1u << 20 },
};

static void row(struct bench_pair *pair, const struct verb *verb, const struct flavour *flavour,
		uint32_t size)
{
	struct bench_load load;
	struct bench_side us = { "device", bench_load_bandwidth, &load };
	struct bench_side peer = { flavour->peer, flavour->copy, &load };
	char name[32];

	bench_load_init(&load, pair, verb->opcode, size);
	load.batch = load.signal_every = batch_of(size);
	snprintf(name, sizeof(name), "%s%s", verb->name, flavour->suffix);
	bench_row_of(name, size, "B/s", &us, &peer);
}

/*
 * Both kinds of memcpy() between them: the difference is the cost of memory without a
 * contiguous mapping.
 */
static void copies_row(struct bench_pair *pair, const struct flavour *flavour, uint32_t size)
{
	struct bench_load load;
	struct bench_side us = { "memcpy_pages", bench_load_memcpy_pages, &load };
	struct bench_side peer = { "memcpy", bench_load_memcpy, &load };
	char name[32];

	bench_load_init(&load, pair, PVRDMA_WR_RDMA_WRITE, size);
	snprintf(name, sizeof(name), "memcpy_pages%s", flavour->suffix);
	bench_row_of(name, size, "B/s", &us, &peer);
}

static bool has_copies_row(const struct verb *verb, const struct flavour *flavour, uint32_t size)
{
	return verb == verbs && flavour->kind == FG_SCATTERED &&
	       flavour->copy == bench_load_memcpy && (size == 64u << 10 || size == 1u << 20);
}

/* As pvrdmad does at start; the clock of the fake guests stands still. */
static void measure_copy(struct fg_host *host)
{
	host->real_now = bench_now;
	pvr_engine_measure_copy(host->engine);
	host->real_now = NULL;
}

static void rows(const struct verb *verb, const struct flavour *flavour)
{
	struct bench_pair_config config = { .kind = flavour->kind, .type = PVR_QPT_RC };
	struct bench_pair pair;

	/* Powers of two for a curve, otherwise sizes with a target. */
	for (uint32_t size = flavour->first; size <= flavour->last;
	     size *= flavour->first == 8 ? 2 : 16) {
		config.pages = flavour->pages ? flavour->pages
					      : (size + PVR_PAGE_SIZE - 1) / PVR_PAGE_SIZE;
		bench_pair_open(&pair, &config);
		measure_copy(pair.host);
		row(&pair, verb, flavour, size);
		if (has_copies_row(verb, flavour, size))
			copies_row(&pair, flavour, size);
		bench_pair_close(&pair);
	}
}

void bench_bandwidth(void)
{
	for (size_t i = 0; i < sizeof(flavours) / sizeof(flavours[0]); i++)
		for (size_t j = 0; j < sizeof(verbs) / sizeof(verbs[0]); j++)
			rows(&verbs[j], &flavours[i]);
}
