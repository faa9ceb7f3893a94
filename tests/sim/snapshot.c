// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Snapshots of VMs that run on, and their restore at any host. Peers have executed requests since, so
 * a restored VM must continue no connection.
 */
#include <stdlib.h>
#include <string.h>

#include "sim.h"

#include "core/objects.h"
#include "rdma/qp.h"
#include "rdma/worker.h"

/* Copies the pages that are in use, one after the other. */
static void save_memory(struct sim_snapshot *snapshot, const struct fg_ram *ram)
{
	size_t num = 0;

	snapshot->used = calloc(ram->npages, sizeof(*snapshot->used));
	if (!snapshot->used)
		fg_die("out of memory");
	fg_ram_get_used(ram, snapshot->used);
	for (uint32_t page = 0; page < ram->npages; page++)
		num += snapshot->used[page];
	snapshot->memory = malloc(num * PVR_PAGE_SIZE);
	if (!snapshot->memory)
		fg_die("out of memory");
	num = 0;
	for (uint32_t page = 0; page < ram->npages; page++)
		if (snapshot->used[page])
			memcpy(snapshot->memory + num++ * PVR_PAGE_SIZE, fg_page_va(ram, page),
			       PVR_PAGE_SIZE);
}

static void load_memory(const struct sim_snapshot *snapshot, struct fg_ram *ram)
{
	const uint8_t *at = snapshot->memory;

	for (uint32_t page = 0; page < ram->npages; page++) {
		if (!snapshot->used[page])
			continue;
		memcpy(fg_page_va(ram, page), at, PVR_PAGE_SIZE);
		at += PVR_PAGE_SIZE;
	}
}

static struct sim_end *end_of(struct sim *sim, const struct sim_vm *vm, unsigned int i)
{
	struct sim_end *end = &sim->pair[i / 2].end[i % 2];

	return end->vm == vm ? end : NULL;
}

void sim_snapshot_free(struct sim_vm *vm)
{
	fg_state_free(&vm->snapshot.state);
	free(vm->snapshot.memory);
	free(vm->snapshot.used);
	vm->snapshot.memory = NULL;
	vm->snapshot.used = NULL;
	vm->snapshot.taken = false;
}

static void copy_state(struct fg_state *to, const struct fg_state *from)
{
	to->size = from->size;
	to->data = malloc(to->size);
	if (!to->data)
		fg_die("out of memory");
	memcpy(to->data, from->data, to->size);
}

/* A host calls etcd at most twice for it. */
#define CLAIM_NS (200 * FG_MS)

void sim_snapshot_claim(struct sim *sim, struct sim_vm *vm)
{
	vm->snapshot.starter = vm->host;
	vm->snapshot.claimed_at = sim_now(sim) + CLAIM_NS;
	vm->snapshot.unclaimed = !sim_outage_is_over(sim);
}

void sim_snapshot_lose_claims(struct sim *sim, bool all)
{
	for (unsigned int i = 0; i < sim->config.vms; i++)
		if (all || sim_now(sim) < sim->vm[i].snapshot.claimed_at)
			sim->vm[i].snapshot.unclaimed = true;
}

bool sim_snapshot_is_claimed(const struct sim *sim, const struct sim_vm *vm)
{
	return !vm->snapshot.unclaimed && sim_now(sim) >= vm->snapshot.claimed_at;
}

/* All but the state, which was saved. */
static void note(struct sim *sim, struct sim_vm *vm)
{
	struct sim_snapshot *snapshot = &vm->snapshot;

	save_memory(snapshot, &vm->guest->ram);
	snapshot->taken = true;
	snapshot->host = vm->host;
	sim_snapshot_claim(sim, vm);
	snapshot->guest = *vm->guest;
	snapshot->srq = vm->srq;
	for (unsigned int i = 0; i < 2 * sim->config.pairs; i++)
		if (end_of(sim, vm, i))
			snapshot->end[i] = *end_of(sim, vm, i);
	for (unsigned int i = 0; i < sim->config.uds; i++)
		snapshot->ud[i] = sim->ud[i].end;
}

void sim_snapshot_of_move(struct sim *sim, struct sim_vm *vm)
{
	sim_snapshot_free(vm);
	copy_state(&vm->snapshot.state, &vm->state);
	note(sim, vm);
}

bool sim_snapshot(struct sim *sim, struct sim_rng *rng)
{
	struct sim_vm *vm = &sim->vm[sim_below(rng, sim->config.vms)];

	if (vm->phase != SIM_HOME || sim->segment)
		return false;
	sim_snapshot_free(vm);
	fg_stop(vm->guest);
	if (fg_state_save(vm->guest, &vm->snapshot.state))
		sim_fail(sim, "snapshot", "vm%u cannot be saved", vm->number);
	note(sim, vm);
	if (fg_start(vm->guest))
		sim_fail(sim, "snapshot", "vm%u does not run on", vm->number);
	sim_trace(&sim->trace, "vm%u: a snapshot at host%u", vm->number, vm->host + 1);
	return true;
}

bool sim_restore_refused(struct sim *sim, struct sim_vm *vm)
{
	/*
	 * Where it was started last it can be started again, if etcd and the host of the snapshot have
	 * responded all the time.
	 */
	if (!vm->restores || !sim_directory_web(sim->directories) ||
	    (vm->to == vm->snapshot.starter &&
	     !sim_net_was_apart(sim, vm->snapshot.host, vm->to, vm->loaded) &&
	     sim_outage_is_over(sim) && vm->loaded >= sim->calm_at))
		return false;
	sim_trace(&sim->trace, "vm%u is refused at host%u", vm->number, vm->to + 1);
	sim_vm_leave(sim, vm, vm->to, false);
	vm->to = vm->snapshot.starter;
	vm->is_alone = false;
	vm->phase = SIM_LOADING;
	vm->due = sim_now(sim) + SIM_ECHO_NS;
	return true;
}

bool sim_restore_begin(struct sim *sim, struct sim_rng *rng)
{
	struct sim_vm *vm = &sim->vm[sim_below(rng, sim->config.vms)];

	/* No source refers to a restored VM: without a directory it is not found. */
	if (vm->phase != SIM_HOME || vm->twin || !vm->snapshot.taken || sim->config.loses_directory)
		return false;
	sim_trace(&sim->trace, "vm%u ends, and is restored later", vm->number);
	vm->from = vm->host;
	vm->to = sim_below(rng, sim->config.hosts);
	/* Often where the state was started before. */
	if (sim->step % 2)
		vm->to = vm->snapshot.starter;
	vm->rng = sim_rng_of(sim_draw(rng), 0);
	vm->leaves_early = vm->cancels = false;
	vm->source_left = vm->restores = true;
	vm->is_alone = sim_snapshot_is_claimed(sim, vm) && vm->to != vm->snapshot.host &&
		       sim_one_in(rng, 2);
	sim_vm_leave(sim, vm, vm->host, false);
	vm->phase = SIM_LOADING;
	vm->due = sim_now(sim) + SIM_ECHO_NS;
	for (unsigned int i = 0; i < 2 * sim->config.pairs; i++)
		if (end_of(sim, vm, i))
			sim->pair[i / 2].is_broken = sim->pair[i / 2].is_restored = true;
	return true;
}

/* The driver and its programs go on with their indices of the snapshot, as memory has these. */
void sim_restore_memory(struct sim *sim, struct sim_vm *vm)
{
	const struct sim_snapshot *snapshot = &vm->snapshot;
	struct fg_guest *guest = vm->guest;

	load_memory(snapshot, &guest->ram);
	guest->async_head = snapshot->guest.async_head;
	guest->cq_head = snapshot->guest.cq_head;
	vm->srq = snapshot->srq;
	memcpy(guest->vector, snapshot->guest.vector, sizeof(guest->vector));
	for (unsigned int i = 0; i < 2 * sim->config.pairs; i++)
		if (end_of(sim, vm, i))
			*end_of(sim, vm, i) = snapshot->end[i];
	for (unsigned int i = 0; i < sim->config.uds; i++)
		if (sim->ud[i].end.vm == vm)
			sim->ud[i].end = snapshot->ud[i];
	fg_state_free(&vm->state);
	copy_state(&vm->state, &snapshot->state);
}

/*
 * Its VM has run since: peers may have executed other requests. With a file of peers a host cannot know
 * that if the source is silent for a second, as here, while others connect again.
 */
static void expect_no_connection(struct sim *sim, const struct sim_vm *vm,
				 const struct sim_end *end)
{
	const struct pvr_qp *qp = pvr_qp_get(vm->guest->adapter, end->fg.qp.handle);

	if (qp && pvr_qp_is_connected(qp) && qp->state > PVR_QPS_INIT && qp->state != PVR_QPS_ERR)
		sim_fail(sim, "fence", "vm%u was restored, and queue pair %u goes on", vm->number,
			 end->fg.qp.qpn);
	sim->count.checks++;
}

/* From now on its requests must not reach the peers. */
void sim_restore_end(struct sim *sim, struct sim_vm *vm)
{
	vm->restores = false;
	vm->is_alone = false;
	sim_snapshot_claim(sim, vm);
	/* The host of a peer executes requests that the VM posted before it ended. */
	sim_hear_all(sim);
	for (unsigned int i = 0; i < 2 * sim->config.pairs; i++)
		if (end_of(sim, vm, i)) {
			if (sim->config.directory != SIM_FILE)
				expect_no_connection(sim, vm, end_of(sim, vm, i));
			sim_break_watch(sim, &sim->pair[i / 2], !(i % 2), &vm->rng);
		}
	for (unsigned int i = 0; i < sim->config.uds; i++)
		if (sim->ud[i].end.vm == vm)
			sim_ud_restore(sim, &sim->ud[i]);
}
