// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* The events of a run. To add one: a function, and a row. */
#include <assert.h>

#include "sim.h"

static struct sim_rc *draw_rc(struct sim *sim, struct sim_rng *rng)
{
	return &sim->pair[sim_below(rng, sim->config.pairs)].rc[sim_below(rng, 2)];
}

static void post(struct sim *sim, struct sim_rng *rng)
{
	struct sim_rc *rc = draw_rc(sim, rng);
	uint32_t n = 1 + sim_below(rng, SIM_RC_SLOTS);

	while (n-- && sim_vm_runs(rc->from->vm) && sim_rc_post(sim, rc, rng))
		;
}

static void receive(struct sim *sim, struct sim_rng *rng)
{
	struct sim_rc *rc = draw_rc(sim, rng);
	uint32_t n = 1 + sim_below(rng, SIM_RC_SLOTS);

	while (n-- && sim_vm_runs(rc->to->vm) && sim_rc_post_recv(sim, rc, rng))
		;
}

static void poll(struct sim *sim, struct sim_rng *rng)
{
	sim_poll_all(sim);
}

static void run(struct sim *sim, struct sim_rng *rng)
{
	fg_wire_run(sim->wire);
}

static void wait(struct sim *sim, struct sim_rng *rng)
{
	sim_pass_time(sim, sim_scale(rng, FG_US, sim->config.max_pause));
}

static void migrate(struct sim *sim, struct sim_rng *rng)
{
	sim_move_begin(sim, &sim->vm[sim_below(rng, sim->config.vms)], rng);
}

static const struct event {
	const char *name;
	uint32_t weight; /* that a seed may multiply or make 0 */
	bool always; /* it never makes it 0 */
	void (*happens)(struct sim *sim, struct sim_rng *rng);
} events[] = {
	/* clang-format off: a row each */
	{ "post", 64, true, post },
	{ "receive", 48, true, receive },
	{ "poll", 24, true, poll },
	{ "run", 8, false, run },
	{ "wait", 16, true, wait },
	{ "cut", 3, false, sim_net_cut },
	{ "nic", 2, false, sim_net_nic },
	{ "hold", 3, false, sim_net_hold },
	{ "limit", 2, false, sim_net_limit },
	{ "directory", 2, false, sim_net_directory },
	{ "migrate", 4, false, migrate },
	{ "upgrade", 2, false, sim_upgrade },
	{ "break", 3, false, sim_break },
	{ "snapshot", 3, false, sim_snapshot },
	{ "restore", 3, false, sim_restore_begin },
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

/* Swarm: each run has few kinds of events, but often. */
uint32_t sim_draw_weight(unsigned int kind, struct sim_rng *rng)
{
	bool has = sim_one_in(rng, 2);

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
			fg_host_step(fg_wire_host(sim->wire, host));
		else
			fg_wire_pump(sim->wire, host);
	}
}

void sim_event(struct sim *sim, struct sim_rng *rng)
{
	unsigned int kind = sim_draw_index(rng, sim->config.weight, NUM_EVENTS);

	sim->happened[kind]++;
	events[kind].happens(sim, rng);
	run_some(sim, rng);
}
