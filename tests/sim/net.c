// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* Connections between hosts that break, stall or are slow, and a directory that does not respond. */
#include "sim.h"

/* Shorter than the retries of queue pairs last, so that none may fail. */
#define MAX_DOWN FG_SEC

uint64_t sim_draw_end(struct sim *sim, struct sim_rng *rng)
{
	return sim_now(sim) + sim_scale(rng, FG_US, MAX_DOWN);
}

/* Return: false if no streams join the hosts. */
static bool draw_hosts(struct sim *sim, struct sim_rng *rng, unsigned int *from, unsigned int *to)
{
	unsigned int hosts = sim->config.hosts;

	*from = sim_below(rng, hosts);
	*to = (*from + 1 + sim_below(rng, hosts - 1)) % hosts;
	return hosts > 1 && !sim->segment;
}

bool sim_net_cut(struct sim *sim, struct sim_rng *rng)
{
	unsigned int slot = sim_below(rng, sim->config.slots), from, to;
	struct sim_down *cut;

	if (!draw_hosts(sim, rng, &from, &to) || sim->cut[from][to][slot].is)
		return false;
	cut = &sim->cut[from][to][slot];
	cut->is = true;
	cut->until = sim_draw_end(sim, rng);
	sim_trace(&sim->trace, "connection %u of host%u to host%u breaks", slot, from + 1, to + 1);
	fg_wire_cut(sim->wire, from, to, slot);
	return true;
}

/* An RDMA NIC, beside the connections: it comes, or goes. */
bool sim_net_nic(struct sim *sim, struct sim_rng *rng)
{
	unsigned int from, to;
	bool up;

	if (!draw_hosts(sim, rng, &from, &to))
		return false;
	up = !fg_wire_verbs_is_up(sim->wire, from, to);
	sim_trace(&sim->trace, "the NIC of host%u to host%u is %s", from + 1, to + 1,
		  up ? "up" : "down");
	fg_wire_verbs(sim->wire, from, to, up);
	return true;
}

bool sim_net_hold(struct sim *sim, struct sim_rng *rng)
{
	struct sim_down *held;
	unsigned int from, to;

	if (!draw_hosts(sim, rng, &from, &to) || sim->held[from][to].is)
		return false;
	held = &sim->held[from][to];
	held->is = true;
	held->until = sim_draw_end(sim, rng);
	sim_trace(&sim->trace, "host%u does not reach host%u", from + 1, to + 1);
	fg_wire_hold(sim->wire, from, to, true);
	return true;
}

void sim_net_silence(struct sim *sim, unsigned int from, unsigned int to, uint64_t ns)
{
	struct sim_down *held = &sim->held[from][to];

	held->is = true;
	held->until = sim_now(sim) + ns;
	sim_trace(&sim->trace, "host%u is silent to host%u", from + 1, to + 1);
	fg_wire_hold(sim->wire, from, to, true);
}

static bool was_down(const struct sim_down *down, uint64_t since)
{
	return down->is || down->until >= since;
}

bool sim_net_was_apart(const struct sim *sim, unsigned int a, unsigned int b, uint64_t since)
{
	bool was = was_down(&sim->held[a][b], since) || was_down(&sim->held[b][a], since);

	for (unsigned int slot = 0; slot < sim->config.slots; slot++)
		was |= was_down(&sim->cut[a][b][slot], since) ||
		       was_down(&sim->cut[b][a][slot], since);
	return was;
}

bool sim_net_limit(struct sim *sim, struct sim_rng *rng)
{
	size_t send = sim_one_in(rng, 2) ? 0 : sim_scale(rng, 64, 65536);
	size_t recv = sim_one_in(rng, 2) ? 0 : sim_scale(rng, 64, 65536);
	uint64_t delay = sim_one_in(rng, 2) ? 0 : sim_scale(rng, FG_US, 4 * FG_MS);

	uint32_t chunk = sim_one_in(rng, 2) ? sim->config.chunk : 1024u << sim_below(rng, 7);

	if (sim->segment)
		return false;
	sim_trace(&sim->trace,
		  "streams: send %zu, receive %zu bytes, delay %lu ns, fragments of %u bytes", send,
		  recv, (unsigned long)delay, chunk);
	/* Requests are resent by a new connection, in other fragments. */
	fg_wire_chunk(sim->wire, chunk);
	sim->slow = send || recv || delay;
	fg_wire_limit(sim->wire, send, recv);
	fg_wire_delay(sim->wire, delay);
	return true;
}

/* Of 1,000 frames: often 0. */
static unsigned int draw_share(struct sim_rng *rng, uint32_t max)
{
	return sim_one_in(rng, 2) ? 0 : (unsigned int)sim_scale(rng, 1, max);
}

/*
 * Frames that are lost, damaged, repeated or late. So few are lost that no request needs all its
 * retries, or all for a shorter time than the retries last.
 */
bool sim_net_frames(struct sim *sim, struct sim_rng *rng)
{
	struct fg_segment_rules rules = {
		.seed = (uint32_t)sim_draw(rng),
		.lose = draw_share(rng, 20),
		.repeat = draw_share(rng, 300),
		.swap = draw_share(rng, 300),
		.damage = draw_share(rng, 20),
		.ghost = draw_share(rng, 50),
		.delay = sim_one_in(rng, 2) ? 0 : sim_scale(rng, FG_US, FG_MS),
		.jitter = sim_one_in(rng, 2) ? 0 : sim_scale(rng, FG_US, FG_MS),
		.cut = sim_one_in(rng, 4),
		.whole = sim_one_in(rng, 2),
	};

	if (!sim->segment)
		return false;
	sim->frames.is = true;
	sim->frames.until = sim_draw_end(sim, rng);
	sim_trace(&sim->trace,
		  "of 1000 frames %u are lost, %u damaged, %u repeated, %u swapped; %lu ns late%s",
		  rules.lose, rules.damage, rules.repeat, rules.swap,
		  (unsigned long)(rules.delay + rules.jitter), rules.cut ? "; none arrives" : "");
	*fg_segment_rules(sim->segment) = rules;
	fg_segment_set_gso(sim->segment, sim_one_in(rng, 2));
	return true;
}

void sim_net_calm(struct sim *sim)
{
	if (sim->segment)
		return;
	fg_wire_limit(sim->wire, 0, 0);
	fg_wire_delay(sim->wire, 0);
}

bool sim_net_directory(struct sim *sim, struct sim_rng *rng)
{
	if (sim->directory.is || sim->segment)
		return false;
	if (sim->directories)
		return sim_outage(sim, rng);
	sim->directory.is = true;
	sim->directory.until = sim_draw_end(sim, rng);
	sim_trace(&sim->trace, "the directory does not respond");
	fg_wire_directory(sim->wire, false);
	return true;
}

void sim_net_disconnect(struct sim *sim, unsigned int host)
{
	for (unsigned int to = 0; to < sim->config.hosts; to++)
		for (unsigned int slot = 0; slot < sim->config.slots && to != host; slot++)
			fg_wire_cut(sim->wire, host, to, slot);
}

bool sim_ends(struct sim *sim, struct sim_down *down, bool all)
{
	bool is = down->is && (all || down->until <= sim_now(sim));

	if (is)
		down->is = false;
	return is;
}

/* A host that knows no address makes no connection. */
static bool is_dialed(const struct sim *sim, unsigned int from, unsigned int to, unsigned int slot,
		      bool was_cut)
{
	if (!sim->directories)
		return was_cut;
	return from != to && sim_directory_dials(sim->directories, from, to) &&
	       !sim->cut[from][to][slot].is && !fg_wire_is_up(sim->wire, from, to, slot);
}

static void mend_between(struct sim *sim, unsigned int from, unsigned int to, bool all)
{
	for (unsigned int slot = 0; slot < sim->config.slots; slot++) {
		bool was_cut = sim_ends(sim, &sim->cut[from][to][slot], all);

		if (!is_dialed(sim, from, to, slot, was_cut))
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
	if (sim_ends(sim, &sim->held[from][to], all)) {
		sim_trace(&sim->trace, "host%u reaches host%u", from + 1, to + 1);
		fg_wire_hold(sim->wire, from, to, false);
	}
}

void sim_net_mend(struct sim *sim, bool all)
{
	if (sim_ends(sim, &sim->frames, all)) {
		sim_trace(&sim->trace, "all frames arrive");
		*fg_segment_rules(sim->segment) = (struct fg_segment_rules){ 0 };
	}
	if (sim->segment)
		return;
	for (unsigned int from = 0; from < sim->config.hosts; from++)
		for (unsigned int to = 0; to < sim->config.hosts; to++)
			mend_between(sim, from, to, all);
	if (!sim->config.loses_directory && sim_ends(sim, &sim->directory, all)) {
		sim_trace(&sim->trace, "the directory responds");
		if (sim->directories)
			sim_outage_end(sim);
		fg_wire_directory(sim->wire, true);
	}
}
