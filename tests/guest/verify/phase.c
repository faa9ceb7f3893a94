/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/* A phase: one kind of QP, many rounds of random operations, all memory compared after each. */
#include <stdio.h>

#include "verify.h"

static void for_each_end_here(struct run *run, void (*action)(struct run *, struct end *))
{
	int side;

	for (side = 0; side < 2; side++)
		if (run->here[side])
			action(run, &run->ends[side]);
}

static void forget_completions(struct run *run, struct end *end)
{
	(void)run;
	end->sends = end->receives = (struct waiting){};
}

static void run_round(struct run *run, uint32_t ops_left)
{
	int i;

	plan_round(&run->plan, &run->shape, run->round, ops_left);
	for_each_end_here(run, forget_completions);
	for_each_end_here(run, prepare_memory);
	for_each_end_here(run, post_receives);
	meet(run); /* all receives are there, all sources are written */
	for_each_end_here(run, post_sends);
	wait_for_all(run);
	meet(run); /* nothing moves any more */
	for_each_end_here(run, verify_memory);
	for (i = 0; i < run->plan.num; i++)
		run->bytes += run->plan.ops[i].length;
	run->operations += run->plan.num;
}

static void open_phase(struct run *run, enum topology topology)
{
	int side;

	for (side = 0; side < 2; side++)
		if (run->here[side])
			open_end(run, side,
				 side && topology == TOPOLOGY_SELF ? &run->ends[0] : NULL);
	introduce_ends(run);
	for (side = 0; side < 2; side++)
		if (run->here[side] && !run->ends[side].shares)
			connect_end(run, &run->ends[side]);
}

static void close_phase(struct run *run)
{
	int side;

	/* The end that shares goes first. */
	for (side = 1; side >= 0; side--)
		if (run->here[side])
			close_end(&run->ends[side]);
}

void run_phase(struct run *run, const char *name, bool datagram, enum topology topology)
{
	uint64_t first = run->operations, bytes = run->bytes;
	uint32_t left = run->params.iterations, packet = 128u << run->params.mtu;

	run->phase = name;
	run->shape = (struct shape){
		.seed = run->params.seed,
		.bytes_max = datagram && packet < run->params.bytes_max ? packet :
									  run->params.bytes_max,
		.depth = run->params.depth,
		.max_sge = run->params.max_sge,
		.max_sge_read = run->params.max_sge_read,
		.datagram = datagram,
		.one_way = topology == TOPOLOGY_SELF,
	};
	open_phase(run, topology);
	for (; left; left -= run->plan.num) {
		run->round++;
		run_round(run, left);
	}
	meet(run);
	close_phase(run);
	printf("verify: %s: %llu operations, %llu bytes\n", name,
	       (unsigned long long)(run->operations - first),
	       (unsigned long long)(run->bytes - bytes));
	fflush(stdout);
}
