// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * The requester: executes send queues.
 *
 * A request stays in its ring slot until it completes. Each fragment and each retry
 * fetches and checks it again; only its offset is kept. A guest that changes a request in
 * progress affects only itself.
 */
#include "rdma/requester.h"

#include "rdma/cq.h"
#include "rdma/completer.h"
#include "rdma/path.h"
#include "rdma/sched.h"
#include "rdma/ud.h"
#include "rdma/qp.h"
#include "rdma/event.h"

/*
 * After a longer wait for a receive the next one is not polled: polls would find nothing.
 */
#define RNR_SLOW_NS 2000000ull

void pvr_requester_bad_index(struct pvr_qp *qp)
{
	pvr_qp_fail(qp, PVR_EVENT_QP_FATAL, "its SQ producer index is out of range");
}

bool pvr_requester_has_request(struct pvr_qp *qp)
{
	int avail = pvr_wq_avail(&qp->sq);

	if (avail < (int)qp->sq_inflight) {
		pvr_requester_bad_index(qp);
		return false;
	}
	return avail;
}

void pvr_requester_drained(struct pvr_qp *qp)
{
	pvr_qp_set_state(qp, PVR_QPS_SQD);
	qp->sq_draining = false; /* the state may be SQD already */
	if (qp->attr.en_sqd_async_notify)
		pvr_event_async(qp->adapter, PVR_EVENT_SQ_DRAINED, qp->handle);
}

void pvr_requester_drain(struct pvr_qp *qp)
{
	bool waits = qp->wait != PVR_QP_RUNNING && qp->wait != PVR_QP_WAIT_CONN;

	if (!qp->sq_offset && !qp->mcast_next && !qp->sq_inflight && !waits) {
		pvr_requester_drained(qp);
		return;
	}
	/*
	 * QUERY_QP reports SQD and draining; execution of the request at the head
	 * continues.
	 */
	qp->state = PVR_QPS_SQD;
	qp->sq_draining = true;
}

static enum pvr_quantum flush(struct pvr_qp *qp, bool recv)
{
	unsigned int budget = PVR_QUANTUM_REQUESTS;
	bool more = pvr_flush_send(qp, &budget);

	more |= recv && pvr_flush_recv(qp, &budget);
	return more ? PVR_QUANTUM_MORE : PVR_QUANTUM_DONE;
}

enum pvr_quantum pvr_requester_run(struct pvr_qp *qp)
{
	bool sends = qp->state == PVR_QPS_RTS || (qp->state == PVR_QPS_SQD && qp->sq_draining);
	enum pvr_quantum result = PVR_QUANTUM_DONE;

	if (sends && qp->wait <= PVR_QP_WAIT_RNR_POLL)
		result = pvr_qp_is_connected(qp)
				 ? pvr_path_get(qp)->run_sq(qp, qp->adapter->quantum_requests)
				 : pvr_ud_run(qp);
	else if (qp->state == PVR_QPS_SQE || qp->state == PVR_QPS_ERR)
		result = flush(qp, qp->state == PVR_QPS_ERR);
	pvr_publish(qp->adapter);
	return result;
}

/*
 * A producer index out of range counts as work in RTS and SQD: the quantum fails the QP.
 */
bool pvr_requester_has_work(const struct pvr_qp *qp)
{
	switch (qp->state) {
	case PVR_QPS_RTS:
		return qp->wait == PVR_QP_RUNNING && pvr_wq_avail(&qp->sq) != (int)qp->sq_inflight;
	case PVR_QPS_SQD:
		return qp->sq_draining && qp->wait == PVR_QP_RUNNING &&
		       pvr_wq_avail(&qp->sq) != (int)qp->sq_inflight;
	case PVR_QPS_SQE:
	case PVR_QPS_ERR:
		return pvr_wq_avail(&qp->sq) > 0;
	default:
		return false;
	}
}

void pvr_requester_resume(struct pvr_qp *qp)
{
	pvr_timer_cancel(&qp->adapter->timers, &qp->timer);
	if (qp->wait == PVR_QP_WAIT_RNR)
		qp->rnr_slow = pvr_running_time(qp->adapter) - qp->rnr_since > RNR_SLOW_NS;
	pvr_qp_set_wait(qp, PVR_QP_RUNNING);
	pvr_sched_kick(qp);
}

void pvr_requester_timeout(struct pvr_timer *timer)
{
	struct pvr_qp *qp = (struct pvr_qp *)((char *)timer - offsetof(struct pvr_qp, timer));
	const struct pvr_path_ops *path = pvr_path_current(qp);

	if (qp->wait == PVR_QP_WAIT_RNR_POLL)
		pvr_sched_kick(qp);
	else if (qp->wait == PVR_QP_WAIT_RNR || qp->wait == PVR_QP_WAIT_RETRY ||
		 qp->wait == PVR_QP_WAIT_PAGE)
		pvr_requester_resume(qp);
	else if (path->timeout)
		path->timeout(qp);
}
