// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Programs that take completions. They poll, or they sleep: a program that finds no completion arms
 * its CQ, looks once more (as ibv_req_notify_cq() demands), and sleeps until the notification. So a
 * lost notification or interrupt shows as a request that never completes.
 */
#include "fg_event.h"
#include "sim.h"

static void wake_end(struct sim_end *end, const struct sim_vm *vm, uint32_t cq_handle)
{
	if (end->vm != vm)
		return;
	if (end->fg.scq.handle == cq_handle)
		end->sends_armed = false;
	if (end->fg.rcq.handle == cq_handle)
		end->recvs_armed = false;
}

static void wake(struct sim *sim, const struct sim_vm *vm, uint32_t cq_handle)
{
	for (unsigned int i = 0; i < 2 * sim->config.pairs; i++)
		wake_end(sim_flow_of(sim, i)->from, vm, cq_handle);
	for (unsigned int i = 0; i < sim->config.uds; i++)
		wake_end(&sim->ud[i].end, vm, cq_handle);
}

void sim_poll_events(struct sim *sim, struct sim_vm *vm)
{
	uint32_t cq_handle;

	if (!sim_vm_runs(vm))
		return;
	sim_demand_poll(sim, vm);
	if (vm->guest->irq[PVR_VEC_CQ] == vm->irqs)
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

void sim_poll_cq(struct sim *sim, const struct sim_vm *vm, struct fg_cq *cq, bool *armed,
		 void (*take)(struct sim *sim, void *of), void *of)
{
	if (!sim_vm_runs(vm) || *armed)
		return;
	do {
		take(sim, of);
		*armed = sim->config.sleeps && arm(sim, cq);
	} while (sim->config.sleeps && !*armed);
}

void sim_poll_sent(struct sim *sim, struct sim_flow *flow)
{
	struct sim_end *end = flow->from;

	if (!flow->pair->is_restored)
		sim_poll_cq(sim, end->vm, &end->fg.scq, &end->sends_armed, sim_oracle_sent, flow);
}

void sim_poll_received(struct sim *sim, struct sim_flow *flow)
{
	struct sim_end *end = flow->to;

	if (!flow->pair->is_restored)
		sim_poll_cq(sim, end->vm, &end->fg.rcq, &end->recvs_armed, sim_oracle_received,
			    flow);
}
