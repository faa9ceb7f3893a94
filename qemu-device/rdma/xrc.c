// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* XRC: the SRQ of a target queue pair. */
#include "rdma/xrc.h"

#include "core/ext_dma.h"
#include "rdma/qp.h"
#include "rdma/sched.h"

void pvr_xrc_take_srq(struct pvr_qp *to, struct pvr_srq *srq)
{
	pvr_xrc_drop_srq(to);
	to->srq = srq;
	to->recv_cq = srq->cq;
	/* The requester of an SRQ that was destroyed is not resumed yet. */
	srq->waking += to->rnr_resume_pending;
	to->cqe_qp = (uint64_t)(PVR_CQE_XRC | srq->handle) << 32 | to->qpn;
	LIST_INSERT_HEAD(&srq->targets, to->xrc_target, link);
}

const char *pvr_xrc_enter(struct pvr_qp *to, const struct pvr_request *request)
{
	struct pvr_srq *srq = pvr_srq_get(to->adapter, request->wqe->hdr.reserved);

	if (!srq || srq->xrcd != to->xrc_target->xrcd || srq->is_closing)
		return "XRC request to an SRQ that is not of the target's domain";
	if (request->op->recv && to->srq != srq) {
		/* Its receive is gone with the SRQ that it was taken from. */
		if (request->offset || to->held->valid)
			return "XRC message whose SRQ has changed or was destroyed";
		pvr_xrc_take_srq(to, srq);
	}
	to->pd = srq->pd;
	return NULL;
}

void pvr_xrc_leave(struct pvr_qp *to)
{
	to->pd = &to->xrc_target->xrcd->pd;
}

void pvr_xrc_drop_srq(struct pvr_qp *qp)
{
	if (!qp->srq)
		return;
	pvr_qp_drop_requester(qp);
	LIST_REMOVE(qp->xrc_target, link);
	qp->held->valid = false;
	qp->srq = NULL;
	qp->recv_cq = NULL;
}

bool pvr_xrc_release_some(struct pvr_srq *srq)
{
	struct pvr_adapter *adapter = srq->adapter;
	struct pvr_xrc_target *target;
	bool waits;

	srq->is_closing = true;
	while ((target = LIST_FIRST(&srq->targets)) && pvr_job_may_go_on(adapter)) {
		pvr_job_spend(adapter, PVR_WORK_OBJECT);
		waits = target->qp->rnr_nak_sent || target->qp->rnr_resume_pending;
		/* No NIC may write to a receive buffer of the SRQ after its end. */
		pvr_ext_dma_revoke_qp(target->qp);
		pvr_xrc_drop_srq(target->qp);
		if (!waits)
			continue;
		pvr_qp_set_rnr_resume_pending(target->qp, true);
		pvr_sched_kick_unlimited(target->qp);
	}
	return !target;
}
