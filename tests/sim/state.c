// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* What is under way while an event happens: each pair of both is counted. To add a state: a function, and a row. */
#include <assert.h>
#include <stdio.h>

#include "sim.h"

static bool any_down(const struct sim_down *down, size_t num)
{
	for (size_t i = 0; i < num; i++)
		if (down[i].is)
			return true;
	return false;
}

static bool is_cut(const struct sim *sim)
{
	return any_down(&sim->cut[0][0][0], sizeof(sim->cut) / sizeof(struct sim_down));
}

static bool is_held(const struct sim *sim)
{
	return any_down(&sim->held[0][0], sizeof(sim->held) / sizeof(struct sim_down));
}

static bool has_nic(const struct sim *sim)
{
	for (unsigned int from = 0; from < sim->config.hosts; from++)
		for (unsigned int to = 0; to < sim->config.hosts; to++)
			if (sim->wire && from != to && fg_wire_verbs_is_up(sim->wire, from, to))
				return true;
	return false;
}

static bool is_slow(const struct sim *sim)
{
	return sim->slow;
}

static bool has_odd_frames(const struct sim *sim)
{
	return sim->frames.is;
}

static bool has_no_directory(const struct sim *sim)
{
	return sim->directory.is;
}

static bool has_no_link(const struct sim *sim)
{
	for (unsigned int i = 0; i < sim->config.vms; i++)
		if (sim->vm[i].link.is)
			return true;
	return false;
}

static bool is_in(const struct sim *sim, enum sim_move_phase phase)
{
	for (unsigned int i = 0; i < sim->config.vms; i++)
		if (sim->vm[i].phase == phase && !sim->vm[i].restores)
			return true;
	return false;
}

static bool stops(const struct sim *sim)
{
	return is_in(sim, SIM_STOPPING);
}

static bool has_stopped(const struct sim *sim)
{
	return is_in(sim, SIM_STOPPED);
}

static bool is_on_its_way(const struct sim *sim)
{
	return is_in(sim, SIM_LOADING);
}

static bool is_loaded(const struct sim *sim)
{
	return is_in(sim, SIM_LOADED);
}

static bool starts(const struct sim *sim)
{
	return is_in(sim, SIM_STARTING);
}

static bool starts_again(const struct sim *sim)
{
	return is_in(sim, SIM_CANCELLING);
}

static bool source_waits(const struct sim *sim)
{
	return is_in(sim, SIM_LEAVING);
}

static bool source_has_left(const struct sim *sim)
{
	for (unsigned int i = 0; i < sim->config.vms; i++)
		if (sim->vm[i].phase == SIM_STARTING && sim->vm[i].source_left &&
		    !sim->vm[i].restores)
			return true;
	return false;
}

static bool is_restored(const struct sim *sim)
{
	for (unsigned int i = 0; i < sim->config.vms; i++)
		if (sim->vm[i].restores)
			return true;
	return false;
}

static bool is_alone(const struct sim *sim)
{
	for (unsigned int i = 0; i < sim->config.vms; i++)
		if (sim->vm[i].phase == SIM_STARTING && sim->vm[i].is_alone)
			return true;
	return false;
}

/* Hosts pause before they try again. */
static bool was_lost(const struct sim *sim)
{
	return sim_directory_web(sim->directories) && !sim->directory.is &&
	       !sim_outage_is_over(sim);
}

static bool is_broken(const struct sim *sim)
{
	for (unsigned int i = 0; i < sim->config.pairs; i++)
		if (sim->pair[i].is_broken && !sim->pair[i].is_restored)
			return true;
	return false;
}

static bool lacks_page(const struct sim *sim)
{
	for (unsigned int i = 0; i < 2 * sim->config.pairs; i++)
		if (sim->pair[i / 2].end[i % 2].demand.npages)
			return true;
	return false;
}

static bool is_drained(const struct sim *sim)
{
	for (unsigned int i = 0; i < 2 * sim->config.pairs; i++)
		if (sim->pair[i / 2].end[i % 2].is_drained)
			return true;
	return false;
}

static bool sleeps(const struct sim *sim)
{
	for (unsigned int i = 0; i < 2 * sim->config.pairs; i++)
		if (sim->pair[i / 2].end[i % 2].recvs_armed)
			return true;
	return false;
}

static bool has_requests(const struct sim *sim)
{
	for (unsigned int i = 0; i < 2 * sim->config.pairs; i++)
		if (sim->pair[i / 2].flow[i % 2].done < sim->pair[i / 2].flow[i % 2].posted)
			return true;
	return false;
}

/* A message that no receive request waits for. */
static bool lacks_receive(const struct sim *sim)
{
	const struct sim_flow *flow;

	for (unsigned int i = 0; i < 2 * sim->config.pairs; i++) {
		flow = &sim->pair[i / 2].flow[i % 2];
		if (flow->takers > flow->taken &&
		    (flow->to->srq ? !flow->to->srq->posted : flow->recvs == flow->received))
			return true;
	}
	return false;
}

static const struct state {
	const char *name;
	bool (*is)(const struct sim *sim);
} states[] = {
	/* clang-format off: a row each */
	{ "cut connection", is_cut },
	{ "held streams", is_held },
	{ "NIC", has_nic },
	{ "slow streams", is_slow },
	{ "odd frames", has_odd_frames },
	{ "no directory", has_no_directory },
	{ "etcd that was lost", was_lost },
	{ "stopping VM", stops },
	{ "stopped VM", has_stopped },
	{ "state on its way", is_on_its_way },
	{ "loaded VM", is_loaded },
	{ "starting VM", starts },
	{ "source that starts again", starts_again },
	{ "link that is down", has_no_link },
	{ "source that waits", source_waits },
	{ "source that has left", source_has_left },
	{ "restore", is_restored },
	{ "start without source", is_alone },
	{ "ended connection", is_broken },
	{ "absent pages", lacks_page },
	{ "drained send queue", is_drained },
	{ "sleeping program", sleeps },
	{ "requests", has_requests },
	{ "message without receive request", lacks_receive },
	/* clang-format on */
};

#define NUM_STATES (sizeof(states) / sizeof(states[0]))
static_assert(NUM_STATES <= SIM_STATES, "counters of states");

void sim_state_note(struct sim *sim)
{
	for (unsigned int i = 0; i < NUM_STATES; i++)
		sim->is_in[i] = states[i].is(sim);
}

void sim_state_count(struct sim *sim, unsigned int event)
{
	sim->count.events[event]++;
	for (unsigned int i = 0; i < NUM_STATES; i++)
		sim->count.pairs[i][event] += sim->is_in[i];
}

void sim_count_add(struct sim_count *sum, const struct sim_count *count)
{
	sum->runs += count->runs;
	sum->checks += count->checks;
	sum->hash ^= count->hash;
	for (unsigned int k = 0; k < SIM_EVENTS; k++)
		sum->events[k] += count->events[k];
	for (unsigned int i = 0; i < SIM_STATES; i++)
		for (unsigned int k = 0; k < SIM_EVENTS; k++)
			sum->pairs[i][k] += count->pairs[i][k];
}

void sim_count_report(const struct sim_count *count)
{
	unsigned int i, k, num = sim_num_events(), reached = 0;

	for (k = 0; k < num; k++)
		printf("%s%s %lu", k ? ", " : "events: ", sim_event_name(k),
		       (unsigned long)count->events[k]);
	for (i = 0; i < NUM_STATES; i++)
		for (k = 0; k < num; k++)
			reached += count->pairs[i][k] > 0;
	printf("\nevents within states: %u of %zu pairs\n", reached, NUM_STATES * num);
	for (i = 0; i < NUM_STATES; i++)
		for (k = 0; k < num; k++)
			if (!count->pairs[i][k])
				printf("never: %s within %s\n", sim_event_name(k), states[i].name);
}
