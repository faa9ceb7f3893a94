// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* Connections between hosts that break, stall or are slow, and a directory that does not respond. */
#include "sim.h"

/* Shorter than the retries of queue pairs last, so that none may fail. */
#define MAX_DOWN FG_SEC

static uint64_t draw_end(struct sim *sim, struct sim_rng *rng)
{
	return sim_now(sim) + sim_scale(rng, FG_US, MAX_DOWN);
}

/* Return: false if there is only one host. */
static bool draw_hosts(struct sim *sim, struct sim_rng *rng, unsigned int *from, unsigned int *to)
{
	unsigned int hosts = sim->config.hosts;

	*from = sim_below(rng, hosts);
	*to = (*from + 1 + sim_below(rng, hosts - 1)) % hosts;
	return hosts > 1;
}

void sim_net_cut(struct sim *sim, struct sim_rng *rng)
{
	unsigned int slot = sim_below(rng, sim->config.slots), from, to;
	struct sim_down *cut;

	if (!draw_hosts(sim, rng, &from, &to) || sim->cut[from][to][slot].is)
		return;
	cut = &sim->cut[from][to][slot];
	cut->is = true;
	cut->until = draw_end(sim, rng);
	sim_trace(&sim->trace, "connection %u of host%u to host%u breaks", slot, from + 1, to + 1);
	fg_wire_cut(sim->wire, from, to, slot);
}

/* An RDMA NIC, beside the connections: it comes, or goes. */
void sim_net_nic(struct sim *sim, struct sim_rng *rng)
{
	unsigned int from, to;
	bool up;

	if (!draw_hosts(sim, rng, &from, &to))
		return;
	up = !fg_wire_verbs_is_up(sim->wire, from, to);
	sim_trace(&sim->trace, "the NIC of host%u to host%u is %s", from + 1, to + 1,
		  up ? "up" : "down");
	fg_wire_verbs(sim->wire, from, to, up);
}

void sim_net_hold(struct sim *sim, struct sim_rng *rng)
{
	struct sim_down *held;
	unsigned int from, to;

	if (!draw_hosts(sim, rng, &from, &to) || sim->held[from][to].is)
		return;
	held = &sim->held[from][to];
	held->is = true;
	held->until = draw_end(sim, rng);
	sim_trace(&sim->trace, "host%u does not reach host%u", from + 1, to + 1);
	fg_wire_hold(sim->wire, from, to, true);
}

void sim_net_limit(struct sim *sim, struct sim_rng *rng)
{
	size_t send = sim_one_in(rng, 2) ? 0 : sim_scale(rng, 64, 65536);
	size_t recv = sim_one_in(rng, 2) ? 0 : sim_scale(rng, 64, 65536);
	uint64_t delay = sim_one_in(rng, 2) ? 0 : sim_scale(rng, FG_US, 4 * FG_MS);

	sim_trace(&sim->trace, "streams: send %zu, receive %zu bytes, delay %lu ns", send, recv,
		  (unsigned long)delay);
	fg_wire_limit(sim->wire, send, recv);
	fg_wire_delay(sim->wire, delay);
}

void sim_net_directory(struct sim *sim, struct sim_rng *rng)
{
	if (sim->directory.is)
		return;
	sim->directory.is = true;
	sim->directory.until = draw_end(sim, rng);
	sim_trace(&sim->trace, "the directory does not respond");
	fg_wire_directory(sim->wire, false);
}

static bool ends(struct sim *sim, struct sim_down *down, bool all)
{
	bool is = down->is && (all || down->until <= sim_now(sim));

	if (is)
		down->is = false;
	return is;
}

static void mend_between(struct sim *sim, unsigned int from, unsigned int to, bool all)
{
	for (unsigned int slot = 0; slot < sim->config.slots; slot++) {
		if (!ends(sim, &sim->cut[from][to][slot], all))
			continue;
		sim_trace(&sim->trace, "host%u makes connection %u to host%u", from + 1, slot,
			  to + 1);
		fg_wire_mend(sim->wire, from, to, slot);
		/* New streams flow. */
		if (sim->held[from][to].is)
			fg_wire_hold(sim->wire, from, to, true);
		if (sim->held[to][from].is)
			fg_wire_hold(sim->wire, to, from, true);
	}
	if (ends(sim, &sim->held[from][to], all)) {
		sim_trace(&sim->trace, "host%u reaches host%u", from + 1, to + 1);
		fg_wire_hold(sim->wire, from, to, false);
	}
}

void sim_net_mend(struct sim *sim, bool all)
{
	for (unsigned int from = 0; from < sim->config.hosts; from++)
		for (unsigned int to = 0; to < sim->config.hosts; to++)
			mend_between(sim, from, to, all);
	if (!sim->config.loses_directory && ends(sim, &sim->directory, all)) {
		sim_trace(&sim->trace, "the directory responds");
		fg_wire_directory(sim->wire, true);
	}
}
