// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* VMs that migrate, step by step, with anything between two steps. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "sim.h"

/* As in a real host, an adapter stays when its VM has left. */
void sim_vm_leave(struct sim *sim, struct sim_vm *vm, unsigned int host, bool migrated)
{
	struct pvr_adapter *adapter = vm->at[host];
	struct pvr_engine *engine = sim_host(sim, host)->engine;

	pvr_adapter_set_bus_master(adapter, false);
	if (!migrated || pvr_adapter_drop(adapter))
		pvr_adapter_reset(adapter);
	while (pvr_adapter_busy(adapter))
		pvr_engine_run(engine, pvr_adapter_worker(adapter));
	for (int i = 0; i < FG_RAM_REGIONS; i++)
		if (vm->guest->ram.region[i].size)
			pvr_adapter_unmap_ram(adapter, vm->guest->ram.region[i].gpa,
					      vm->guest->ram.region[i].size);
	sim_trace(&sim->trace, "vm%u has left host%u", vm->number, host + 1);
}

void sim_vm_go_to(struct sim *sim, struct sim_vm *vm, unsigned int host)
{
	struct fg_guest *guest = vm->guest;

	LIST_REMOVE(guest, of_host);
	guest->host = sim_host(sim, host);
	LIST_INSERT_HEAD(&guest->host->guests, guest, of_host);
	guest->adapter = vm->at[host];
}

void sim_vm_attach(struct sim *sim, struct sim_vm *vm, unsigned int host)
{
	bool ok;

	sim_vm_go_to(sim, vm, host);
	ok = vm->at[host] ? fg_guest_attach(vm->guest) : fg_guest_plug(vm->guest);
	if (!ok)
		sim_fail(sim, "attach", "vm%u cannot attach at host%u", vm->number, host + 1);
	vm->at[host] = vm->guest->adapter;
}

bool sim_vm_runs(const struct sim_vm *vm)
{
	return vm->phase == SIM_HOME || vm->phase == SIM_LEAVING;
}

/* Enough for all ends. Memory in one piece costs far fewer calls of the kernel. */
#define RAM_MIB 64

void sim_vm_start(struct sim *sim, struct sim_vm *vm, unsigned int number, unsigned int host)
{
	struct fg_guest_config config;

	fg_guest_config_init(&config, number);
	config.worker = number % sim->config.workers;
	config.ends = config.rings = sim->config.scattered ? FG_SCATTERED : FG_LINEAR;
	config.ram_mib = sim->config.scattered ? RAM_MIB : 8;
	config.linear_mib = sim->config.scattered ? 4 : RAM_MIB;
	vm->number = number;
	vm->host = host;
	vm->guest = fg_guest_start_as(sim_host(sim, host), &config);
	vm->at[host] = vm->guest->adapter;
}

void sim_vm_end(struct sim *sim, struct sim_vm *vm)
{
	for (unsigned int i = 0; i < sim->config.hosts; i++)
		if (vm->at[i] && vm->at[i] != vm->guest->adapter)
			pvr_adapter_destroy(vm->at[i]);
	sim_snapshot_free(vm);
	fg_state_free(&vm->state);
	sim_srq_close(vm);
	fg_guest_destroy(vm->guest);
}

static void next(struct sim *sim, struct sim_vm *vm, enum sim_move_phase phase)
{
	vm->phase = phase;
	vm->due = sim_now(sim) + sim_scale(&vm->rng, FG_US, 64 * FG_MS);
}

bool sim_move_begin(struct sim *sim, struct sim_vm *vm, struct sim_rng *rng)
{
	if (vm->phase != SIM_HOME || vm->twin || sim->config.hosts < 2 || sim->segment)
		return false;
	vm->from = vm->host;
	vm->to = (vm->host + 1 + sim_below(rng, sim->config.hosts - 1)) % sim->config.hosts;
	/*
	 * Without etcd it would not start there. And the host that it comes from can name the hosts of
	 * peers only if it knows them itself: not if the VM has come there while etcd was down.
	 */
	if (sim->directories && !sim_outage_is_over(sim) &&
	    (!sim_directory_knows(sim->directories, vm->to, vm->from) ||
	     (sim_directory_web(sim->directories) && vm->loaded >= sim->outage_at)))
		return false;
	vm->rng = sim_rng_of(sim_draw(rng), 0);
	vm->leaves_early = sim_one_in(rng, 3);
	vm->cancels = !vm->leaves_early && sim_one_in(rng, 8);
	vm->source_left = false;
	if (sim_directory_web(sim->directories)) {
		vm->keeps = sim_one_in(rng, 2);
		vm->is_alone = !vm->cancels && sim_outage_is_over(sim) && sim_one_in(rng, 4);
	}
	sim_trace(&sim->trace, "vm%u migrates from host%u to host%u%s%s", vm->number, vm->from + 1,
		  vm->to + 1, vm->leaves_early ? ", leaves early" : "",
		  vm->cancels ? ", is cancelled" : "");
	vm->phase = SIM_STOPPING;
	/* Memory is copied for a while. */
	vm->due = sim_now(sim) + sim_scale(&vm->rng, FG_US, 8 * FG_MS);
	if (sim->config.dirty)
		fg_dirty_start(vm->guest);
	return true;
}

bool sim_move_pause(struct sim *sim, struct sim_rng *rng)
{
	struct sim_vm *vm = &sim->vm[sim_below(rng, sim->config.vms)];

	if (vm->phase != SIM_HOME)
		return false;
	vm->rng = sim_rng_of(sim_draw(rng), 0);
	vm->pauses = true;
	sim_trace(&sim->trace, "vm%u pauses at host%u", vm->number, vm->host + 1);
	vm->phase = SIM_STOPPING;
	vm->due = sim_now(sim);
	return true;
}

/* Return: whether it has ended, with success. */
static bool has_ended(struct sim *sim, struct sim_vm *vm, const char *what, int err)
{
	char why[200];

	if (err == -EINPROGRESS) {
		vm->due = sim_now(sim) + FG_MS;
		return false;
	}
	if (err) {
		pvr_adapter_load_error(vm->guest->adapter, why, sizeof(why));
		sim_fail(sim, "migration", "vm%u: %s: %s: %s", vm->number, what, strerror(-err),
			 why);
	}
	return true;
}

/* A source that does not respond within a second is dead. */
#define SILENCE_NS (3 * FG_SEC)

static void silence_source(struct sim *sim, struct sim_vm *vm)
{
	unsigned int source = vm->restores ? vm->snapshot.host : vm->from;

	if (!sim_one_in(&vm->rng, 3))
		sim_net_silence(sim, source, vm->to, SILENCE_NS);
	if (!sim->held[source][vm->to].is || sim_one_in(&vm->rng, 2))
		sim_net_silence(sim, vm->to, source, SILENCE_NS);
}

/* etcd does not know that the VM has run on since: only the source can tell. */
static bool needs_source(const struct sim *sim, const struct sim_vm *vm)
{
	return sim_directory_web(sim->directories) && vm->restores &&
	       !sim_snapshot_is_claimed(sim, vm);
}

/* Of the pages in use. */
static uint64_t hash_of_memory(const struct sim_vm *vm)
{
	const struct fg_ram *ram = &vm->guest->ram;
	bool *used = calloc(ram->npages, sizeof(*used));
	uint64_t hash = 0;

	if (!used)
		fg_die("out of memory");
	fg_ram_get_used(ram, used);
	for (uint32_t page = 0; page < ram->npages; page++)
		if (used[page])
			hash = hash * 31 + sim_hash(fg_page_va(ram, page), PVR_PAGE_SIZE);
	free(used);
	return hash;
}

/* QEMU copies the last pages when the adapter has stopped: what changes later is lost. */
static void expect_same_memory(struct sim *sim, const struct sim_vm *vm)
{
	if (vm->memory && hash_of_memory(vm) != vm->memory)
		sim_fail(sim, "migration", "vm%u: memory has changed after the adapter has stopped",
			 vm->number);
	sim->count.checks++;
}

static void load(struct sim *sim, struct sim_vm *vm)
{
	int err;

	if (vm->restores) {
		/* Without its source, a state of a VM that ran on would be started. */
		sim_net_mend(sim, true);
		sim_restore_memory(sim, vm);
	}
	expect_same_memory(sim, vm);
	vm->memory = 0;
	sim_twin_load(sim, vm);
	sim_vm_attach(sim, vm, vm->to);
	vm->loaded = sim_now(sim);
	err = fg_state_load(vm->guest, &vm->state);
	has_ended(sim, vm, "load", err);
	sim_trace(&sim->trace, "vm%u: %zu bytes are loaded at host%u", vm->number, vm->state.size,
		  vm->to + 1);
	if (vm->twin)
		pvr_adapter_set_bus_master(vm->guest->adapter, false);
	if (vm->is_alone)
		silence_source(sim, vm);
}

static void cancel(struct sim *sim, struct sim_vm *vm)
{
	fg_state_free(&vm->state);
	sim_twin_cancel(sim, vm);
	sim_vm_leave(sim, vm, vm->to, false);
	sim_vm_go_to(sim, vm, vm->from);
	next(sim, vm, SIM_CANCELLING);
}

/*
 * Neither the source nor etcd tells whether another host has started with this state. Or each of them
 * tells that it is another one, of two.
 */
static bool is_refused(struct sim *sim, struct sim_vm *vm)
{
	if (vm->restores || !sim_directory_web(sim->directories) ||
	    (sim_outage_is_over(sim) && vm->loaded >= sim->calm_at &&
	     vm->twin_loaded != vm->loaded) ||
	    !sim_net_was_apart(sim, vm->from, vm->to, vm->loaded))
		return false;
	sim_trace(&sim->trace, "vm%u is refused at host%u", vm->number, vm->to + 1);
	if (!vm->source_left) {
		vm->was_refused = true;
		cancel(sim, vm);
		return true;
	}
	/* Its state is loaded there again. */
	sim_twin_cancel(sim, vm);
	sim_vm_leave(sim, vm, vm->to, false);
	vm->is_alone = vm->leaves_early = false;
	next(sim, vm, SIM_LOADING);
	return true;
}

void sim_move_step(struct sim *sim, struct sim_vm *vm)
{
	int err;

	sim_twin_step(sim, vm);
	if (vm->phase == SIM_HOME || vm->due > sim_now(sim))
		return;
	switch (vm->phase) {
	case SIM_HOME:
		break;
	case SIM_STOPPING:
		if (!has_ended(sim, vm, "stop", pvr_adapter_stop(vm->guest->adapter)))
			break;
		vm->memory = !vm->pauses && sim->step % 4 == 0 ? hash_of_memory(vm) : 0;
		next(sim, vm, vm->pauses ? SIM_CANCELLING : SIM_STOPPED);
		break;
	case SIM_STOPPED:
		has_ended(sim, vm, "save", fg_state_save(vm->guest, &vm->state));
		if (sim->config.dirty) {
			fg_dirty_check(vm->guest);
			pvr_adapter_stop_dirty_log(vm->guest->adapter);
		}
		if (vm->keeps)
			sim_snapshot_of_move(sim, vm);
		next(sim, vm, SIM_LOADING);
		break;
	case SIM_LOADING:
		if (needs_source(sim, vm) && !sim_outage_is_over(sim)) {
			sim_net_mend(sim, true);
			vm->due = sim_now(sim) + 10 * FG_MS;
			break;
		}
		load(sim, vm);
		next(sim, vm, SIM_LOADED);
		break;
	case SIM_LOADED:
		if (vm->cancels) {
			cancel(sim, vm);
			break;
		}
		if (vm->leaves_early) {
			sim_vm_leave(sim, vm, vm->from, true);
			vm->source_left = true;
		}
		next(sim, vm, SIM_STARTING);
		break;
	case SIM_STARTING:
		if (needs_source(sim, vm))
			sim_net_mend(sim, true);
		err = sim_twin_start(sim, vm, pvr_adapter_start(vm->guest->adapter));
		if (err == -EINPROGRESS && vm->is_alone)
			sim_pass_time(sim, sim_scale(&vm->rng, FG_MS, 64 * FG_MS));
		if (err == -EPERM && (sim_restore_refused(sim, vm) || is_refused(sim, vm)))
			break;
		if (!has_ended(sim, vm, "start", err))
			break;
		fg_state_free(&vm->state);
		/* Without it, as long as the state is at two hosts. */
		pvr_adapter_set_bus_master(vm->guest->adapter, true);
		vm->host = vm->to;
		if (vm->keeps)
			sim_snapshot_claim(sim, vm);
		vm->keeps = vm->is_alone = false;
		if (vm->restores)
			sim_restore_end(sim, vm);
		sim_trace(&sim->trace, "vm%u runs at host%u", vm->number, vm->host + 1);
		next(sim, vm, vm->source_left ? SIM_HOME : SIM_LEAVING);
		break;
	case SIM_CANCELLING:
		err = pvr_adapter_start(vm->guest->adapter);
		/* The host that was refused has got it from its source since: the operator knows. */
		if (err == -EPERM && vm->was_refused)
			err = pvr_adapter_reclaim(vm->guest->adapter) ? err : -EINPROGRESS;
		if (!has_ended(sim, vm, "start", err))
			break;
		vm->was_refused = false;
		if (vm->keeps)
			sim_snapshot_claim(sim, vm);
		vm->keeps = false;
		sim_trace(&sim->trace, "vm%u runs at host%u again", vm->number, vm->host + 1);
		vm->pauses = false;
		next(sim, vm, SIM_HOME);
		break;
	case SIM_LEAVING:
		sim_vm_leave(sim, vm, vm->from, true);
		next(sim, vm, SIM_HOME);
		break;
	}
}
