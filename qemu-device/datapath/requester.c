/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * The requester: executes send queues.
 *
 * A request stays in its ring slot until it is done, and is fetched and checked anew
 * for every piece and every retry: nothing of it is kept but how far it got. A guest
 * that changes it meanwhile fools itself only.
 */
#include "datapath/requester.h"

#include "datapath/complete.h"
#include "datapath/flush.h"
#include "datapath/local_ops.h"
#include "datapath/prepare.h"
#include "datapath/request.h"
#include "datapath/rnr.h"
#include "datapath/sched.h"
#include "datapath/ud.h"
#include "transport/local.h"
#include "transport/remote_qp.h"

/* How often a peer is looked for when the timeout is 0: the requester never gives up. */
#define NO_TIMEOUT_POLL_NS 100000000ull

#define RNR_RETRY_FOREVER 7

struct turn {
	bool met; /* the peer has been looked for */
	struct pvr_qp *peer; /* or NULL */
	unsigned int batch; /* requests that are known to wait, and are of this turn */
	unsigned int left; /* how many more the turn may have */
	uint64_t bytes;
	struct pvr_tally tally;
};

enum step {
	STEP_NEXT, /* the request is completed */
	STEP_AGAIN, /* a piece is done, the turn is over */
	STEP_STOP, /* it waits, or the queue pair has failed */
	STEP_BUSY, /* it is as it was: the peer's adapter is busy */
};

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

static enum step fail(struct pvr_qp *qp, const struct pvr_send_wqe *wqe,
		      enum pvrdma_wc_status status, const char *why)
{
	pvr_requester_fail(qp, wqe, status, why);
	return STEP_STOP;
}

static void await_answer(struct pvr_qp *qp, uint64_t ns)
{
	pvr_qp_set_wait(qp, PVR_QP_WAITS_ACK);
	pvr_timer_set(&qp->adapter->timers, &qp->timer, pvr_now(qp->adapter->engine) + ns);
}

void pvr_requester_not_ready(struct pvr_qp *qp, const struct pvr_send_wqe *wqe, struct pvr_qp *peer,
			     uint64_t ns)
{
	qp->unanswered = false; /* this is an answer: the next silence is a new one */
	if (qp->attr.rnr_retry != RNR_RETRY_FOREVER) {
		if (!qp->rnr_left) {
			pvr_requester_fail(qp, wqe, PVRDMA_WC_RNR_RETRY_EXC_ERR,
					   "the responder has no receive posted");
			return;
		}
		qp->rnr_left--;
	}
	pvr_rnr_wait(qp, peer, ns);
}

void pvr_requester_wait(struct pvr_qp *qp)
{
	await_answer(qp, NO_TIMEOUT_POLL_NS);
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
	await_answer(qp, 4096ull << qp->attr.timeout);
}

static void count_sent(struct pvr_tally *tally, const struct pvr_request *request, bool taken)
{
	tally->msgs++;
	tally->bytes += request->length;
	if (request->op->local) {
		tally->reads += request->op->kind == PVR_OP_READ;
		tally->atomics += request->op->kind == PVR_OP_ATOMIC;
	}
	/* Each piece of a message is taken only if the one before was. */
	if (!taken) {
		tally->lost_msgs++;
		tally->lost_bytes += request->length;
	}
}

/* The piece is done; @taken: by the responder, which RC knows and UC does not ask. */
static pvr_always_inline enum step
acknowledged(struct pvr_qp *qp, const struct pvr_request *request, bool taken, struct turn *turn)
{
	turn->bytes += request->chunk;
	qp->retry_left = qp->attr.retry_cnt;
	qp->rnr_left = qp->attr.rnr_retry;
	qp->unanswered = false;
	if (!request->last) {
		qp->sq_done += request->chunk;
		return STEP_AGAIN;
	}
	count_sent(&turn->tally, request, taken);
	qp->sq_psn = (qp->sq_psn + request->psns) & 0xffffff;
	pvr_send_complete(qp, request->wqe, PVRDMA_WC_SUCCESS, request->length);
	return STEP_NEXT;
}

/* Local operations need none. Return: false if the peer's adapter is busy. */
static bool meet_peer(struct pvr_qp *qp, struct turn *turn)
{
	turn->met = turn->met || pvr_local_peer(qp, &turn->peer);
	return turn->met;
}

static pvr_always_inline enum step send_piece(struct pvr_qp *qp, const struct pvr_request *request,
					      struct turn *turn)
{
	struct pvr_answer answer;

	if (!meet_peer(qp, turn))
		return STEP_BUSY;
	answer = pvr_local_send(turn->peer, request);
	/* A connection to itself may have failed as responder meanwhile. */
	if (qp->state != PVR_QPS_RTS && !qp->sq_draining)
		return STEP_STOP;
	/* IBTA vol. 1, 9.8.2: for UC sent is done, and nobody tells what became of it. */
	if (answer.verdict == PVR_ACK || qp->type == PVR_QPT_UC)
		return acknowledged(qp, request, answer.verdict == PVR_ACK, turn);
	switch (answer.verdict) {
	case PVR_RNR:
		pvr_requester_not_ready(qp, request->wqe, turn->peer, answer.wait_ns);
		return STEP_STOP;
	case PVR_NAK:
		return fail(qp, request->wqe, answer.status, "the responder refused a request");
	default:
		pvr_requester_not_answered(qp, request->wqe);
		return STEP_STOP;
	}
}

static enum step local_step(struct pvr_qp *qp, const struct pvr_send_wqe *wqe, struct turn *turn)
{
	if (pvr_wqe_is_inline(&qp->sq, wqe) || wqe->hdr.num_sge > qp->sq.max_sge)
		return fail(qp, wqe, PVRDMA_WC_LOC_QP_OP_ERR,
			    "a request that has no data, with data");
	if (pvr_local_op(qp, wqe, &turn->bytes))
		return fail(qp, wqe, PVRDMA_WC_MW_BIND_ERR,
			    "a region or window could not be bound, registered or invalidated");
	pvr_send_complete(qp, wqe, PVRDMA_WC_SUCCESS, 0);
	return STEP_NEXT;
}

/* Of connected queue pairs, RC and UC. */
static pvr_always_inline enum step connected_step(struct pvr_qp *qp, struct pvr_send_wqe *wqe,
						  struct turn *turn)
{
	const struct pvr_opcode *op = pvr_opcode(wqe->hdr.opcode);
	enum pvrdma_wc_status status;
	struct pvr_sg sg;
	uint64_t chunk;

	if (!pvr_may_post(qp, op))
		return fail(qp, wqe, PVRDMA_WC_LOC_QP_OP_ERR, "send with an unknown opcode");
	if (op->kind == PVR_OP_LOCAL)
		return local_step(qp, wqe, turn);
	status = pvr_prepare(&sg, qp, wqe, op, qp->sq_done);
	if (status != PVRDMA_WC_SUCCESS)
		return fail(qp, wqe, status, pvr_prepare_why(qp, op, status));
	chunk = sg.total - qp->sq_done;
	return send_piece(qp,
			  &(struct pvr_request){
				  .from = &qp->origin,
				  .wqe = wqe,
				  .op = op,
				  .local = &sg,
				  .length = sg.total,
				  .offset = qp->sq_done,
				  .chunk = chunk < PVR_TURN_BYTES ? chunk : PVR_TURN_BYTES,
				  .psns = pvr_psns(qp, sg.total),
				  .last = chunk <= PVR_TURN_BYTES,
			  },
			  turn);
}

/* Datagrams do not wait for receivers: they arrive or are dropped. */
static enum step ud_step(struct pvr_qp *qp, struct pvr_send_wqe *wqe, struct turn *turn)
{
	enum pvrdma_wc_status status;
	uint64_t length = 0, work = 0;
	enum pvr_ud_sent sent;

	sent = pvr_ud_send(qp, wqe, &status, &length, &work);
	turn->bytes += work;
	if (sent == PVR_UD_BUSY)
		return STEP_BUSY;
	if (sent == PVR_UD_LATER) {
		__atomic_store_n(&qp->adapter->remotes.any, true, __ATOMIC_SEQ_CST);
		await_answer(qp, PVR_UD_LATER_NS);
		return STEP_STOP;
	}
	if (status != PVRDMA_WC_SUCCESS)
		return fail(qp, wqe, status, "a datagram that cannot be sent");
	pvr_send_complete(qp, wqe, status, length);
	return STEP_NEXT;
}

/* Looks at the ring for the next requests of this turn. Return: whether there are some. */
static bool take_batch(struct pvr_qp *qp, struct turn *turn)
{
	int avail = turn->left ? pvr_wq_avail(&qp->sq) : 0;

	if (avail < 0) {
		pvr_qp_fail(qp, PVR_EVENT_QP_FATAL, "its SQ producer index is out of range");
		return false;
	}
	turn->batch = (unsigned int)avail < turn->left ? (unsigned int)avail : turn->left;
	turn->left -= turn->batch;
	return turn->batch;
}

static pvr_always_inline enum step step(struct pvr_qp *qp, struct turn *turn)
{
	struct pvr_send_wqe wqe;

	pvr_wq_fetch_send(&qp->sq, &wqe);
	return pvr_qp_is_connected(qp) ? connected_step(qp, &wqe, turn) : ud_step(qp, &wqe, turn);
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

static enum pvr_turn execute_some(struct pvr_qp *qp, struct turn *turn)
{
	enum step result;

	while (turn->bytes < PVR_TURN_BYTES) {
		if (!turn->batch && !take_batch(qp, turn))
			return turn->left ? PVR_TURN_OVER : PVR_TURN_MORE;
		result = step(qp, turn);
		if (result == STEP_NEXT)
			turn->batch--;
		else if (result != STEP_AGAIN)
			return result == STEP_BUSY ? PVR_TURN_BLOCKED : PVR_TURN_OVER;
		if (qp->state == PVR_QPS_RTS)
			continue;
		/* Completing may have failed the CQ, and the queue pair with it. */
		if (!qp->sq_draining)
			return PVR_TURN_MORE;
		if (result == STEP_NEXT) {
			pvr_requester_drained(qp);
			return PVR_TURN_OVER;
		}
	}
	return PVR_TURN_MORE;
}

static void count_turn(struct pvr_qp *qp, const struct pvr_tally *tally)
{
	pvr_count(qp, PVR_STAT_TX_MSGS, tally->msgs);
	pvr_count(qp, PVR_STAT_TX_BYTES, tally->bytes);
	if (tally->reads)
		pvr_count(qp, PVR_STAT_TX_READS, tally->reads);
	if (tally->atomics)
		pvr_count(qp, PVR_STAT_TX_ATOMICS, tally->atomics);
	pvr_count(qp, PVR_STAT_LOCAL_BYTES, tally->bytes - tally->lost_bytes);
}

/* A peer that turns out to be on another host is for its own turns. */
static enum pvr_turn execute(struct pvr_qp *qp)
{
	struct turn turn = { .left = PVR_TURN_REQUESTS };
	enum pvr_turn result;

	if (qp->remote_sq)
		return pvr_remote_turn(qp);
	result = execute_some(qp, &turn);
	if (result == PVR_TURN_BLOCKED && qp->peer_remote)
		result = pvr_remote_turn(qp);
	if (turn.tally.msgs)
		count_turn(qp, &turn.tally);
	if (turn.peer)
		pvr_local_end_turn(qp, turn.peer, &turn.tally);
	return result;
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
	if (qp->wait == PVR_QP_LOOKS_RNR && !pvr_rnr_look(qp))
		return PVR_TURN_BLOCKED;
	return qp->wait == PVR_QP_RUNNING ? execute(qp) : PVR_TURN_OVER;
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
		pvr_rnr_over(qp);
	pvr_qp_set_wait(qp, PVR_QP_RUNNING);
	pvr_sched_kick(qp);
}

void pvr_requester_timeout(struct pvr_timer *timer)
{
	struct pvr_qp *qp = (struct pvr_qp *)((char *)timer - offsetof(struct pvr_qp, timer));

	if (qp->wait == PVR_QP_LOOKS_RNR)
		pvr_sched_kick(qp);
	else if (qp->wait == PVR_QP_WAITS_RNR || qp->wait == PVR_QP_WAITS_ACK)
		pvr_requester_resume(qp);
	else
		pvr_remote_timeout(qp);
}
