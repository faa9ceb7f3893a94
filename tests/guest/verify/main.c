// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Does RDMA move the right bytes to the right place, and no others? Two processes (or two QPs of
 * one) run random operations in rounds; after each round each end compares all of its memory with
 * what the plan says, byte by byte. See plan.h.
 *
 * A client of libibverbs only: it runs on any RoCE device.
 */
#include <stdio.h>

#include "oob.h"
#include "verify.h"

static void open_node(struct run *run, const struct options *options)
{
	node_open(&run->node);
	run->params = options->params;
	run->params.max_sge = smaller(run->node.dev.max_sge, PLAN_MAX_SGE);
	run->params.max_sge_read = smaller(run->params.max_sge, run->node.dev.max_sge_rd);
	if (!run->params.max_sge_read)
		run->params.max_sge_read = 1;
	run->params.mtu = run->node.port.active_mtu;
	run->params.offers = probe_offers(run);
	if (options->skip_windows)
		run->params.offers &= ~(1u << OFFER_MW1 | 1u << OFFER_MW2);
	if (options->reliable)
		run->params.offers &= ~(1u << OFFER_UC | 1u << OFFER_UD);
}

static void open_ends_of(struct run *run, const struct options *options)
{
	run->fd = -1;
	run->first = options->both_ends_here || options->peer ? 0 : 1;
	run->last = options->peer ? 0 : 1;
	if (options->both_ends_here)
		return;
	run->fd = oob_open(options->peer, options->port);
	agree(run, options->peer);
}

static const struct phase phases[] = {
	{ .name = "RC", .type = IBV_QPT_RC, .kinds = KINDS_RC | KINDS_ATOMIC },
	{ .name = "RC at the edges of pages", .type = IBV_QPT_RC, .kinds = KINDS_RC, .edges = true },
	{ .name = "RC to itself",
	  .type = IBV_QPT_RC,
	  .kinds = KINDS_RC | KINDS_ATOMIC,
	  .self = true },
	{ .name = "UC", .type = IBV_QPT_UC, .kinds = KINDS_UC },
	{ .name = "UD", .type = IBV_QPT_UD, .kinds = KINDS_UD },
};

static bool has_type(const struct run *run, enum ibv_qp_type type)
{
	if (type == IBV_QPT_UC)
		return offered(run, OFFER_UC);
	return type != IBV_QPT_UD || offered(run, OFFER_UD);
}

static void run_phases(struct run *run)
{
	for (size_t i = 0; i < sizeof(phases) / sizeof(phases[0]); i++) {
		if (phases[i].self && run->fd >= 0)
			continue; /* there are two devices */
		if (has_type(run, phases[i].type))
			run_phase(run, &phases[i]);
	}
	if (offered(run, OFFER_SRQ))
		run_srq(run);
	if (offered(run, OFFER_ATOMICS))
		run_contention(run);
	if (offered(run, OFFER_MW1))
		run_windows(run, IBV_MW_TYPE_1);
	if (offered(run, OFFER_MW2))
		run_windows(run, IBV_MW_TYPE_2);
}

int main(int argc, char **argv)
{
	struct options options = parse_options(argc, argv);
	static struct run run;

	open_node(&run, &options);
	open_ends_of(&run, &options);
	printf("verify: %s, GID index %d, seed %llu, up to %u bytes, %u SGEs, %u outstanding%s\n",
	       ibv_get_device_name(run.node.ctx->device), run.node.gid_index,
	       (unsigned long long)run.params.seed, run.params.bytes_max, run.params.max_sge,
	       run.params.depth, run.params.events ? ", events" : "");
	fflush(stdout);
	print_not_offered(&run);
	run_phases(&run);
	node_close(&run.node);
	printf("verify: %llu operations, %llu bytes, %u errors\n",
	       (unsigned long long)run.operations, (unsigned long long)run.bytes, run.errors);
	return run.errors ? 1 : 0;
}
