// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* Visits of all queue pairs of an adapter, in steps of bounded work. */
#include "rdma/qp_sweep.h"

#include "core/objects.h"
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
static uint32_t visit(struct pvr_qp *qp, uint32_t reasons, uint64_t *living)
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

void pvr_qp_sweep_step(struct pvr_adapter *adapter)
{
	struct pvr_qp_sweep *sweep = &adapter->qp_sweep;
	uint64_t living = 0; /* most queue pairs have the same peer */
	uint32_t work = 0;
	struct pvr_qp *qp;

	if (!pvr_adapter_dma_ok(adapter))
		postpone_peers(adapter);
	while (sweep->reasons && work < PVR_STEP_WORK) {
		if (sweep->handle >= adapter->qps.size) {
			end_sweep(sweep);
			break;
		}
		qp = pvr_qp_get(adapter, sweep->handle++);
		work += qp ? visit(qp, sweep->reasons, &living) : 1;
	}
	if (work > adapter->job.longest)
		adapter->job.longest = work;
}
