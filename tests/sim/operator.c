// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* What an operator changes while VMs run: the quality of service of an adapter, and faults on demand. */
#include <stdio.h>

#include "sim.h"

#include "fault/rule.h"

/* So low that many requests wait, so high that all end soon. */
#define MIN_RATE (4 << 20)
#define MIN_MESSAGES 1000

bool sim_operator_qos(struct sim *sim, struct sim_rng *rng)
{
	struct sim_vm *vm = &sim->vm[sim_below(rng, sim->config.vms)];
	const struct pvr_qos qos = {
		.rate = sim_one_in(rng, 2) ? 0 : sim_scale(rng, MIN_RATE, FG_SEC),
		.messages = sim_one_in(rng, 2) ? 0 : sim_scale(rng, MIN_MESSAGES, 1000000),
		.burst = sim_one_in(rng, 2) ? 0 : sim_scale(rng, 1, 1 << 20),
		.weight = (uint32_t)sim_scale(rng, PVR_QOS_WEIGHT_MIN, PVR_QOS_WEIGHT_MAX),
	};

	if (pvr_adapter_set_qos(vm->guest->adapter, &qos))
		sim_fail(sim, "operator", "vm%u: its limits cannot be set", vm->number);
	sim_trace(&sim->trace, "vm%u: %lu bytes, %lu messages a second, weight %u", vm->number,
		  (unsigned long)qos.rate, (unsigned long)qos.messages, qos.weight);
	return true;
}

bool sim_operator_link(struct sim *sim, struct sim_rng *rng)
{
	struct sim_vm *vm = &sim->vm[sim_below(rng, sim->config.vms)];

	/* What is lost is sent again after a timeout only. */
	if (vm->link.is || !sim->config.timeout)
		return false;
	vm->lost_link = vm->link.is = true;
	vm->link.until = sim_draw_end(sim, rng);
	vm->link_host = vm->host;
	sim_trace(&sim->trace, "vm%u: the link at host%u goes down", vm->number, vm->host + 1);
	pvr_adapter_set_link(vm->at[vm->host], false);
	return true;
}

/* The adapter may be another one now, whose link is up. */
void sim_operator_mend(struct sim *sim, bool all)
{
	for (unsigned int i = 0; i < sim->config.vms; i++) {
		struct sim_vm *vm = &sim->vm[i];

		if (!sim_ends(sim, &vm->link, all))
			continue;
		sim_trace(&sim->trace, "vm%u: the link at host%u is up", vm->number,
			  vm->link_host + 1);
		if (vm->at[vm->link_host])
			pvr_adapter_set_link(vm->at[vm->link_host], true);
	}
}

/* None of them ends a connection, loses a message of a connection or repeats one. */
static void draw_fault(struct sim_rng *rng, char *text, size_t size)
{
	unsigned int n = 2 + sim_below(rng, 16);

	switch (sim_below(rng, 5)) {
	case 0:
		snprintf(text, size, "delay=%uus+-%uus", 100 * n, 50 * n);
		break;
	case 1:
		snprintf(text, size, "rnr=every:%u", n);
		break;
	case 2:
		snprintf(text, size, "nak=sequence,every=%u", n);
		break;
	case 3:
		snprintf(text, size, "rate=%uGbit", n);
		break;
	default:
		snprintf(text, size, "reorder=%u%%", n);
	}
}

bool sim_operator_fault(struct sim *sim, struct sim_rng *rng)
{
	unsigned int host = sim_below(rng, sim->config.hosts);
	struct pvr_engine *engine = sim_host(sim, host)->engine;
	struct pvr_fault_rule rule;
	struct pvr_error err;
	char text[64];
	uint32_t id;

	/* Faults do not act on packets of an Ethernet. */
	if (sim->segment)
		return false;
	if (pvr_engine_clear_faults(engine, 0)) {
		sim_trace(&sim->trace, "host%u has no faults", host + 1);
		return true;
	}
	draw_fault(rng, text, sizeof(text));
	if (!pvr_fault_parse(&rule, text, &err) || pvr_engine_add_fault(engine, &rule, &id))
		sim_fail(sim, "operator", "host%u: no fault %s", host + 1, text);
	sim->had_faults = true;
	sim_trace(&sim->trace, "host%u has the fault %s", host + 1, text);
	return true;
}

void sim_operator_calm(struct sim *sim)
{
	const struct pvr_qos none = { 0 };

	for (unsigned int i = 0; i < sim->config.hosts; i++)
		pvr_engine_clear_faults(sim_host(sim, i)->engine, 0);
	for (unsigned int i = 0; i < sim->config.vms; i++)
		for (unsigned int k = 0; k < sim->config.hosts; k++)
			if (sim->vm[i].at[k] && pvr_adapter_set_qos(sim->vm[i].at[k], &none))
				fg_die("limits cannot be removed");
}

bool sim_operator_reload(struct sim *sim, struct sim_rng *rng)
{
	return sim_directory_reload(sim->directories, sim_below(rng, sim->config.hosts));
}
