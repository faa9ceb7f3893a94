/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * The requester: executes send queues.
 *
 * A request stays in its ring slot until it is done, and is fetched and checked anew
 * for every piece and every retry: nothing of it is kept but how far it got. A guest
 * that changes it meanwhile fools itself only.
 */
#include "rdma/requester.h"

#include "rdma/cq.h"
#include "rdma/completer.h"
#include "rdma/path.h"
#include "rdma/sched.h"
#include "rdma/ud_send.h"

/* How often a peer is looked for when the timeout is 0: the requester never gives up. */
#define NO_TIMEOUT_POLL_NS 100000000ull

#define RNR_RETRY_FOREVER 7
/* Receives that come later than this are better told of: looks would be in vain next time. */
#define RNR_SLOW_NS 2000000ull

/* IBTA vol. 1, 10.3.1: of an unreliable QP only the send queue fails. */
static void fail_queue(struct pvr_qp *qp, const char *why)
{
	if (qp->type == PVR_QPT_RC) {
		pvr_qp_fail(qp, PVR_EVENT_NUM, why);
		return;
	}
	/* A CQ that was full may have failed all of it already. */
	if (qp->state != PVR_QPS_RTS && !qp->sq_draining)
		return;
	pvr_log_guest(qp->adapter, "qp %u: %s -> SQE: %s", qp->handle, pvr_qp_state_name(qp->state),
		      why);
	pvr_qp_set_state(qp, PVR_QPS_SQE);
}

void pvr_requester_fail(struct pvr_qp *qp, const struct pvr_send_wqe *wqe,
			enum pvrdma_wc_status status, const char *why)
{
	pvr_send_complete(qp, wqe, status, 0);
	fail_queue(qp, why);
}

void pvr_requester_await(struct pvr_qp *qp, uint64_t ns)
{
	pvr_qp_set_wait(qp, PVR_QP_WAITS_ACK);
	pvr_timer_set(&qp->adapter->timers, &qp->timer, pvr_now(qp->adapter->engine) + ns);
}

bool pvr_requester_not_ready(struct pvr_qp *qp, const struct pvr_send_wqe *wqe)
{
	qp->unanswered = false; /* this is an answer: the next silence is a new one */
	if (qp->attr.rnr_retry == RNR_RETRY_FOREVER)
		return true;
	if (qp->rnr_left) {
		qp->rnr_left--;
		return true;
	}
	pvr_requester_fail(qp, wqe, PVRDMA_WC_RNR_RETRY_EXC_ERR,
			   "the responder has no receive posted");
	return false;
}

void pvr_requester_wait_rnr(struct pvr_qp *qp, uint64_t ns)
{
	qp->rnr_until = pvr_now(qp->adapter->engine) + ns;
	qp->wait = PVR_QP_WAITS_RNR;
	pvr_timer_set(&qp->adapter->timers, &qp->timer, qp->rnr_until);
}

void pvr_requester_wait(struct pvr_qp *qp)
{
	pvr_requester_await(qp, NO_TIMEOUT_POLL_NS);
}

bool pvr_requester_retry(struct pvr_qp *qp, const struct pvr_send_wqe *wqe)
{
	pvr_count(qp, PVR_STAT_ACK_TIMEOUTS, 1);
	if (qp->retry_left) {
		qp->retry_left--;
		return true;
	}
	pvr_count(qp, PVR_STAT_RETRIES_EXCEEDED, 1);
	pvr_requester_fail(qp, wqe, PVRDMA_WC_RETRY_EXC_ERR, "the peer does not answer");
	return false;
}

void pvr_requester_not_answered(struct pvr_qp *qp, const struct pvr_send_wqe *wqe)
{
	if (qp->peer_gone) {
		qp->peer_gone = false; /* said by this request */
		pvr_count(qp, PVR_STAT_RETRIES_EXCEEDED, 1);
		pvr_requester_fail(qp, wqe, PVRDMA_WC_RETRY_EXC_ERR, "the peer's guest is gone");
		return;
	}
	if (!qp->attr.timeout) {
		pvr_requester_wait(qp);
		return;
	}
	if (qp->unanswered && !pvr_requester_retry(qp, wqe))
		return;
	qp->unanswered = true;
	pvr_requester_await(qp, 4096ull << qp->attr.timeout);
}

void pvr_requester_bad_index(struct pvr_qp *qp)
{
	pvr_qp_fail(qp, PVR_EVENT_QP_FATAL, "its SQ producer index is out of range");
}

void pvr_requester_drained(struct pvr_qp *qp)
{
	pvr_qp_set_state(qp, PVR_QPS_SQD);
	qp->sq_draining = false; /* it may have been in SQD, see pvr_requester_drain() */
	if (qp->attr.en_sqd_async_notify)
		pvr_event_async(qp->adapter, PVR_EVENT_SQ_DRAINED, qp->handle);
}

void pvr_requester_drain(struct pvr_qp *qp)
{
	bool waits = qp->wait != PVR_QP_RUNNING && qp->wait != PVR_QP_WAITS_LINK;

	if (!qp->sq_done && !qp->mcast_next && !qp->sq_begun && !waits) {
		pvr_requester_drained(qp);
		return;
	}
	/* QUERY_QP says SQD and draining; the request at the head goes on. */
	qp->state = PVR_QPS_SQD;
	qp->sq_draining = true;
}

static enum pvr_turn flush(struct pvr_qp *qp, bool recv)
{
	unsigned int budget = PVR_TURN_REQUESTS;
	bool more = pvr_flush_send(qp, &budget);

	more |= recv && pvr_flush_recv(qp, &budget);
	return more ? PVR_TURN_MORE : PVR_TURN_OVER;
}

static enum pvr_turn execute_or_wait(struct pvr_qp *qp)
{
	if (qp->wait > PVR_QP_LOOKS_RNR)
		return PVR_TURN_OVER;
	return pvr_qp_is_connected(qp) ? pvr_path_get(qp)->run_sq(qp) : pvr_ud_run(qp);
}

static enum pvr_turn turn_by_state(struct pvr_qp *qp)
{
	switch (qp->state) {
	case PVR_QPS_RTS:
		return execute_or_wait(qp);
	case PVR_QPS_SQD:
		return qp->sq_draining ? execute_or_wait(qp) : PVR_TURN_OVER;
	case PVR_QPS_SQE:
		return flush(qp, false);
	case PVR_QPS_ERR:
		return flush(qp, true);
	default:
		return PVR_TURN_OVER;
	}
}

enum pvr_turn pvr_requester_turn(struct pvr_qp *qp)
{
	enum pvr_turn result = turn_by_state(qp);

	pvr_publish(qp->adapter);
	return result;
}

/* A wild index is something to do once; in error it is none. */
bool pvr_requester_has_work(const struct pvr_qp *qp)
{
	switch (qp->state) {
	case PVR_QPS_RTS:
		return qp->wait == PVR_QP_RUNNING && pvr_wq_avail(&qp->sq) != (int)qp->sq_begun;
	case PVR_QPS_SQD:
		return qp->sq_draining && qp->wait == PVR_QP_RUNNING &&
		       pvr_wq_avail(&qp->sq) != (int)qp->sq_begun;
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
	if (qp->wait == PVR_QP_WAITS_RNR)
		qp->rnr_slow = pvr_now(qp->adapter->engine) - qp->rnr_since > RNR_SLOW_NS;
	pvr_qp_set_wait(qp, PVR_QP_RUNNING);
	pvr_sched_kick(qp);
}

void pvr_requester_timeout(struct pvr_timer *timer)
{
	struct pvr_qp *qp = (struct pvr_qp *)((char *)timer - offsetof(struct pvr_qp, timer));
	const struct pvr_path_ops *path = pvr_path_current(qp);

	if (qp->wait == PVR_QP_LOOKS_RNR)
		pvr_sched_kick(qp);
	else if (qp->wait == PVR_QP_WAITS_RNR || qp->wait == PVR_QP_WAITS_ACK)
		pvr_requester_resume(qp);
	else if (path->timeout)
		path->timeout(qp);
}
