// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* Upgrades of a host: a new engine takes over all VMs, and connects to all hosts again. */
#include <stdio.h>

#include "sim.h"

/*
 * A migration that is under way delays the upgrade, here for ever. The new process knows other hosts by
 * the directory only, so an upgrade without it costs connections: see docs/multi-host.md.
 */
static bool may_upgrade(const struct sim *sim, unsigned int host)
{
	if (sim->directory.is || sim->segment)
		return false;
	for (unsigned int i = 0; i < sim->config.vms; i++)
		if ((sim->vm[i].phase != SIM_HOME && sim->vm[i].at[host]) ||
		    sim->vm[i].twin == host + 1)
			return false;
	return true;
}

static void hand_over(struct sim *sim, struct sim_vm *vm)
{
	fg_stop(vm->guest);
	if (fg_state_save_again(vm->guest, &vm->state))
		sim_fail(sim, "upgrade", "vm%u cannot be saved", vm->number);
}

/* A process that ends tells no peer. */
static void end(struct sim *sim, struct sim_vm *vm, unsigned int host)
{
	if (vm->host == host) {
		fg_drop(vm->guest);
		fg_guest_unplug(vm->guest);
	} else if (vm->at[host]) {
		pvr_adapter_destroy(vm->at[host]);
	}
	vm->at[host] = NULL;
}

static void take_over(struct sim *sim, struct sim_vm *vm)
{
	if (!fg_guest_plug(vm->guest) || fg_state_load(vm->guest, &vm->state))
		sim_fail(sim, "upgrade", "vm%u cannot be loaded", vm->number);
	fg_state_free(&vm->state);
	vm->loaded = sim_now(sim);
	pvr_adapter_load_is_last(vm->guest->adapter);
	vm->at[vm->host] = vm->guest->adapter;
	vm->phase = SIM_CANCELLING; /* it starts again where it was */
	vm->due = sim_now(sim) + sim_scale(&vm->rng, FG_US, 4 * FG_MS);
}

bool sim_upgrade(struct sim *sim, struct sim_rng *rng)
{
	unsigned int host = sim_below(rng, sim->config.hosts);

	if (!may_upgrade(sim, host))
		return false;
	sim_trace(&sim->trace, "host%u is upgraded", host + 1);
	for (unsigned int i = 0; i < sim->config.vms; i++) {
		struct sim_vm *vm = &sim->vm[i];

		vm->rng = sim_rng_of(sim_draw(rng), 0);
		if (vm->host == host)
			hand_over(sim, vm);
	}
	fg_wire_keep_gids(sim->wire, host, true);
	if (sim->directories) {
		sim_snapshot_lose_claims(sim, false);
		sim_directory_stop(sim->directories, host);
	}
	for (unsigned int i = 0; i < sim->config.vms; i++)
		end(sim, &sim->vm[i], host);
	fg_wire_keep_gids(sim->wire, host, false);
	fg_wire_renew(sim->wire, host);
	sim_host_open(sim, host);
	if (sim->directories)
		sim_net_disconnect(sim, host);
	for (unsigned int i = 0; i < sim->config.vms; i++)
		if (sim->vm[i].host == host)
			take_over(sim, &sim->vm[i]);
	/* Before the directory is lost, the new process has learnt of the other hosts. */
	if (sim->config.loses_directory)
		sim_run(sim);
	return true;
}
