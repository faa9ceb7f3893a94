// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * After the end, when nothing disturbs the network any more: then also messages that may be lost arrive,
 * datagrams, and WRITEs of UC.
 */
#include "sim.h"

#define ROUNDS 3u
#define TIME_TO_ARRIVE (100 * FG_MS)

static void receive_all(struct sim *sim, struct sim_rng *rng)
{
	for (unsigned int i = 0; i < sim->config.uds; i++)
		while (sim_ud_post_recv(sim, &sim->ud[i], rng))
			;
}

/* Time passes until it is so. Return: false: it was not in time. */
static bool comes_true(struct sim *sim, bool (*is)(const struct sim *sim, const void *of),
		       const void *of)
{
	for (uint64_t ns = 0; ns < TIME_TO_ARRIVE && !is(sim, of); ns += FG_MS) {
		sim_pass_time(sim, FG_MS);
		sim_poll_all(sim);
	}
	return is(sim, of);
}

/* The last datagram of each has reached the next one. */
static bool have_arrived(const struct sim *sim, const void *of)
{
	for (unsigned int i = 0; i < sim->config.uds; i++) {
		const struct sim_ud *ud = &sim->ud[i];

		if (!sim_ud_has_reached(ud, ud->posted - 1, sim_ud_next(sim, ud)))
			return false;
	}
	return true;
}

static void expect_datagrams(struct sim *sim, struct sim_rng *rng)
{
	for (unsigned int round = 0; round < ROUNDS; round++) {
		receive_all(sim, rng);
		for (unsigned int i = 0; i < sim->config.uds; i++)
			if (!sim_ud_post(sim, &sim->ud[i], sim_ud_next(sim, &sim->ud[i]), rng))
				return;
		if (!comes_true(sim, have_arrived, NULL))
			sim_fail(sim, "calm", "a datagram is lost, though nothing disturbs it");
	}
}

static bool has_reached_all(const struct sim *sim, const void *of)
{
	const struct sim_ud *from = of;

	for (unsigned int i = 0; i < sim->config.uds; i++)
		if (&sim->ud[i] != from && sim->ud[i].end.is_member &&
		    !sim_ud_has_reached(from, from->posted - 1, &sim->ud[i]))
			return false;
	return true;
}

/* Each member gets what is sent to the group. */
static void expect_group(struct sim *sim, struct sim_rng *rng)
{
	struct sim_ud *from = &sim->ud[sim_below(rng, sim->config.uds)];

	if (!(sim->config.ext & PVR_EXT_MCAST))
		return;
	receive_all(sim, rng);
	if (sim_ud_post(sim, from, NULL, rng) && !comes_true(sim, has_reached_all, from))
		sim_fail(sim, "calm", "a datagram of ud%u to the group does not reach all members",
			 from->number);
}

static bool is_written(const struct sim *sim, const void *of)
{
	return sim_oracle_is_written(sim, of);
}

static void expect_write(struct sim *sim, struct sim_flow *flow, struct sim_rng *rng)
{
	/* UC has no means to wait for an absent page. */
	if (flow->pair->type != SIM_UC || flow->pair->is_broken || flow->may_miss ||
	    flow->to->demand.is)
		return;
	flow->only_writes = true;
	if (sim_flow_post(sim, flow, rng) && !comes_true(sim, is_written, flow))
		sim_fail(sim, "calm", "flow%u: a WRITE of UC is lost, though nothing disturbs it",
			 flow->number);
}

void sim_calm(struct sim *sim, struct sim_rng *rng)
{
	if (sim->directory.is)
		return;
	for (unsigned int i = 0; i < 2 * sim->config.pairs; i++)
		expect_write(sim, sim_flow_of(sim, i), rng);
	/* Where hosts ask a directory, the first datagram to a VM that has moved may be lost. */
	if (sim->config.uds && !sim->directories) {
		expect_datagrams(sim, rng);
		expect_group(sim, rng);
	}
}
