// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* One run: its config, its events in order, then the end, when all must be well. */
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "sim.h"

#include "core/adapter.h"
#include "core/objects.h"
#include "gid/resolve.h"
#include "path/pipe/host.h"
#include "rdma/worker.h"

/*
 * Without disturbances, all must end within this time. Streams lose nothing, so no queue pair needs to
 * try again: it is less than an ACK timeout. A lost frame costs some.
 */
#define TIME_TO_END (3 * FG_SEC)
#define TIME_OF_TIMEOUTS (57 * FG_SEC)
/* Within a host no timer is needed: this is less than the longest RNR timer, 655 ms. */
#define TIME_TO_END_LOCALLY (500 * FG_MS)
#define RNR_TIMER_MAX (700 * FG_MS)
/* All hosts of a file are queried so long; then a GID is absent for a second. */
#define TIME_OF_LOOKUP (5 * FG_SEC)
/* A datagram has no response; then the host that had its GID is queried again. */
#define TIME_OF_RECHECK (31 * FG_SEC)
#define TIME_OF_ROUND (5 * FG_MS)
/* The driver makes one absent page present in a round. */
#define TIME_OF_FAULTS (20 * FG_SEC)

struct sim_flow *sim_flow_of(struct sim *sim, unsigned int i)
{
	return &sim->pair[i / 2].flow[i % 2];
}

void sim_fail(struct sim *sim, const char *rule, const char *fmt, ...)
{
	va_list args;

	sim->trace.prints = false;
	sim_trace_report(&sim->trace);
	printf("seed %" PRIu64 ", event %u: rule '%s' is violated: ", sim->seed, sim->step, rule);
	va_start(args, fmt);
	vprintf(fmt, args);
	va_end(args);
	printf("\nrepeat: pvr_sim --seed %" PRIu64 " --trace\n", sim->seed);
	fflush(stdout);
	_exit(1);
}

/* ------------------------------------------------------------------------- config */

static uint32_t draw_of(struct sim_rng *rng, const uint32_t *values, uint32_t num)
{
	return values[sim_below(rng, num)];
}

#define DRAW_OF(rng, ...)                               \
	draw_of(rng, (const uint32_t[]){ __VA_ARGS__ }, \
		sizeof((const uint32_t[]){ __VA_ARGS__ }) / sizeof(uint32_t))

static void draw_op_weights(struct sim_config *config, struct sim_rng *rng)
{
	for (int i = 0; i < SIM_OPS; i++)
		config->op_weight[i] = sim_one_in(rng, 2) ? 0 : 1u << sim_below(rng, 4);
	/* What can always be posted. */
	config->op_weight[sim_one_in(rng, 2) ? SIM_SEND : SIM_WRITE] += 4;
}

/* Two hosts of a worker each; a frame may be lost, so there are timeouts. */
static void on_segment(struct sim_config *config)
{
	config->hosts = FG_SEGMENT_HOSTS;
	config->workers = 1;
	config->retries = 7;
	if (!config->timeout)
		config->timeout = 18;
}

/* Of at least 64 KiB, which take time. */
static void with_nics(struct sim_config *config, struct sim_rng *rng)
{
	config->nics = config->exposes = true;
	config->max_len = 100000;
	config->chunk = DRAW_OF(rng, 65536, 131072);
	config->buffer = 262144;
	config->pairs = 1 + sim_below(rng, 2);
	config->steps = (unsigned int)sim_scale(rng, 32, 300);
	config->eager = false;
	sim_focus(config, "break");
	sim_focus(config, "limit"); /* so that transfers last */
}

static void with_etcd(struct sim_config *config, struct sim_rng *rng)
{
	config->lease = DRAW_OF(rng, 2, 3, 5, 10);
	/* So long that leases end, and hosts that do not respond are given up. */
	config->max_pause = sim_scale(rng, 4 * FG_MS, FG_SEC);
	/* Else a message is sent thousands of times within a pause. */
	if (config->rnr_timer == 1)
		config->rnr_timer = 12;
	if (sim_one_in(rng, 2)) {
		sim_focus(config, "snapshot");
		sim_focus(config, "restore");
	} else {
		sim_focus(config, "directory");
		sim_focus(config, "etcd");
	}
	if (sim_one_in(rng, 2))
		sim_focus(config, "migrate");
	if (sim_one_in(rng, 4))
		sim_focus(config, "upgrade");
}

/* Of numbers of its own. */
static void draw_directory(struct sim_config *config, struct sim_rng rng)
{
	if (config->segment || config->nics || config->hosts < 2)
		return;
	config->directory = sim_one_in(&rng, 3)	  ? SIM_ETCD
			    : sim_one_in(&rng, 8) ? SIM_FILE
						  : SIM_TOLD;
	if (config->directory == SIM_ETCD)
		with_etcd(config, &rng);
	if (config->directory == SIM_FILE && sim_one_in(&rng, 2))
		sim_focus(config, "reload");
	/* Outages last longer than few retries. */
	if (config->directory != SIM_TOLD)
		config->retries = 7;
}

static void draw_config(struct sim_config *config, struct sim_rng *rng)
{
	const struct sim_rng of_directory = sim_rng_of(rng->state, 1);

	config->directory = SIM_TOLD;
	config->hosts = 1 + sim_below(rng, FG_WIRE_HOSTS);
	config->vms = 2 + sim_below(rng, sim_one_in(rng, 16) ? SIM_VMS - 1 : 4);
	config->pairs = 1 + sim_below(rng, sim_one_in(rng, 16) ? SIM_PAIRS : 5);
	config->uds = sim_one_in(rng, 2) ? 0 : 2 + sim_below(rng, SIM_UDS - 1);
	config->steps = (unsigned int)sim_scale(rng, 32, 2048);
	config->workers = 1 + sim_below(rng, 2);
	config->max_len = DRAW_OF(rng, 64, 1024, 5000, 16384, 65536);
	config->chunk = DRAW_OF(rng, 1024, 4096, 16384, 65536);
	config->buffer = DRAW_OF(rng, 16384, 65536, 262144);
	config->mtu = PVR_MTU_256 + sim_below(rng, 5);
	config->timeout = (uint8_t)DRAW_OF(rng, 0, 20, 20, 21);
	config->retries = (uint8_t)DRAW_OF(rng, 1, 2, 7);
	config->rnr_timer = (uint8_t)DRAW_OF(rng, 0, 1, 12);
	config->unsignaled = sim_one_in(rng, 2);
	config->max_pause = sim_scale(rng, 16 * FG_US, 32 * FG_MS);
	config->slots = 1 + sim_below(rng, 3);
	config->ext = sim_one_in(rng, 2) ? 0 : PVR_ENGINE_EXT & ~(uint32_t)PVR_EXT_RESP_POLL;
	config->polls = config->ext && sim_one_in(rng, 2);
	config->exposes = sim_one_in(rng, 2);
	config->sleeps = sim_one_in(rng, 2);
	config->on_demand = config->ext && sim_one_in(rng, 4);
	config->loses_directory = sim_one_in(rng, 4);
	config->dirty = sim_one_in(rng, 12);
	config->windows = config->ext && !config->on_demand && sim_one_in(rng, 3);
	/* Each page is mapped: a call of the kernel. */
	config->scattered = sim_one_in(rng, 4) && config->max_len <= 5000;
	config->eager = sim_one_in(rng, 3);
	config->segment = sim_one_in(rng, 4);
	if (config->segment)
		on_segment(config);
	draw_op_weights(config, rng);
	for (unsigned int i = 0; i < sim_num_events(); i++)
		config->weight[i] = sim_draw_weight(i, rng);
	if (!config->segment && !config->scattered && sim_one_in(rng, 8))
		with_nics(config, rng);
	draw_directory(config, of_directory);
}

unsigned int sim_steps(uint64_t seed)
{
	struct sim_rng rng = sim_rng_of(seed, 0);
	struct sim_config config;

	draw_config(&config, &rng);
	return config.steps;
}

/* -------------------------------------------------------------------------- a life */

static void trace_config(struct sim *sim)
{
	const struct sim_config *config = &sim->config;

	sim_trace(&sim->trace,
		  "%u hosts of %u workers, %u VMs, %u pairs, %u UD, %u events of up to %" PRIu64
		  " ns, messages of up to %u",
		  config->hosts, config->workers, config->vms, config->pairs, config->uds,
		  config->steps, config->max_pause, config->max_len);
	sim_trace(&sim->trace, "chunk %u, buffer %u, MTU %u, timeout %u, %u retries%s",
		  config->chunk, config->buffer, 128u << config->mtu, config->timeout,
		  config->retries, config->unsignaled ? ", unsignaled requests" : "");
	sim_trace(&sim->trace, "%u connections, extensions 0x%x%s%s%s%s%s%s%s%s%s", config->slots,
		  config->ext, config->polls ? ", workers poll" : "",
		  config->eager ? ", eager programs" : "", config->exposes ? ", NICs read" : "",
		  config->on_demand ? ", pages on demand" : "", config->windows ? ", windows" : "",
		  config->dirty ? ", a log of dirty pages" : "",
		  config->scattered ? ", scattered" : "", config->sleeps ? ", programs sleep" : "",
		  config->segment		  ? ", an Ethernet"
		  : config->directory == SIM_ETCD ? ", etcd"
		  : config->directory == SIM_FILE ? ", a file of peers"
		  : config->loses_directory	  ? ", the directory can be lost"
						  : "");
}

static void open_world(struct sim *sim, struct sim_rng *rng)
{
	const struct sim_config *config = &sim->config;
	/* XRC and UC are extensions. */
	const uint32_t types = config->ext ? SIM_TYPES : SIM_XRC;
	enum sim_type type;

	fg_traps_on = config->dirty;
	fg_trap_install();
	sim_world_open(sim);
	sim_chance_init(sim->seed, &sim_host(sim, 0)->now);
	sim->trace.now = &sim_host(sim, 0)->now;
	fg_default_ext = config->ext;
	for (unsigned int i = 0; i < config->vms; i++)
		sim_vm_start(sim, &sim->vm[i], i + 1, sim_below(rng, config->hosts));
	sim_run(sim);
	for (unsigned int i = 0; i < config->pairs; i++) {
		unsigned int a = sim_below(rng, config->vms);
		unsigned int b = (a + 1 + sim_below(rng, config->vms - 1)) % config->vms;

		type = sim_one_in(rng, 2) ? SIM_RC : (enum sim_type)sim_below(rng, types);
		/* No RoCE endpoint executes it, see docs/native-endpoints.md. */
		if (type == SIM_XRC && config->segment)
			type = SIM_RC;
		sim_pair_open(sim, &sim->pair[i], type, &sim->vm[a], &sim->vm[b]);
		sim_trace(&sim->trace, "flow%u: %s, vm%u at host%u to vm%u at host%u", 2 * i,
			  sim_type_name(type), a + 1, sim->vm[a].host + 1, b + 1,
			  sim->vm[b].host + 1);
	}
	for (unsigned int i = 0; i < config->uds; i++)
		sim_ud_open(sim, &sim->ud[i], &sim->vm[sim_below(rng, config->vms)]);
	sim_run(sim);
}

void sim_poll_all(struct sim *sim)
{
	for (unsigned int i = 0; i < sim->config.vms; i++)
		sim_poll_events(sim, &sim->vm[i]);
	for (unsigned int i = 0; i < 2 * sim->config.pairs; i++) {
		sim_poll_sent(sim, sim_flow_of(sim, i));
		sim_poll_received(sim, sim_flow_of(sim, i));
	}
	for (unsigned int i = 0; i < sim->config.uds; i++)
		sim_ud_poll(sim, &sim->ud[i]);
}

static void go_on(struct sim *sim, bool all)
{
	sim_net_mend(sim, all);
	sim_operator_mend(sim, all);
	for (unsigned int i = 0; i < sim->config.vms; i++)
		sim_move_step(sim, &sim->vm[i]);
	for (unsigned int i = 0; i < sim->config.pairs; i++)
		sim_break_mend(sim, &sim->pair[i], all);
}

/* ------------------------------------------------------------------------- the end */

static bool is_idle(struct sim *sim)
{
	for (unsigned int i = 0; i < sim->config.vms; i++)
		if (sim->vm[i].phase != SIM_HOME)
			return false;
	for (unsigned int i = 0; i < 2 * sim->config.pairs; i++)
		if (!sim_flow_is_idle(sim_flow_of(sim, i)))
			return false;
	for (unsigned int i = 0; i < sim->config.uds; i++)
		if (!sim_ud_is_idle(sim, &sim->ud[i]))
			return false;
	return true;
}

/* Without signaled requests the program never learns of the end of the others. */
static void post_last(struct sim *sim, struct sim_rng *rng)
{
	for (unsigned int i = 0; i < 2 * sim->config.pairs; i++) {
		struct sim_flow *flow = sim_flow_of(sim, i);

		while (sim_vm_runs(flow->from->vm) && flow->ends_unsignaled &&
		       sim_flow_post(sim, flow, rng))
			;
		sim_flow_probe(sim, flow, rng);
	}
	for (unsigned int i = 0; i < sim->config.uds; i++)
		sim_ud_probe(sim, &sim->ud[i], rng);
}

static void receive_all(struct sim *sim, struct sim_rng *rng)
{
	for (unsigned int i = 0; i < 2 * sim->config.pairs; i++) {
		struct sim_flow *flow = sim_flow_of(sim, i);

		while (sim_vm_runs(flow->to->vm) && sim_flow_post_recv(sim, flow, rng))
			;
	}
	for (unsigned int i = 0; i < sim->config.uds; i++)
		while (sim_vm_runs(sim->ud[i].end.vm) && sim_ud_post_recv(sim, &sim->ud[i], rng))
			;
}

/* What the engine of a requester knows: no part of the oracle. */
static void trace_requester(struct sim *sim, const struct sim_flow *flow)
{
	struct pvr_adapter *adapter = flow->from->vm->guest->adapter;
	struct pvr_qp *qp = pvr_qp_get(adapter, flow->from->fg.qp.handle);
	struct pvr_host *host;

	pvr_adapter_lock(adapter);
	host = pvr_gid_find_host(adapter, flow->to->fg.gid);
	pvr_adapter_unlock(adapter);
	sim_trace(&sim->trace,
		  "flow%u at host%u: state %u, wait %u, %u in flight, peer at %s, connections %#x",
		  flow->number, flow->from->vm->host + 1, qp->state, qp->wait, qp->sq_inflight,
		  host ? pvr_host_name(host) : "none", host ? host->out[PVR_PIPE_TCP].up : 0);
}

/* What is lost is sent again after an ACK timeout. */
static bool loses(const struct sim *sim, const struct sim_pair *pair)
{
	return sim->segment || pair->end[0].vm->lost_link || pair->end[1].vm->lost_link;
}

/* @late: ns since the end; @all: also of pairs that lose messages. */
static void report_stuck(struct sim *sim, uint64_t late, bool all)
{
	for (unsigned int i = 0; i < sim->config.vms; i++)
		if (sim->vm[i].phase != SIM_HOME)
			sim_fail(sim, "liveness", "vm%u: its migration does not end (phase %d)",
				 i + 1, sim->vm[i].phase);
	for (unsigned int i = 0; i < 2 * sim->config.pairs; i++) {
		struct sim_flow *flow = sim_flow_of(sim, i);

		if (sim_flow_is_idle(flow) || (!all && loses(sim, flow->pair)))
			continue;
		trace_requester(sim, flow);
		sim_fail(sim, "liveness",
			 "flow%u from vm%u to vm%u: %" PRIu64 " of %" PRIu64
			 " requests have completed, %" PRIu64 " of %" PRIu64
			 " messages were received",
			 flow->number, flow->from->vm->number, flow->to->vm->number, flow->done,
			 flow->posted, flow->taken, flow->takers);
	}
	for (unsigned int i = 0; i < sim->config.uds; i++) {
		const struct sim_ud *ud = &sim->ud[i];

		if (sim->config.directory == SIM_FILE && late < TIME_OF_RECHECK)
			continue;

		if (!sim_ud_is_idle(sim, ud))
			sim_fail(
				sim, "liveness",
				"ud%u: %u of %u requests have completed, and none of the last %u arrived",
				i, ud->done, ud->posted, ud->posted - ud->probe);
	}
}

/* A VM that was loaded may wait for an RNR timer that began before. */
static bool stays(const struct sim *sim, const struct sim_vm *vm)
{
	return vm->phase == SIM_HOME && vm->loaded + RNR_TIMER_MAX < sim_now(sim);
}

/* VMs of one host that nothing moves any more, and no fault on demand has made wait for a timer. */
static bool is_prompt(const struct sim *sim, const struct sim_pair *pair)
{
	const struct sim_vm *a = pair->end[0].vm, *b = pair->end[1].vm;

	return stays(sim, a) && stays(sim, b) && a->host == b->host && !pair->is_broken &&
	       pair->type != SIM_UC && !sim->had_faults && !loses(sim, pair);
}

static void expect_prompt_ends(struct sim *sim, const bool *prompt)
{
	for (unsigned int i = 0; i < 2 * sim->config.pairs; i++)
		if (prompt[i / 2] && !sim_flow_is_idle(sim_flow_of(sim, i))) {
			trace_requester(sim, sim_flow_of(sim, i));
			sim_fail(sim, "prompt", "flow%u waits, but its peer is at the same host",
				 sim_flow_of(sim, i)->number);
		}
}

static bool has_demand(const struct sim *sim)
{
	for (unsigned int i = 0; i < sim->config.pairs; i++)
		if (sim->pair[i].end[0].demand.is || sim->pair[i].end[1].demand.is)
			return true;
	return false;
}

/* The claims of a process that has ended stay in etcd as long as its lease. */
static uint64_t time_to_end(const struct sim *sim)
{
	uint64_t ns = TIME_TO_END;

	if (has_demand(sim))
		ns += TIME_OF_FAULTS;
	if (sim->config.directory == SIM_FILE)
		ns += TIME_OF_LOOKUP;
	if (sim->config.directory == SIM_ETCD)
		ns += sim->config.lease * FG_SEC + (sim->outages ? SIM_ETCD_PAUSE : 0);
	return ns;
}

/* Programs that connect again disturb others for a moment. */
static bool is_connected(const struct sim *sim)
{
	for (unsigned int i = 0; i < sim->config.pairs; i++)
		if (sim->pair[i].is_broken || sim->pair[i].is_half)
			return false;
	return true;
}

/* Without disturbances each request completes. */
static void settle(struct sim *sim, struct sim_rng *rng)
{
	uint64_t end = sim_now(sim) + time_to_end(sim), last = end + time_to_end(sim);
	uint64_t soon = sim_now(sim) + TIME_TO_END_LOCALLY, before;
	bool prompt[SIM_PAIRS], is_long;

	sim_trace(&sim->trace, "the end begins");
	for (unsigned int i = 0; i < sim->config.pairs; i++)
		prompt[i] = is_prompt(sim, &sim->pair[i]);
	sim_net_calm(sim);
	sim_operator_calm(sim);
	for (;;) {
		before = sim_now(sim);
		go_on(sim, true);
		/* Programs do nothing meanwhile. */
		soon += sim_now(sim) - before;
		sim_verbs_end_drains(sim);
		receive_all(sim, rng);
		post_last(sim, rng);
		sim_poll_all(sim);
		if (is_idle(sim))
			return;
		if (!is_connected(sim) && end < last)
			end = sim_now(sim) + time_to_end(sim);
		if (sim_now(sim) > soon)
			expect_prompt_ends(sim, prompt);
		if (sim_now(sim) > end)
			report_stuck(sim, sim_now(sim) - end,
				     sim_now(sim) > end + TIME_OF_TIMEOUTS);
		is_long = sim->segment || sim_now(sim) > soon;
		sim_pass_time(sim, is_long ? 10 * TIME_OF_ROUND : TIME_OF_ROUND);
	}
}

static void close_world(struct sim *sim)
{
	for (unsigned int i = 0; i < 2 * sim->config.pairs; i++)
		sim_oracle_end(sim, sim_flow_of(sim, i));
	for (unsigned int i = 0; i < sim->config.pairs; i++)
		for (unsigned int k = 0; k < 2; k++)
			if (sim->pair[i].end[k].srq)
				sim_srq_check(sim, sim->pair[i].end[k].srq);
	for (unsigned int i = 0; i < sim->config.pairs; i++)
		sim_pair_close(&sim->pair[i]);
	for (unsigned int i = 0; i < sim->config.uds; i++)
		fg_end_close(&sim->ud[i].end.fg);
	for (unsigned int i = 0; i < sim->config.vms; i++)
		sim_vm_end(sim, &sim->vm[i]);
	fg_traps_on = false;
	sim_world_close(sim);
}

struct sim_result sim_run_seed(const struct sim_order *order)
{
	static const uint64_t no_time;
	struct sim *sim = calloc(1, sizeof(*sim));
	struct sim_rng rng = sim_rng_of(order->seed, 0), of_event;
	struct sim_result result = { 0 };

	if (!sim)
		fg_die("out of memory");
	sim->seed = order->seed;
	sim_trace_init(&sim->trace, &no_time, order->prints);
	sim_chance_init(order->seed, NULL);
	draw_config(&sim->config, &rng);
	trace_config(sim);
	open_world(sim, &rng);
	for (sim->step = 0; sim->step < sim->config.steps; sim->step++) {
		if (order->left_out && order->left_out[sim->step])
			continue;
		go_on(sim, false);
		of_event = sim_rng_of(order->seed, sim->step + 1);
		sim_event(sim, &of_event);
	}
	settle(sim, &rng);
	sim_calm(sim, &rng);
	result.hash = sim->trace.hash;
	result.steps = sim->config.steps;
	close_world(sim);
	sim->count.runs = 1;
	sim->count.hash = result.hash;
	result.count = sim->count;
	sim_chance_init(0, NULL);
	free(sim);
	return result;
}
