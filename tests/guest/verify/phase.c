// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* A phase: one kind of QP, many rounds of random operations, all memory compared after each. */
#include <stdio.h>
#include <string.h>

#include "verify.h"

static void for_each_end_here(struct run *run, void (*action)(struct run *, struct end *))
{
	for (int side = run->first; side <= run->last; side++)
		action(run, &run->ends[side]);
}

static void forget_completions(struct run *run, struct end *end)
{
	(void)run;
	end->sends = end->receives = (struct waiting){};
}

static void count_round(struct run *run)
{
	for (int i = 0; i < run->plan.num; i++) {
		const struct op *op = &run->plan.ops[i];

		run->bytes += op->length;
		run->kinds[op->kind]++;
		run->inlined += op->inlined;
		if (op->local.num > run->most_sges)
			run->most_sges = op->local.num;
	}
	run->operations += run->plan.num;
}

static void run_round(struct run *run, uint32_t ops_left)
{
	plan_round(&run->plan, &run->shape, run->round, ops_left);
	for_each_end_here(run, forget_completions);
	for_each_end_here(run, prepare_memory);
	for_each_end_here(run, post_receives);
	meet(run); /* all receives are there, all sources are written */
	for_each_end_here(run, post_sends);
	wait_for_all(run);
	meet(run); /* nothing moves any more */
	for_each_end_here(run, verify_memory);
	count_round(run);
}

static void open_phase(struct run *run, bool self)
{
	run->channel = NULL;
	if (run->params.events)
		run->channel = MUST_HAVE(ibv_create_comp_channel(run->node.ctx));
	for (int side = run->first; side <= run->last; side++)
		open_end(run, side, side && self ? &run->ends[0] : NULL);
	introduce_ends(run);
	for_each_end_here(run, connect_end);
}

static void close_phase(struct run *run)
{
	/* The end that shares goes first. */
	for (int side = run->last; side >= run->first; side--)
		close_end(&run->ends[side]);
	if (run->channel)
		MUST(ibv_destroy_comp_channel(run->channel));
}

static void shape_phase(struct run *run, const struct phase *phase)
{
	uint32_t packet = 128u << run->params.mtu, max = run->params.bytes_max;
	struct rng rng = { .state = run->params.seed };
	bool atomics = phase->kinds & KINDS_ATOMIC;

	run->phase = phase->name;
	run->type = phase->type;
	run->shape = (struct shape){
		.seed = run->params.seed,
		.bytes_max = phase->type == IBV_QPT_UD ? smaller(packet, max) : max,
		.depth = run->params.depth,
		.max_sge = run->params.max_sge,
		.max_sge_read = run->params.max_sge_read,
		.kinds = atomics && !offered(run, OFFER_ATOMICS) ? phase->kinds & ~KINDS_ATOMIC
								 : phase->kinds,
		.inline_max = run->params.inline_max,
		.skew = { rng_below(&rng, PLAN_PAGE), rng_below(&rng, PLAN_PAGE) },
		.edges = phase->edges,
		.datagram = phase->type == IBV_QPT_UD,
		.one_way = phase->self,
	};
}

static void print_phase(const struct run *run, uint64_t operations, uint64_t bytes)
{
	printf("verify: %s: %llu operations, %llu bytes, up to %d SGEs, %llu inline:", run->phase,
	       (unsigned long long)operations, (unsigned long long)bytes, run->most_sges,
	       (unsigned long long)run->inlined);
	for (int kind = 0; kind < KIND_NUM; kind++)
		if (run->shape.kinds & 1u << kind)
			printf(" %s %llu", kind_names[kind], (unsigned long long)run->kinds[kind]);
	putchar('\n');
	fflush(stdout);
}

void run_phase(struct run *run, const struct phase *phase)
{
	uint64_t first = run->operations, bytes = run->bytes;
	uint32_t left = run->params.iterations;

	shape_phase(run, phase);
	memset(run->kinds, 0, sizeof(run->kinds));
	run->inlined = run->most_sges = 0;
	open_phase(run, phase->self);
	for (; left; left -= run->plan.num) {
		run->round++;
		run_round(run, left);
	}
	meet(run);
	close_phase(run);
	print_phase(run, run->operations - first, run->bytes - bytes);
}
