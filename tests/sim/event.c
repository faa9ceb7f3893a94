// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* The events of a run. To add one: a function, and a row. */
#include <assert.h>
#include <string.h>

#include "sim.h"

static struct sim_flow *draw_flow(struct sim *sim, struct sim_rng *rng)
{
	return &sim->pair[sim_below(rng, sim->config.pairs)].flow[sim_below(rng, 2)];
}

static bool post(struct sim *sim, struct sim_rng *rng)
{
	struct sim_flow *flow = draw_flow(sim, rng);
	uint32_t n = 1 + sim_below(rng, SIM_SLOTS);
	bool done = false;

	while (n-- && sim_vm_runs(flow->from->vm) && sim_flow_post(sim, flow, rng))
		done = true;
	return done;
}

/* Return: NULL: there are no two. */
static struct sim_ud *draw_ud(struct sim *sim, struct sim_rng *rng)
{
	return sim->config.uds ? &sim->ud[sim_below(rng, sim->config.uds)] : NULL;
}

static bool send_datagrams(struct sim *sim, struct sim_rng *rng)
{
	bool to_group = (sim->config.ext & PVR_EXT_MCAST) && sim_one_in(rng, 4);
	struct sim_ud *ud = draw_ud(sim, rng);
	uint32_t n = 1 + sim_below(rng, SIM_SLOTS);
	bool done = false;

	while (n-- && ud && sim_vm_runs(ud->end.vm) &&
	       sim_ud_post(sim, ud, to_group ? NULL : draw_ud(sim, rng), rng))
		done = true;
	return done;
}

static bool receive_datagrams(struct sim *sim, struct sim_rng *rng)
{
	struct sim_ud *ud = draw_ud(sim, rng);
	uint32_t n = 1 + sim_below(rng, SIM_SLOTS);
	bool done = false;

	while (n-- && ud && sim_vm_runs(ud->end.vm) && sim_ud_post_recv(sim, ud, rng))
		done = true;
	return done;
}

static bool receive(struct sim *sim, struct sim_rng *rng)
{
	struct sim_flow *flow = draw_flow(sim, rng);
	uint32_t n = 1 + sim_below(rng, SIM_SLOTS);
	bool done = false;

	while (n-- && sim_vm_runs(flow->to->vm) && sim_flow_post_recv(sim, flow, rng))
		done = true;
	return done;
}

static bool poll(struct sim *sim, struct sim_rng *rng)
{
	sim_poll_all(sim);
	return true;
}

static bool run(struct sim *sim, struct sim_rng *rng)
{
	sim_run(sim);
	return true;
}

static bool wait(struct sim *sim, struct sim_rng *rng)
{
	sim_pass_time(sim, sim_scale(rng, FG_US, sim->config.max_pause));
	return true;
}

static bool migrate(struct sim *sim, struct sim_rng *rng)
{
	return sim_move_begin(sim, &sim->vm[sim_below(rng, sim->config.vms)], rng);
}

static const struct event {
	const char *name;
	uint32_t weight; /* that a seed may multiply or make 0; 0: until sim_focus() */
	bool always; /* it never makes it 0 */
	bool (*happens)(struct sim *sim, struct sim_rng *rng);
} events[] = {
	/* clang-format off: a row each */
	{ "post", 64, true, post },
	{ "receive", 48, true, receive },
	{ "datagram", 24, false, send_datagrams },
	{ "datagram receive", 24, false, receive_datagrams },
	{ "group", 4, false, sim_ud_group },
	{ "poll", 24, true, poll },
	{ "run", 8, false, run },
	{ "wait", 16, true, wait },
	{ "cut", 3, false, sim_net_cut },
	{ "nic", 2, false, sim_net_nic },
	{ "hold", 3, false, sim_net_hold },
	{ "limit", 2, false, sim_net_limit },
	{ "frames", 6, false, sim_net_frames },
	{ "directory", 2, false, sim_net_directory },
	{ "etcd", 3, false, sim_outage_moment },
	{ "migrate", 4, false, migrate },
	{ "pause", 3, false, sim_move_pause },
	{ "link", 3, false, sim_operator_link },
	{ "upgrade", 2, false, sim_upgrade },
	{ "break", 3, false, sim_break },
	{ "qos", 3, false, sim_operator_qos },
	{ "fault", 3, false, sim_operator_fault },
	{ "resize", 2, false, sim_verbs_resize },
	{ "drain", 4, false, sim_verbs_drain },
	{ "evict", 6, false, sim_demand_evict },
	{ "snapshot", 3, false, sim_snapshot },
	{ "restore", 3, false, sim_restore_begin },
	{ "reload", 0, false, sim_operator_reload }, /* draw_directory() */
	/* clang-format on */
};

#define NUM_EVENTS (sizeof(events) / sizeof(events[0]))
static_assert(NUM_EVENTS <= SIM_EVENTS, "counters of events");

unsigned int sim_num_events(void)
{
	return NUM_EVENTS;
}

const char *sim_event_name(unsigned int kind)
{
	return events[kind].name;
}

void sim_focus(struct sim_config *config, const char *name)
{
	for (unsigned int i = 0; i < NUM_EVENTS; i++)
		if (!strcmp(events[i].name, name))
			config->weight[i] = 48;
}

/* Swarm: each run has few kinds of events, but often. */
uint32_t sim_draw_weight(unsigned int kind, struct sim_rng *rng)
{
	bool has;

	/* It draws nothing, so that other runs stay as they are. */
	if (!events[kind].weight)
		return 0;
	has = sim_one_in(rng, 2);
	return events[kind].always || has ? events[kind].weight << 2 * sim_below(rng, 3) : 0;
}

/* Hosts run in any order, and stop at any place. */
static void run_some(struct sim *sim, struct sim_rng *rng)
{
	uint32_t n = sim_below(rng, 16);
	unsigned int host;

	while (n--) {
		host = sim_below(rng, sim->config.hosts);
		if (sim_one_in(rng, 2))
			fg_host_step(sim_host(sim, host));
		else
			sim_pump(sim, host);
	}
	if (sim->config.eager && sim_one_in(rng, 2)) {
		sim_run(sim);
		sim_poll_all(sim);
	}
}

void sim_event(struct sim *sim, struct sim_rng *rng)
{
	unsigned int kind = sim_draw_index(rng, sim->config.weight, NUM_EVENTS);

	sim_state_note(sim);
	if (events[kind].happens(sim, rng))
		sim_state_count(sim, kind);
	run_some(sim, rng);
}
