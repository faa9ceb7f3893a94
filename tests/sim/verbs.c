// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* Verbs beside the requests: CQs that are resized, and send queues that are drained for a while. */
#include "sim.h"

bool sim_verbs_resize(struct sim *sim, struct sim_rng *rng)
{
	unsigned int i = sim_below(rng, 2 * sim->config.pairs);
	struct sim_end *end = &sim->pair[i / 2].end[i % 2];
	bool recvs = sim_one_in(rng, 2);
	uint32_t cqe = FG_END_CQE << sim_below(rng, 3);

	if (!sim_vm_runs(end->vm) || sim_end_is_destroyed(end) ||
	    !(sim->config.ext & PVR_EXT_RESIZE))
		return false;
	if (fg_cq_resize(recvs ? &end->fg.rcq : &end->fg.scq, cqe))
		sim_fail(sim, "command", "vm%u: RESIZE_CQ fails", end->vm->number);
	sim_trace(&sim->trace, "vm%u: CQ %u has %u elements", end->vm->number,
		  recvs ? end->fg.rcq.handle : end->fg.scq.handle, cqe);
	/* The new ring has no record of the arm. */
	*(recvs ? &end->recvs_armed : &end->sends_armed) = false;
	/* The ring of an earlier time is free. */
	sim_snapshot_free(end->vm);
	return true;
}

static void go_to(struct sim *sim, const struct sim_flow *flow, enum pvr_qp_state state)
{
	struct sim_end *end = flow->from;
	const struct pvr_qp_attr attr = { .qp_state = state };

	if (fg_qp_modify(&end->fg.qp, PVR_QPA_STATE, &attr))
		sim_fail(sim, "command", "vm%u: queue pair %u does not go to %s", end->vm->number,
			 end->fg.qp.qpn, state == PVR_QPS_SQD ? "SQD" : "RTS");
	sim_trace(&sim->trace, "vm%u: queue pair %u goes to %s", end->vm->number, end->fg.qp.qpn,
		  state == PVR_QPS_SQD ? "SQD" : "RTS");
	end->is_drained = state == PVR_QPS_SQD;
	end->drained_at = flow->posted;
}

bool sim_verbs_drain(struct sim *sim, struct sim_rng *rng)
{
	unsigned int i = sim_below(rng, 2 * sim->config.pairs);
	struct sim_flow *flow = sim_flow_of(sim, i);
	struct sim_end *end = flow->from;

	if (!sim_vm_runs(end->vm) || sim->pair[i / 2].is_broken || sim->pair[i / 2].is_half)
		return false;
	go_to(sim, flow, end->is_drained ? PVR_QPS_RTS : PVR_QPS_SQD);
	return true;
}

void sim_verbs_end_drains(struct sim *sim)
{
	for (unsigned int i = 0; i < 2 * sim->config.pairs; i++) {
		const struct sim_flow *flow = sim_flow_of(sim, i);
		const struct sim_end *end = flow->from;

		if (end->is_drained && sim_vm_runs(end->vm) && !sim->pair[i / 2].is_broken)
			go_to(sim, flow, PVR_QPS_RTS);
	}
}
