// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* Hosts, and how they reach each other: streams and a directory, or an Ethernet segment. */
#include <stdio.h>
#include <string.h>

#include "sim.h"

/* Four sums, which the CPU multiplies at the same time. */
uint64_t sim_hash(const uint8_t *at, size_t size)
{
	uint64_t sum[4] = { 1, 2, 3, 4 }, word[4] = { 0 };

	for (size_t i = 0; i < size; i += sizeof(word)) {
		if (size - i < sizeof(word))
			memcpy(word, at + i, size - i);
		else
			memcpy(word, at + i, sizeof(word));
		for (unsigned int k = 0; k < 4; k++)
			sum[k] = (sum[k] ^ word[k]) * 0x9e3779b97f4a7c15ull;
	}
	return sum[0] ^ sum[1] * 3 ^ sum[2] * 5 ^ sum[3] * 7;
}

struct fg_host *sim_host(const struct sim *sim, unsigned int host)
{
	return sim->segment ? fg_segment_host(sim->segment, host) : fg_wire_host(sim->wire, host);
}

void sim_host_open(struct sim *sim, unsigned int host)
{
	struct fg_host *opened = sim_host(sim, host);
	char name[16];

	opened->polls = sim->config.polls;
	snprintf(name, sizeof(name), "host%u", host + 1);
	pvr_engine_set_name(opened->engine, name);
	if (sim->directories)
		sim_directory_start(sim->directories, host);
}

void sim_world_open(struct sim *sim)
{
	const struct sim_config *config = &sim->config;
	struct fg_wire_config wire = {
		.hosts = config->hosts,
		.workers = config->workers,
		.chunk = config->chunk,
		.buffer = config->buffer,
		.slots = config->slots,
		.exposes = config->exposes,
		.slow_to_forget = true,
	};

	if (config->segment)
		sim->segment = fg_segment_create();
	else if (config->directory != SIM_TOLD)
		sim->directories = sim_directory_create(sim);
	if (sim->directories)
		wire.directory = sim_directory_ops(sim->directories);
	if (!config->segment)
		sim->wire = fg_wire_create(&wire);
	for (unsigned int i = 0; i < config->hosts; i++) {
		sim_host_open(sim, i);
		if (sim->directories)
			sim_net_disconnect(sim, i);
	}
	for (unsigned int i = 0; config->nics && i < config->hosts * config->hosts; i++)
		if (i / config->hosts != i % config->hosts)
			fg_wire_verbs(sim->wire, i / config->hosts, i % config->hosts, true);
}

void sim_world_close(struct sim *sim)
{
	for (unsigned int i = 0; i < sim->config.hosts && sim->directories; i++)
		sim_directory_stop(sim->directories, i);
	if (sim->segment)
		fg_segment_destroy(sim->segment);
	else
		fg_wire_destroy(sim->wire);
	if (sim->directories)
		sim_directory_destroy(sim->directories);
}

uint64_t sim_now(const struct sim *sim)
{
	return sim_host(sim, 0)->now;
}

void sim_run(struct sim *sim)
{
	fg_run(sim_host(sim, 0));
}

void sim_pass_time(struct sim *sim, uint64_t ns)
{
	uint64_t passed = fg_settle(sim_host(sim, 0), ns);

	/* Without a deadline the clock stands still. */
	if (passed < ns)
		fg_advance(sim_host(sim, 0), ns - passed);
}

void sim_pump(struct sim *sim, unsigned int host)
{
	if (sim->segment)
		fg_segment_deliver(sim->segment, host);
	else
		fg_wire_pump(sim->wire, host);
}
