// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* Visits of all queue pairs of an adapter, in steps of bounded work. */
#include "rdma/qp_sweep.h"

#include "core/objects.h"
#include "rdma/cq.h"
#include "rdma/peer_gone.h"
#include "rdma/qp.h"
#include "rdma/sched.h"
#include "rdma/worker.h"

/* Work of a visit: the queue pair and its CQs are not in the cache. */
#define WORK_VISIT 8u

void pvr_qp_sweep_begin(struct pvr_adapter *adapter, enum pvr_qp_sweep_for reason)
{
	struct pvr_qp_sweep *sweep = &adapter->qp_sweep;

	if (sweep->reasons) {
		sweep->next |= reason;
		return;
	}
	sweep->reasons = reason;
	sweep->handle = 0;
	pvr_worker_queue(adapter);
}

void pvr_qp_sweep_cancel(struct pvr_adapter *adapter)
{
	adapter->qp_sweep.reasons = 0;
	adapter->qp_sweep.next = 0;
}

/* The reasons that came meanwhile are next. */
static void end_sweep(struct pvr_qp_sweep *sweep)
{
	sweep->reasons = sweep->next;
	sweep->next = 0;
	sweep->handle = 0;
}

static void postpone_peers(struct pvr_adapter *adapter)
{
	struct pvr_qp_sweep *sweep = &adapter->qp_sweep;

	if ((sweep->reasons | sweep->next) & PVR_SWEEP_PEERS)
		pvr_peer_gone_postpone(adapter);
	sweep->reasons &= ~PVR_SWEEP_PEERS;
	sweep->next &= ~PVR_SWEEP_PEERS;
	if (!sweep->reasons)
		end_sweep(sweep);
}

/* Return: whether it was moved to ERR. */
static bool fail_if_broken(struct pvr_qp *qp)
{
	const char *why = NULL;

	if ((qp->send_cq && qp->send_cq->error) || (qp->recv_cq && qp->recv_cq->error))
		why = "its CQ is in error";
	else if (qp->srq && qp->srq->error)
		why = "its SRQ is in error";
	return why && pvr_qp_fail(qp, PVR_EVENT_QP_FATAL, why);
}

/* Return: the work. @living: see pvr_peer_gone_check(). */
static uint32_t visit_qp(struct pvr_qp *qp, uint32_t reasons, uint64_t *living)
{
	uint32_t work = WORK_VISIT;

	if (reasons & PVR_SWEEP_ERRORS && fail_if_broken(qp))
		work += PVR_WORK_QP;
	if (reasons & PVR_SWEEP_PEERS && pvr_peer_gone_check(qp, living))
		work += PVR_WORK_QP;
	if (reasons & PVR_SWEEP_KICK) {
		work += WORK_VISIT;
		pvr_sched_kick(qp);
	}
	return work;
}

static uint32_t visit_cq(struct pvr_cq *cq)
{
	if (!cq->error)
		pvr_cq_check_arming(cq->uc->adapter, cq);
	return WORK_VISIT;
}

/* Visit the objects of handle @handle. Return: the work. */
static uint32_t visit(struct pvr_adapter *adapter, uint32_t handle, uint32_t reasons,
		      uint64_t *living)
{
	struct pvr_qp *qp = pvr_qp_get(adapter, handle);
	struct pvr_cq *cq = reasons & PVR_SWEEP_KICK ? pvr_cq_get(adapter, handle) : NULL;
	uint32_t work = 1;

	if (qp)
		work += visit_qp(qp, reasons, living);
	if (cq)
		work += visit_cq(cq);
	return work;
}

/* Return: whether no table that is visited has this handle or a higher one. */
static bool is_end(const struct pvr_adapter *adapter, const struct pvr_qp_sweep *sweep)
{
	return sweep->handle >= adapter->qps.size &&
	       (!(sweep->reasons & PVR_SWEEP_KICK) || sweep->handle >= adapter->cqs.size);
}

void pvr_qp_sweep_step(struct pvr_adapter *adapter)
{
	struct pvr_qp_sweep *sweep = &adapter->qp_sweep;
	uint64_t living = 0; /* most queue pairs have the same peer */
	uint32_t work = 0;

	if (!pvr_adapter_dma_ok(adapter))
		postpone_peers(adapter);
	while (sweep->reasons && work < PVR_STEP_WORK) {
		if (is_end(adapter, sweep)) {
			end_sweep(sweep);
			break;
		}
		work += visit(adapter, sweep->handle++, sweep->reasons, &living);
	}
	if (work > adapter->job.longest)
		adapter->job.longest = work;
}
