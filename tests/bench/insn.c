// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Instructions per operation: constant work, counted by callgrind.
 *
 * Run by scripts/bench/bench_lib/insn.py under "valgrind --tool=callgrind
 * --collect-atstart=no". It counts only the work of the device, and not that of the first
 * run. Each case makes a dump, named "<case> <operations>". "--compiler" prints the
 * compiler of this program.
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#if __has_include(<valgrind/callgrind.h>)
#include <valgrind/callgrind.h>
#define HAVE_CALLGRIND 1
#else
#define HAVE_CALLGRIND 0
#define CALLGRIND_TOGGLE_COLLECT
#define CALLGRIND_ZERO_STATS
#define CALLGRIND_DUMP_STATS_AT(name) ((void)(name))
#endif

#include "load.h"

#define WARM_UP 4 /* warm-up batches: two rounds of the rings */
#define BATCHES 16

struct insn_case {
	const char *name;
	enum pvr_qp_type type;
	enum pvrdma_wr_opcode opcode;
	uint32_t size, batch, signal_every; /* see struct bench_load */
	void (*run)(struct bench_load *load); /* what is counted */
	uint32_t max_inline; /* not 0: inline data */
};

/* An armed CQ: the completion makes an event and an interrupt. Armed by doorbell. */
static void run_armed(struct bench_load *load)
{
	fg_cq_arm(&load->pair->a.scq);
	bench_load_run(load);
}

/* Armed by the arm record. */
static void run_armed_in_memory(struct bench_load *load)
{
	fg_cq_arm_in_memory(&load->pair->a.scq, PVR_CQ_ARM_ANY);
	bench_load_run(load);
}

/* Rings the doorbell only if the device does not poll the queue pair. */
static void run_polling(struct bench_load *load)
{
	struct pvr_engine *engine = load->pair->host->engine;

	if (!pvr_engine_poll(engine, 0))
		fg_ring_send(&load->pair->a.qp);
	while (pvr_engine_run(engine, 0))
		;
}

static const struct insn_case cases[] = {
	{ "write.8", PVR_QPT_RC, PVRDMA_WR_RDMA_WRITE, 8, 64, 64, bench_load_run, 0 },
	{ "write_signaled.8", PVR_QPT_RC, PVRDMA_WR_RDMA_WRITE, 8, 64, 1, bench_load_run, 0 },
	{ "write_single.8", PVR_QPT_RC, PVRDMA_WR_RDMA_WRITE, 8, 1, 1, bench_load_run, 0 },
	{ "write.4096", PVR_QPT_RC, PVRDMA_WR_RDMA_WRITE, 4096, 64, 64, bench_load_run, 0 },
	{ "write.65536", PVR_QPT_RC, PVRDMA_WR_RDMA_WRITE, 65536, 8, 8, bench_load_run, 0 },
	{ "send.8", PVR_QPT_RC, PVRDMA_WR_SEND, 8, 64, 64, bench_load_run, 0 },
	{ "write_inline.8", PVR_QPT_RC, PVRDMA_WR_RDMA_WRITE, 8, 64, 64, bench_load_run, 64 },
	{ "atomic.8", PVR_QPT_RC, PVRDMA_WR_ATOMIC_FETCH_AND_ADD, 8, 64, 64, bench_load_run, 0 },
	{ "read.8", PVR_QPT_RC, PVRDMA_WR_RDMA_READ, 8, 64, 64, bench_load_run, 0 },
	{ "ud_send.8", PVR_QPT_UD, PVRDMA_WR_SEND, 8, 64, 64, bench_load_run, 0 },
	{ "cq_event.8", PVR_QPT_RC, PVRDMA_WR_RDMA_WRITE, 8, 1, 1, run_armed, 0 },
	{ "cq_event_memory.8", PVR_QPT_RC, PVRDMA_WR_RDMA_WRITE, 8, 1, 1, run_armed_in_memory, 0 },
	{ "write_polling.8", PVR_QPT_RC, PVRDMA_WR_RDMA_WRITE, 8, 64, 64, run_polling, 0 },
	{ "write_single_polling.8", PVR_QPT_RC, PVRDMA_WR_RDMA_WRITE, 8, 1, 1, run_polling, 0 },
	/* without new requests */
	{ "doorbell", PVR_QPT_RC, PVRDMA_WR_RDMA_WRITE, 8, 0, 1, bench_load_run, 0 },
};

static void batch(const struct insn_case *c, struct bench_load *load, bool counted)
{
	bench_load_fill(load);
	if (counted)
		CALLGRIND_TOGGLE_COLLECT;
	c->run(load);
	if (counted)
		CALLGRIND_TOGGLE_COLLECT;
	bench_load_reap(load);
	/* As the driver does: empties the ring of notifications. */
	fg_cq_events_count(load->pair->guest[0], load->pair->a.scq.handle);
}

static void run_case(const struct insn_case *c)
{
	struct bench_load load;
	struct bench_pair pair;
	char name[64];

	bench_pair_open(&pair, &(struct bench_pair_config){ .type = c->type,
							    .depth = 128,
							    .max_inline = c->max_inline });
	bench_load_init(&load, &pair, c->opcode, c->size);
	load.in_line = c->max_inline;
	load.batch = c->batch;
	load.signal_every = c->signal_every;
	for (int i = 0; i < WARM_UP; i++)
		batch(c, &load, false);
	CALLGRIND_ZERO_STATS;
	for (int i = 0; i < BATCHES; i++)
		batch(c, &load, true);
	snprintf(name, sizeof(name), "%s %" PRIu32, c->name, BATCHES * (c->batch ? c->batch : 1));
	CALLGRIND_DUMP_STATS_AT(name);
	bench_pair_close(&pair);
}

/* The counts depend on the compiler. */
static void print_compiler(void)
{
#ifdef __clang__
	printf("clang %d.%d.%d\n", __clang_major__, __clang_minor__, __clang_patchlevel__);
#else
	printf("gcc %d.%d.%d\n", __GNUC__, __GNUC_MINOR__, __GNUC_PATCHLEVEL__);
#endif
}

int main(int argc, char **argv)
{
	if (argc == 2 && !strcmp(argv[1], "--compiler")) {
		print_compiler();
		return 0;
	}
	if (!HAVE_CALLGRIND) {
		fprintf(stderr, "built without valgrind/callgrind.h, of the package valgrind\n");
		return 77;
	}
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		run_case(&cases[i]);
	return 0;
}
