// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* Receive requests: from the QP's own queue or its SRQ, until they complete. */
#include "rdma/rq.h"

#include <errno.h>
#include <string.h>

#include "rdma/cq.h"
#include "rdma/qp.h"
#include "rdma/qp_sweep.h"
#include "rdma/sched.h"
#include "rdma/db_suppress.h"
#include "rdma/event.h"

/*
 * IBTA 10.2.9.3: one event when fewer than the limit are left; the event clears the
 * limit.
 */
static void srq_check_limit(struct pvr_qp *qp, struct pvr_srq *srq)
{
	int avail = srq->limit ? pvr_wq_avail(&srq->wq) : -1;

	if (avail < 0 || (uint32_t)avail >= srq->limit)
		return;
	srq->limit = 0;
	pvr_event_async(qp->adapter, PVR_EVENT_SRQ_LIMIT_REACHED, srq->handle);
}

/* Size of the fetched entries. The caller checks num_sge above max_sge later. */
static size_t list_size(const struct pvr_srq *srq, const struct pvrdma_rq_wqe_hdr *hdr)
{
	uint32_t n = hdr->num_sge < srq->wq.max_sge ? hdr->num_sge : srq->wq.max_sge;

	return n * sizeof(struct pvrdma_sge);
}

static int srq_hold(struct pvr_qp *qp, struct pvr_recv_wqe *wqe)
{
	struct pvr_srq *srq = qp->srq;
	int avail = srq->error ? -EIO : pvr_wq_avail(&srq->wq);

	if (avail < 0) {
		pvr_srq_fail(qp->adapter, srq, "its producer index is out of range");
		pvr_qp_fail(qp, PVR_EVENT_QP_FATAL, "its SRQ is in error");
		return -EINVAL;
	}
	if (!avail)
		return -ENOENT;
	pvr_wq_fetch_recv(&srq->wq, wqe);
	pvr_wq_advance(qp->adapter, &srq->wq);
	srq_check_limit(qp, srq);
	qp->held->valid = true;
	qp->held->hdr = wqe->hdr;
	memcpy(qp->held->sge, wqe->sge, list_size(srq, &wqe->hdr));
	return 0;
}

static int srq_get(struct pvr_qp *qp, struct pvr_recv_wqe *wqe)
{
	if (!qp->held->valid)
		return srq_hold(qp, wqe);
	wqe->hdr = qp->held->hdr;
	memcpy(wqe->sge, qp->held->sge, list_size(qp->srq, &wqe->hdr));
	return 0;
}

int pvr_recv_get(struct pvr_qp *qp, struct pvr_recv_wqe *wqe)
{
	int avail;

	if (qp->srq)
		return srq_get(qp, wqe);
	avail = pvr_wq_avail(&qp->rq);
	if (avail < 0) {
		pvr_qp_fail(qp, PVR_EVENT_QP_FATAL, "its RQ producer index is out of range");
		return -EINVAL;
	}
	if (!avail)
		return -ENOENT;
	pvr_wq_fetch_recv(&qp->rq, wqe);
	return 0;
}

void pvr_recv_complete(struct pvr_qp *qp, struct pvrdma_cqe *cqe, bool solicited)
{
	if (qp->srq)
		qp->held->valid = false;
	else
		pvr_wq_advance(qp->adapter, &qp->rq);
	pvr_cq_push(qp, qp->recv_cq, cqe, solicited);
}

/* ------------------------------------------------------------- waiting requesters */

/* A quantum resumes the requester, because its adapter may belong to another worker. */
static void wake_later(struct pvr_qp *qp)
{
	pvr_qp_set_rnr_nak_sent(qp, false);
	pvr_qp_set_rnr_resume_pending(qp, true);
	pvr_sched_kick_unlimited(qp);
}

void pvr_sched_posted_recv(struct pvr_qp *qp)
{
	if (qp->state == PVR_QPS_ERR)
		pvr_sched_kick(qp);
	else if (qp->rnr_nak_sent)
		wake_later(qp);
}

void pvr_sched_posted_srq(struct pvr_srq *srq)
{
	int left = srq->error ? -EIO : pvr_wq_avail(&srq->wq);
	bool all = left < 0; /* each of them must see the error */
	struct pvr_qp *qp;

	left -= srq->waking;

	/*
	 * Resume no more requesters than there are receives: each of the others would
	 * spend a quantum and an RNR retry. The requesters run in later quanta, so none
	 * of them waits again during this loop.
	 */
	while ((all || left-- > 0) && (qp = TAILQ_FIRST(&srq->waiting)))
		wake_later(qp);
	/* The list of waiting requesters may be empty now. */
	pvr_db_update_srq(srq);
}

void pvr_sched_pass_on(struct pvr_qp *qp)
{
	struct pvr_qp *next = qp->srq ? TAILQ_FIRST(&qp->srq->waiting) : NULL;

	if (next)
		wake_later(next);
}

void pvr_srq_fail(struct pvr_adapter *adapter, struct pvr_srq *srq, const char *why)
{
	if (srq->error)
		return;
	srq->error = true;
	pvr_db_update_srq(srq);
	pvr_log_guest(adapter, "srq %u: error: %s", srq->handle, why);
	pvr_event_async(adapter, PVR_EVENT_SRQ_ERR, srq->handle);
	pvr_qp_sweep_begin(adapter, PVR_SWEEP_ERRORS);
}
