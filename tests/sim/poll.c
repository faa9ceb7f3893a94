// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Programs that take completions. They poll, or they sleep: a program that finds no completion arms
 * its CQ, looks once more (as ibv_req_notify_cq() demands), and sleeps until the notification. So a
 * lost notification or interrupt shows as a request that never completes.
 */
#include "fg_event.h"
#include "sim.h"

static void wake(struct sim *sim, struct sim_vm *vm, uint32_t cq_handle)
{
	for (unsigned int i = 0; i < 2 * sim->config.pairs; i++) {
		struct sim_end *end = sim_rc_of(sim, i)->from;

		if (end->vm != vm)
			continue;
		if (end->fg.scq.handle == cq_handle)
			end->sends_armed = false;
		if (end->fg.rcq.handle == cq_handle)
			end->recvs_armed = false;
	}
}

void sim_poll_events(struct sim *sim, struct sim_vm *vm)
{
	uint32_t cq_handle;

	if (!sim_vm_runs(vm) || vm->guest->irq[PVR_VEC_CQ] == vm->irqs)
		return;
	vm->irqs = vm->guest->irq[PVR_VEC_CQ];
	while (fg_cq_event_poll(vm->guest, &cq_handle)) {
		sim_trace(&sim->trace, "vm%u: CQ %u is notified", vm->number, cq_handle);
		wake(sim, vm, cq_handle);
	}
}

/* Return: whether the program may sleep. */
static bool arm(const struct sim *sim, struct fg_cq *cq)
{
	if (sim->config.ext & PVR_EXT_CQ_ARM_DBREC)
		fg_cq_arm_in_memory(cq, PVR_CQ_ARM_ANY);
	else
		fg_cq_arm(cq);
	return !fg_cq_pending(cq);
}

/* @take: takes all completions of @cq. *@armed: whether the program sleeps. */
static void poll_cq(struct sim *sim, struct sim_rc *rc, const struct sim_vm *vm, struct fg_cq *cq,
		    bool *armed, void (*take)(struct sim *sim, struct sim_rc *rc))
{
	if (rc->pair->is_restored || !sim_vm_runs(vm) || *armed)
		return;
	do {
		take(sim, rc);
		*armed = sim->config.sleeps && arm(sim, cq);
	} while (sim->config.sleeps && !*armed);
}

void sim_poll_sent(struct sim *sim, struct sim_rc *rc)
{
	struct sim_end *end = rc->from;

	poll_cq(sim, rc, end->vm, &end->fg.scq, &end->sends_armed, sim_oracle_sent);
}

void sim_poll_received(struct sim *sim, struct sim_rc *rc)
{
	struct sim_end *end = rc->to;

	poll_cq(sim, rc, end->vm, &end->fg.rcq, &end->recvs_armed, sim_oracle_received);
}
