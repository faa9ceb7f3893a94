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

#define TIME_TO_END (3 * FG_SEC) /* without disturbances; less than a retry of a queue pair */
#define TIME_OF_ROUND (5 * FG_MS)

uint64_t sim_now(const struct sim *sim)
{
	return fg_wire_host(sim->wire, 0)->now;
}

void sim_pass_time(struct sim *sim, uint64_t ns)
{
	uint64_t passed = fg_wire_settle(sim->wire, ns);

	/* Without a deadline the clock stands still. */
	if (passed < ns)
		fg_wire_advance(sim->wire, ns - passed);
}

struct sim_rc *sim_rc_of(struct sim *sim, unsigned int i)
{
	return &sim->pair[i / 2].rc[i % 2];
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

static void draw_rc_weights(struct sim_config *config, struct sim_rng *rng)
{
	for (int i = 0; i < SIM_RC_KINDS; i++)
		config->rc_weight[i] = sim_one_in(rng, 2) ? 0 : 1u << sim_below(rng, 4);
	/* What can always be posted. */
	config->rc_weight[sim_one_in(rng, 2) ? SIM_SEND : SIM_WRITE] += 4;
}

static void draw_config(struct sim_config *config, struct sim_rng *rng)
{
	config->hosts = 1 + sim_below(rng, FG_WIRE_HOSTS);
	config->vms = 2 + sim_below(rng, 4);
	config->pairs = 1 + sim_below(rng, 4);
	config->steps = (unsigned int)sim_scale(rng, 32, 512);
	config->workers = 1 + sim_below(rng, 2);
	config->max_len = DRAW_OF(rng, 64, 1024, 5000, 16384, 65536);
	config->chunk = DRAW_OF(rng, 1024, 4096, 16384, 65536);
	config->buffer = DRAW_OF(rng, 16384, 65536, 262144);
	config->mtu = PVR_MTU_256 + sim_below(rng, 5);
	config->timeout = (uint8_t)DRAW_OF(rng, 0, 20, 20, 21);
	config->unsignaled = sim_one_in(rng, 2);
	config->max_pause = sim_scale(rng, 16 * FG_US, 32 * FG_MS);
	config->slots = 1 + sim_below(rng, 3);
	config->ext = sim_one_in(rng, 2) ? 0 : PVR_ENGINE_EXT & ~(uint32_t)PVR_EXT_RESP_POLL;
	config->polls = config->ext && sim_one_in(rng, 2);
	config->exposes = sim_one_in(rng, 2);
	config->sleeps = sim_one_in(rng, 2);
	config->loses_directory = sim_one_in(rng, 4);
	draw_rc_weights(config, rng);
	for (unsigned int i = 0; i < sim_num_events(); i++)
		config->weight[i] = sim_draw_weight(i, rng);
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
		  "%u hosts of %u workers, %u VMs, %u pairs, %u events of up to %" PRIu64
		  " ns, messages of up to %u",
		  config->hosts, config->workers, config->vms, config->pairs, config->steps,
		  config->max_pause, config->max_len);
	sim_trace(&sim->trace, "chunk %u, buffer %u, MTU %u, timeout %u%s", config->chunk,
		  config->buffer, 128u << config->mtu, config->timeout,
		  config->unsignaled ? ", unsignaled requests" : "");
	sim_trace(&sim->trace, "%u connections, extensions 0x%x%s%s%s%s", config->slots,
		  config->ext, config->polls ? ", workers poll" : "",
		  config->exposes ? ", NICs read" : "", config->sleeps ? ", programs sleep" : "",
		  config->loses_directory ? ", the directory can be lost" : "");
}

void sim_host_open(struct sim *sim, unsigned int host)
{
	struct fg_host *opened = fg_wire_host(sim->wire, host);
	char name[16];

	opened->polls = sim->config.polls;
	snprintf(name, sizeof(name), "host%u", host + 1);
	pvr_engine_set_name(opened->engine, name);
}

static void open_world(struct sim *sim, struct sim_rng *rng)
{
	const struct sim_config *config = &sim->config;
	const struct fg_wire_config wire = {
		.hosts = config->hosts,
		.workers = config->workers,
		.chunk = config->chunk,
		.buffer = config->buffer,
		.slots = config->slots,
		.exposes = config->exposes,
	};

	sim->wire = fg_wire_create(&wire);
	sim_chance_init(sim->seed, &fg_wire_host(sim->wire, 0)->now);
	sim->trace.now = &fg_wire_host(sim->wire, 0)->now;
	fg_default_ext = config->ext;
	for (unsigned int i = 0; i < config->hosts; i++)
		sim_host_open(sim, i);
	for (unsigned int i = 0; i < config->vms; i++)
		sim_vm_start(sim, &sim->vm[i], i + 1, sim_below(rng, config->hosts));
	fg_wire_run(sim->wire);
	for (unsigned int i = 0; i < config->pairs; i++) {
		unsigned int a = sim_below(rng, config->vms);
		unsigned int b = (a + 1 + sim_below(rng, config->vms - 1)) % config->vms;

		sim_rc_open(sim, &sim->pair[i], &sim->vm[a], &sim->vm[b]);
		sim_trace(&sim->trace, "rc%u: vm%u at host%u to vm%u at host%u", 2 * i, a + 1,
			  sim->vm[a].host + 1, b + 1, sim->vm[b].host + 1);
	}
	fg_wire_run(sim->wire);
}

void sim_poll_all(struct sim *sim)
{
	for (unsigned int i = 0; i < sim->config.vms; i++)
		sim_poll_events(sim, &sim->vm[i]);
	for (unsigned int i = 0; i < 2 * sim->config.pairs; i++) {
		sim_poll_sent(sim, sim_rc_of(sim, i));
		sim_poll_received(sim, sim_rc_of(sim, i));
	}
}

static void go_on(struct sim *sim, bool all)
{
	sim_net_mend(sim, all);
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
		if (!sim_rc_is_idle(sim_rc_of(sim, i)))
			return false;
	return true;
}

/* Without signaled requests the program never learns of the end of the others. */
static void post_signaled(struct sim *sim, struct sim_rng *rng)
{
	for (unsigned int i = 0; i < 2 * sim->config.pairs; i++) {
		struct sim_rc *rc = sim_rc_of(sim, i);

		while (sim_vm_runs(rc->from->vm) && rc->ends_unsignaled &&
		       sim_rc_post(sim, rc, rng))
			;
	}
}

static void receive_all(struct sim *sim, struct sim_rng *rng)
{
	for (unsigned int i = 0; i < 2 * sim->config.pairs; i++) {
		struct sim_rc *rc = sim_rc_of(sim, i);

		while (sim_vm_runs(rc->to->vm) && sim_rc_post_recv(sim, rc, rng))
			;
	}
}

/* What the engine of a requester knows: no part of the oracle. */
static void trace_requester(struct sim *sim, const struct sim_rc *rc)
{
	struct pvr_adapter *adapter = rc->from->vm->guest->adapter;
	struct pvr_qp *qp = pvr_qp_get(adapter, rc->from->fg.qp.handle);
	struct pvr_host *host;

	pvr_adapter_lock(adapter);
	host = pvr_gid_find_host(adapter, rc->to->fg.gid);
	pvr_adapter_unlock(adapter);
	sim_trace(&sim->trace, "rc%u at host%u: state %u, wait %u, %u in flight, peer at %s",
		  rc->number, rc->from->vm->host + 1, qp->state, qp->wait, qp->sq_inflight,
		  host ? pvr_host_name(host) : "none");
}

static void report_stuck(struct sim *sim)
{
	for (unsigned int i = 0; i < sim->config.vms; i++)
		if (sim->vm[i].phase != SIM_HOME)
			sim_fail(sim, "liveness", "vm%u: its migration does not end (phase %d)",
				 i + 1, sim->vm[i].phase);
	for (unsigned int i = 0; i < 2 * sim->config.pairs; i++) {
		struct sim_rc *rc = sim_rc_of(sim, i);

		if (sim_rc_is_idle(rc))
			continue;
		trace_requester(sim, rc);
		sim_fail(sim, "liveness",
			 "rc%u from vm%u to vm%u: %" PRIu64 " of %" PRIu64
			 " requests have completed, %" PRIu64 " of %" PRIu64
			 " messages were received",
			 rc->number, rc->from->vm->number, rc->to->vm->number, rc->done, rc->posted,
			 rc->taken, rc->takers);
	}
}

/* Without disturbances each request completes. */
static void settle(struct sim *sim, struct sim_rng *rng)
{
	uint64_t end = sim_now(sim) + TIME_TO_END;

	sim_trace(&sim->trace, "the end begins");
	fg_wire_limit(sim->wire, 0, 0);
	fg_wire_delay(sim->wire, 0);
	for (;;) {
		go_on(sim, true);
		receive_all(sim, rng);
		post_signaled(sim, rng);
		sim_poll_all(sim);
		if (is_idle(sim))
			return;
		if (sim_now(sim) > end)
			report_stuck(sim);
		sim_pass_time(sim, TIME_OF_ROUND);
	}
}

static void close_world(struct sim *sim)
{
	for (unsigned int i = 0; i < 2 * sim->config.pairs; i++)
		sim_oracle_end(sim, sim_rc_of(sim, i));
	for (unsigned int i = 0; i < 2 * sim->config.pairs; i++)
		fg_end_close(&sim_rc_of(sim, i)->from->fg);
	for (unsigned int i = 0; i < sim->config.vms; i++)
		sim_vm_end(sim, &sim->vm[i]);
	fg_wire_destroy(sim->wire);
}

struct sim_result sim_run(const struct sim_order *order)
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
	result.hash = sim->trace.hash;
	result.checks = sim->checks;
	result.steps = sim->config.steps;
	for (unsigned int i = 0; i < SIM_EVENTS; i++)
		result.happened[i] = sim->happened[i];
	close_world(sim);
	sim_chance_init(0, NULL);
	free(sim);
	return result;
}
