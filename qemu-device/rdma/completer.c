// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* Completion of send requests, and the error handling of the requester. */
#include "rdma/completer.h"

#include "rdma/cq.h"
#include "rdma/wr.h"
#include "rdma/rq.h"
#include "rdma/event.h"
#include "rdma/qp.h"

#define RNR_RETRY_FOREVER 7
#define RNR_GRACE_MIN_NS 1000000u

/*
 * Without PVR_EXT_MW the opcode BIND_MW is unknown, and its CQE has the default opcode.
 */
static uint32_t send_opcode(const struct pvr_qp *qp, uint32_t opcode)
{
	const struct pvr_opcode *op = pvr_opcode(opcode);

	return op->ext & ~qp->adapter->features ? PVRDMA_WC_SEND : op->done;
}

void pvr_send_push_cqe(struct pvr_qp *qp, const struct pvr_send_wqe *wqe,
		       enum pvrdma_wc_status status, uint64_t length)
{
	struct pvrdma_cqe cqe = {
		.wr_id = wqe->hdr.wr_id,
		.opcode = send_opcode(qp, wqe->hdr.opcode),
		.status = status,
		.byte_len = status == PVRDMA_WC_SUCCESS ? length : 0,
		.port_num = 1,
	};

	pvr_cq_push(qp, qp->send_cq, &cqe, false);
}

/*
 * The first flushed request after the peer's end has its own status, of a send or of a
 * receive: programs may ignore flushes.
 */
static enum pvrdma_wc_status flush_status(struct pvr_qp *qp, enum pvrdma_wc_status if_gone)
{
	bool peer_gone = qp->peer_gone;

	qp->peer_gone = false;
	return peer_gone ? if_gone : PVRDMA_WC_WR_FLUSH_ERR;
}

bool pvr_flush_send(struct pvr_qp *qp, unsigned int *budget)
{
	struct pvr_send_wqe wqe PVR_UNINITIALIZED;

	while (pvr_wq_avail(&qp->sq) > 0) {
		if (!*budget)
			return true;
		--*budget;
		pvr_wq_fetch_send(&qp->sq, &wqe);
		pvr_send_complete(qp, &wqe, flush_status(qp, PVRDMA_WC_RETRY_EXC_ERR), 0);
	}
	return false;
}

static void flush_one_recv(struct pvr_qp *qp, const struct pvrdma_rq_wqe_hdr *hdr)
{
	struct pvrdma_cqe cqe = {
		.wr_id = hdr->wr_id,
		.opcode = PVRDMA_WC_RECV,
		.status = flush_status(qp, PVRDMA_WC_GENERAL_ERR),
		.port_num = 1,
	};

	pvr_recv_complete(qp, &cqe, false);
}

/*
 * Requests in an SRQ belong to no QP: only the request that the QP has taken is flushed.
 */
static void flush_srq(struct pvr_qp *qp)
{
	if (qp->held->valid)
		flush_one_recv(qp, &qp->held->hdr);
	/* A target uses SRQs, but none is associated with it (IBTA A14). */
	if (qp->last_wqe || qp->xrc_target)
		return;
	qp->last_wqe = true;
	pvr_event_async(qp->adapter, PVR_EVENT_QP_LAST_WQE_REACHED, qp->handle);
}

void pvr_flush_held(struct pvr_qp *qp)
{
	if (!qp->held || !qp->held->valid || !pvr_adapter_dma_ok(qp->adapter) ||
	    !pvr_cq_has_room(qp->recv_cq))
		return;
	flush_one_recv(qp, &qp->held->hdr);
	pvr_publish(qp->adapter);
}

bool pvr_flush_recv(struct pvr_qp *qp, unsigned int *budget)
{
	struct pvr_recv_wqe wqe PVR_UNINITIALIZED;

	if (qp->srq) {
		flush_srq(qp);
		return false;
	}
	while (pvr_wq_avail(&qp->rq) > 0) {
		if (!*budget)
			return true;
		--*budget;
		pvr_wq_fetch_recv(&qp->rq, &wqe);
		flush_one_recv(qp, &wqe.hdr);
	}
	return false;
}

/* ------------------------------------------------------- responses and timeouts */

/*
 * IBTA 10.3.1: an error of an unreliable QP's send queue moves the QP to SQE, not to ERR.
 */
static void fail_queue(struct pvr_qp *qp, const char *why)
{
	if (qp->type == PVR_QPT_RC) {
		pvr_qp_fail(qp, PVR_EVENT_NUM, why);
		return;
	}
	/* A CQ overrun may have moved the QP to ERR already. */
	if (qp->state != PVR_QPS_RTS && !qp->sq_draining)
		return;
	pvr_log_guest(qp->adapter, "qp %u: %s -> SQE: %s", qp->handle, pvr_qp_state_name(qp->state),
		      why);
	pvr_qp_note_error(qp, why);
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
	pvr_qp_set_wait(qp, PVR_QP_WAIT_RETRY);
	pvr_timer_set(&qp->adapter->timers, &qp->timer, pvr_now(qp->adapter->engine) + ns);
}

/* Return: nanoseconds that are left of the grace, see completer.h. */
static uint64_t rnr_grace_left(const struct pvr_qp *qp, uint64_t rnr_timer, uint64_t now)
{
	uint64_t past = now - qp->rnr_since;
	uint64_t grace = rnr_timer < RNR_GRACE_MIN_NS ? RNR_GRACE_MIN_NS : rnr_timer;

	return past < grace ? grace - past : 0;
}

uint64_t pvr_requester_rnr_nak(struct pvr_qp *qp, const struct pvr_send_wqe *wqe, uint64_t ns)
{
	uint64_t now = pvr_running_time(qp->adapter);

	qp->unanswered = false; /* the NAK is a response: the next timeout is a first one */
	if (!qp->rnr_nak)
		qp->rnr_since = now;
	qp->rnr_nak = true;
	if (qp->attr.rnr_retry == RNR_RETRY_FOREVER)
		return ns;
	if (qp->rnr_left) {
		qp->rnr_left--;
		return ns;
	}
	ns = rnr_grace_left(qp, ns, now);
	if (!ns)
		pvr_requester_fail(qp, wqe, PVRDMA_WC_RNR_RETRY_EXC_ERR,
				   "the responder has no receive posted");
	return ns;
}

void pvr_requester_wait_rnr(struct pvr_qp *qp, uint64_t ns)
{
	struct pvr_timers *timers = &qp->adapter->timers;

	qp->rnr_until = pvr_running_time(qp->adapter) + ns;
	qp->wait = PVR_QP_WAIT_RNR;
	pvr_timer_set(timers, &qp->timer, pvr_timers_with_pauses(timers, qp->rnr_until));
}

void pvr_requester_wait_page(struct pvr_qp *qp, uint64_t ns)
{
	pvr_qp_set_wait(qp, PVR_QP_WAIT_PAGE);
	pvr_timer_set(&qp->adapter->timers, &qp->timer, pvr_now(qp->adapter->engine) + ns);
}

void pvr_requester_wait(struct pvr_qp *qp)
{
	pvr_requester_await(qp, PVR_NO_TIMEOUT_POLL_NS);
}

static bool count_retry(struct pvr_qp *qp, const struct pvr_send_wqe *wqe, const char *why)
{
	if (qp->retry_left) {
		qp->retry_left--;
		return true;
	}
	pvr_count(qp, PVR_STAT_RETRIES_EXCEEDED, 1);
	pvr_requester_fail(qp, wqe, PVRDMA_WC_RETRY_EXC_ERR, why);
	return false;
}

bool pvr_requester_retry(struct pvr_qp *qp, const struct pvr_send_wqe *wqe)
{
	pvr_count(qp, PVR_STAT_ACK_TIMEOUTS, 1);
	return count_retry(qp, wqe, "the peer does not answer");
}

/* IBTA 9.9.2.1: the retry counter is that of timeouts. */
bool pvr_requester_seq_nak(struct pvr_qp *qp, const struct pvr_send_wqe *wqe)
{
	qp->unanswered = false; /* the NAK is a response: the next timeout is a first one */
	return count_retry(qp, wqe, "the responder reports a sequence error each time");
}

void pvr_requester_ask_again(struct pvr_qp *qp)
{
	uint64_t passed = pvr_running_time(qp->adapter) - qp->unanswered_at;
	uint64_t ns = passed > PVR_ASK_AGAIN_NS ? passed : PVR_ASK_AGAIN_NS;

	if (qp->wait == PVR_QP_WAIT_RETRY && qp->unanswered && qp->attr.timeout &&
	    passed + ns < 4096ull << qp->attr.timeout)
		pvr_requester_await(qp, ns);
}

/* No host is known to have the peer's GID. */
static bool is_peer_unknown(const struct pvr_qp *qp)
{
	return qp->path_searched && qp->path_found == PVR_PATH_DEFAULT && !qp->peer_adapter &&
	       !qp->path_host;
}

void pvr_requester_no_response(struct pvr_qp *qp, const struct pvr_send_wqe *wqe)
{
	bool is_unknown = is_peer_unknown(qp);
	uint64_t now = pvr_running_time(qp->adapter), ns = 4096ull << qp->attr.timeout;

	if (qp->peer_gone) {
		qp->peer_gone = false; /* this request reports it */
		pvr_count(qp, PVR_STAT_RETRIES_EXCEEDED, 1);
		pvr_requester_fail(qp, wqe, PVRDMA_WC_RETRY_EXC_ERR, "the peer's guest is gone");
		return;
	}
	if (!qp->attr.timeout) {
		qp->unanswered = true;
		pvr_requester_wait(qp);
		return;
	}
	/* A peer that is found earlier, and does not respond either, costs no further retry. */
	if (!qp->unanswered || now - qp->unanswered_at >= ns) {
		if (qp->unanswered && !pvr_requester_retry(qp, wqe))
			return;
		qp->unanswered = true;
		qp->unanswered_at = now;
	}
	pvr_requester_await(qp, qp->unanswered_at + ns - now);
	/* Without the directory no event tells where the peer is: the hosts that it has left are asked. */
	if (is_unknown)
		pvr_requester_ask_again(qp);
}
