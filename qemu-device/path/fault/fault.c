// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* Faults on demand: the path in front of another one. */
#include "core/objects.h"
#include "path/fault/internal.h"
#include "rdma/completer.h"
#include "rdma/cq.h"
#include "rdma/qp.h"
#include "rdma/requester.h"
#include "rdma/responder.h"

/* A stalled peer polls the end of the stall in this interval. */
#define STALL_NS 10000000ull

static const char why_failed[] = "a fault of the operator (pvrdmactl fault)";

/* The treatment of the request at the head. */
enum decision {
	PASS, /* the path behind sends it */
	SKIP, /* it has completed, or is decided again */
	STOP, /* the send queue waits or has failed */
	BUSY, /* the peer's adapter is locked */
};

static enum pvr_resolve resolve(struct pvr_qp *qp)
{
	return pvr_fault_matches_qp(qp) ? PVR_RESOLVE_YES : PVR_RESOLVE_NO;
}

/* The path behind this one. */
static const struct pvr_path_ops *behind(const struct pvr_qp *qp)
{
	return qp->adapter->engine->paths[qp->path_behind];
}

bool pvr_fault_is_sending(const struct pvr_qp *qp)
{
	return qp->state == PVR_QPS_RTS || qp->sq_draining;
}

static bool is_nak(uint16_t status)
{
	return status == PVRDMA_WC_REM_ACCESS_ERR || status == PVRDMA_WC_REM_INV_REQ_ERR ||
	       status == PVRDMA_WC_REM_OP_ERR;
}

/* A responder that sends a NAK moves to ERR. Return: false if its adapter is locked. */
static bool fail_peer(struct pvr_qp *qp, uint16_t status)
{
	const struct pvr_path_ops *path = behind(qp);
	struct pvr_qp *peer;

	if (!is_nak(status))
		return true;
	if (!path->lock_peer(qp, &peer))
		return false;
	if (!peer || !pvr_qp_can_respond(peer))
		return true;
	pvr_responder_fail(peer, (enum pvrdma_wc_status)status, why_failed);
	pvr_publish(peer->adapter);
	return true;
}

/* The path behind asks the daemon of another host for the error, in place of the request. */
static enum decision ask(struct pvr_qp *qp, struct pvr_fault_sq *sq, uint16_t status)
{
	sq->flips.far_status = status;
	qp->flips = &sq->flips;
	return PASS;
}

static enum decision fail_request(struct pvr_qp *qp, struct pvr_fault_sq *sq,
				  const struct pvr_send_wqe *wqe)
{
	if (is_nak(sq->status) && !behind(qp)->lock_peer) {
		sq->may_pass = true;
		return ask(qp, sq, sq->status);
	}
	if (!fail_peer(qp, sq->status))
		return BUSY;
	sq->is_known = false;
	if (sq->status == PVRDMA_WC_RETRY_EXC_ERR)
		pvr_count(qp, PVR_STAT_RETRIES_EXCEEDED, 1);
	/* A queue pair that is its own peer has failed already. */
	if (pvr_fault_is_sending(qp))
		pvr_requester_fail(qp, wqe, sq->status, why_failed);
	return STOP;
}

/* IBTA 9.8.2: a UC request completes when it is sent, with or without effect. */
static enum decision lose_uc(struct pvr_qp *qp, const struct pvr_opcode *op)
{
	struct pvr_quantum_budget budget = { .batch = 1 };
	struct pvr_send_wqe wqe PVR_UNINITIALIZED;
	struct pvr_sg sg PVR_UNINITIALIZED;
	struct pvr_request request;

	pvr_wq_fetch_send(&qp->sq, &wqe);
	/* The guest may have changed it. The path behind fails a bad request. */
	if (pvr_opcode(wqe.hdr.opcode) != op ||
	    pvr_prepare(&sg, qp, &wqe, op, 0) != PVRDMA_WC_SUCCESS)
		return PASS;
	request = pvr_requester_fragment(qp, &wqe, op, &sg, PVR_QUANTUM_BYTES);
	request.chunk = request.length;
	request.last = true;
	pvr_count(qp, PVR_STAT_TX_MSGS, 1);
	pvr_count(qp, PVR_STAT_TX_BYTES, request.length);
	return pvr_requester_go_on(qp, &budget, pvr_requester_ack(qp, &request, &budget)) ? SKIP
											  : STOP;
}

/* Return: PASS if there is no responder here that has a receive request. */
static enum decision fail_recv(struct pvr_qp *qp, struct pvr_fault_sq *sq,
			       const struct pvr_opcode *op)
{
	struct pvr_fault *fault = sq->uses[sq->by.recv - 1].fault;
	const struct pvr_path_ops *path = behind(qp);
	struct pvr_send_wqe wqe PVR_UNINITIALIZED;
	struct pvr_sg sg PVR_UNINITIALIZED;
	struct pvr_syndrome syndrome;
	struct pvr_request request;
	struct pvr_qp *peer;

	if (!op->recv)
		return PASS;
	if (!path->lock_peer)
		return ask(qp, sq, fault->rule.recv_status);
	if (!path->lock_peer(qp, &peer))
		return BUSY;
	pvr_wq_fetch_send(&qp->sq, &wqe);
	if (!peer || !pvr_qp_can_respond(peer) || pvr_opcode(wqe.hdr.opcode) != op ||
	    pvr_prepare(&sg, qp, &wqe, op, 0) != PVRDMA_WC_SUCCESS)
		return PASS;
	request = pvr_requester_fragment(qp, &wqe, op, &sg, qp->adapter->quantum_bytes);
	syndrome = pvr_responder_fail_recv(
		peer, &request, (enum pvrdma_wc_status)fault->rule.recv_status, why_failed);
	if (syndrome.kind == PVR_SYN_NONE)
		return PASS;
	pvr_publish(peer->adapter);
	pvr_fault_count(&fault->injected[PVR_FAULT_RECV_ERROR]);
	sq->is_known = false;
	if (qp->type == PVR_QPT_UC)
		return lose_uc(qp, op);
	/* A queue pair that is its own peer has failed already. */
	if (pvr_fault_is_sending(qp))
		pvr_requester_fail(qp, &wqe, syndrome.status, why_failed);
	return STOP;
}

/* As if the completion of the request found no room. */
static enum decision overflow_cq(struct pvr_qp *qp, struct pvr_fault_sq *sq)
{
	sq->is_known = false;
	pvr_count(qp, PVR_STAT_CQ_OVERFLOWS, 1);
	pvr_cq_fail(qp->adapter, qp->send_cq, why_failed);
	pvr_qp_fail(qp, PVR_EVENT_QP_FATAL, why_failed);
	return STOP;
}

void pvr_fault_fail(struct pvr_qp *qp, struct pvr_fault_sq *sq, const struct pvr_send_wqe *wqe)
{
	if (sq->overflows) {
		overflow_cq(qp, sq);
		return;
	}
	sq->is_known = false;
	pvr_requester_fail(qp, wqe, sq->status, why_failed);
}

/*
 * The timer of an RNR NAK is the responder's, and both sides of a connection usually have the
 * same. The own one is known for each path.
 */
static enum decision not_ready(struct pvr_qp *qp, struct pvr_fault_sq *sq,
			       const struct pvr_send_wqe *wqe)
{
	struct pvr_fault *fault = sq->uses[sq->by.rnr - 1].fault;
	uint64_t ns;

	pvr_fault_count(&fault->injected[PVR_FAULT_RNR]);
	if (!fault->rule.rnr_always)
		sq->by.rnr = 0;
	ns = pvr_requester_rnr_nak(qp, wqe, pvr_rnr_timer_ns(qp));
	if (ns)
		pvr_requester_wait_rnr(qp, ns);
	return STOP;
}

/* The responder has a hole before the request, and executes nothing. */
static enum decision out_of_sequence(struct pvr_qp *qp, struct pvr_fault_sq *sq,
				     const struct pvr_send_wqe *wqe)
{
	struct pvr_fault *fault = sq->uses[sq->by.nak - 1].fault;

	pvr_fault_count(&fault->injected[PVR_FAULT_NAK]);
	if (!fault->rule.nak_always)
		sq->by.nak = 0;
	return pvr_requester_seq_nak(qp, wqe) ? SKIP : STOP;
}

static enum decision lose(struct pvr_qp *qp, const struct pvr_opcode *op,
			  const struct pvr_send_wqe *wqe)
{
	if (qp->type == PVR_QPT_UC)
		return lose_uc(qp, op);
	pvr_requester_no_response(qp, wqe);
	return STOP;
}

/*
 * The timer of the last try has expired: there are 1 + retry_cnt tries. Without faults a path
 * tries once more at this time, because that may succeed.
 */
static bool has_no_try_left(const struct pvr_qp *qp)
{
	return qp->type == PVR_QPT_RC && qp->unanswered && !qp->retry_left && qp->attr.timeout;
}

/* @state: of the queue pair whose messages stall its peer; NULL: it has sent none */
static bool is_stalled(const struct pvr_fault_state *state, const struct pvr_fault_rule *rule)
{
	return !rule->after || (state && state->messages > rule->after);
}

/*
 * A peer that is stalled sends nothing. Return: PASS if it is not, STOP if it waits, BUSY if the
 * adapter of its own peer, which has counted the messages before the stall, is locked.
 */
static enum decision stall(struct pvr_qp *qp, const struct pvr_fault_sq *sq)
{
	const struct pvr_path_ops *path = behind(qp);
	const struct pvr_fault_state *state;
	struct pvr_qp *peer;
	uint8_t i;

	for (i = 0; i < sq->num; i++) {
		if (!sq->uses[i].is_peer || !path->lock_peer)
			continue;
		if (!path->lock_peer(qp, &peer))
			return BUSY;
		state = peer ? pvr_fault_state_of(peer, sq->uses[i].id) : NULL;
		if (!is_stalled(state, &sq->uses[i].fault->rule))
			continue;
		pvr_requester_await(qp, STALL_NS);
		return STOP;
	}
	return PASS;
}

/* Decide about the request at the head, unless some of it has been sent. */
static enum decision decide(struct pvr_qp *qp, struct pvr_fault_sq *sq)
{
	struct pvr_send_wqe wqe PVR_UNINITIALIZED;
	int posted = pvr_wq_avail(&qp->sq);
	const struct pvr_opcode *op;
	enum decision stalled, failed;
	uint64_t now;

	if (posted <= 0 || qp->sq_offset || sq->may_pass)
		return PASS;
	stalled = stall(qp, sq);
	if (stalled != PASS)
		return stalled;
	pvr_wq_fetch_send_hdr(&qp->sq, &wqe);
	op = pvr_opcode(wqe.hdr.opcode);
	if (op->kind == PVR_OP_LOCAL || !pvr_may_post(qp, op))
		return PASS;
	if (!sq->is_known || sq->head != qp->sq.head)
		pvr_fault_begin(qp, sq, op, (uint32_t)posted);
	now = sq->due ? pvr_now(qp->adapter->engine) : 0;
	if (now < sq->due) {
		pvr_requester_await(qp, sq->due - now);
		return STOP;
	}
	pvr_fault_set_port_down(qp, sq);
	if (sq->status)
		return fail_request(qp, sq, &wqe);
	if (sq->overflows)
		return overflow_cq(qp, sq);
	if (sq->by.recv && !sq->by.stalled) {
		failed = fail_recv(qp, sq, op);
		if (failed != PASS)
			return failed;
	}
	if (sq->by.nak && !sq->by.stalled)
		return out_of_sequence(qp, sq, &wqe);
	if (sq->by.rnr && !sq->by.stalled)
		return not_ready(qp, sq, &wqe);
	if (has_no_try_left(qp) || pvr_fault_is_lost(sq))
		return lose(qp, op, &wqe);
	sq->may_pass = true;
	return PASS;
}

/* ------------------------------------------------------------------------ a quantum */

/* Follow the peer to another path, unless requests still need the one behind this path. */
static void change_path(struct pvr_qp *qp)
{
	const struct pvr_path_ops *path = behind(qp);

	if (qp->path_behind != qp->path_target && qp->path_found == PVR_PATH_FAULT &&
	    (!path->detach || path->detach(qp)))
		qp->path_behind = qp->path_target;
}

/* The path behind executes at most @max requests, and has at most one in flight. */
static enum pvr_quantum pass(struct pvr_qp *qp, unsigned int max)
{
	const struct pvr_path_ops *path = behind(qp);

	if (path->set_serial)
		path->set_serial(qp, true);
	if (qp->flips && path->run_damaged)
		return path->run_damaged(qp, max);
	return path->run_sq(qp, max);
}

/* Once for each message that was to fail at another host. */
static void count_asked(struct pvr_fault_sq *sq)
{
	uint8_t by = sq->status ? sq->by.error : sq->by.recv;
	struct pvr_fault *fault;

	if (sq->flips.asked == PVR_FLIPS_NOT_ASKED || sq->asked_is_counted)
		return;
	sq->asked_is_counted = true;
	fault = sq->uses[by - 1].fault;
	if (sq->flips.asked == PVR_FLIPS_REFUSED)
		pvr_fault_count(&fault->refused);
	else if (!sq->status)
		pvr_fault_count(&fault->injected[PVR_FAULT_RECV_ERROR]);
}

/* @max: requests, or fragments of a request that has begun */
static enum pvr_quantum send_one(struct pvr_qp *qp, struct pvr_fault_sq *sq, unsigned int max)
{
	enum pvr_quantum result;

	/* A poll for a receive, or a request in flight: this path has decided about it. */
	if (qp->wait != PVR_QP_RUNNING || qp->sq_inflight)
		return pass(qp, max);
	switch (decide(qp, sq)) {
	case SKIP:
		return PVR_QUANTUM_MORE;
	case STOP:
		return PVR_QUANTUM_DONE;
	case BUSY:
		return PVR_QUANTUM_BUSY;
	default:
		break;
	}
	result = pass(qp, 1);
	count_asked(sq);
	/* A try that was not made is not decided again. */
	if (result != PVR_QUANTUM_BUSY)
		sq->may_pass = false;
	return result;
}

static enum pvr_quantum run_sq(struct pvr_qp *qp, unsigned int max)
{
	const uint64_t *sent = &qp->adapter->stat[PVR_STAT_TX_BYTES];
	struct pvr_fault_sq *sq = pvr_fault_sq_get(qp);
	enum pvr_quantum result = PVR_QUANTUM_MORE;
	uint64_t before = *sent;

	/* The guest has reached its limit, or the host has no memory. */
	if (!sq) {
		pvr_requester_wait(qp);
		return PVR_QUANTUM_DONE;
	}
	change_path(qp);
	for (; max && result == PVR_QUANTUM_MORE; max--) {
		result = send_one(qp, sq, max);
		/* A long message has its other fragments in the next quantum. */
		if (!pvr_fault_is_sending(qp) || qp->sq_offset ||
		    *sent - before >= qp->adapter->quantum_bytes)
			break;
	}
	return result;
}

/* ------------------------------------------------------------------------ the table */

static bool stalls_peer(struct pvr_qp *qp)
{
	const struct pvr_fault_sq *sq = pvr_fault_sq_get(qp);
	const struct pvr_fault_use *use;
	uint8_t i;

	for (i = 0; sq && i < sq->num; i++) {
		use = &sq->uses[i];
		if (!use->is_peer && use->fault->rule.kinds & 1u << PVR_FAULT_STALL &&
		    is_stalled(&use->state, &use->fault->rule))
			return true;
	}
	return false;
}

static bool detach(struct pvr_qp *qp)
{
	const struct pvr_path_ops *path = behind(qp);

	/* The path behind goes on with its state of the queue pair. */
	if (qp->path_behind == qp->path_found) {
		if (path->set_serial)
			path->set_serial(qp, false);
	} else if (path->detach && !path->detach(qp)) {
		return false;
	}
	pvr_fault_sq_free(qp);
	return true;
}

static void timeout(struct pvr_qp *qp)
{
	if (behind(qp)->timeout)
		behind(qp)->timeout(qp);
}

static void stop(struct pvr_qp *qp)
{
	pvr_fault_sq_stop(qp);
	if (behind(qp)->stop)
		behind(qp)->stop(qp);
}

static void close(struct pvr_qp *qp)
{
	if (behind(qp)->close)
		behind(qp)->close(qp);
	pvr_fault_sq_free(qp);
}

const struct pvr_path_ops pvr_fault_path_ops = {
	.name = "fault",
	.resolve = resolve,
	.detach = detach,
	.run_sq = run_sq,
	.run_ud = pvr_fault_run_ud,
	.stalls_peer = stalls_peer,
	.timeout = timeout,
	.stop = stop,
	.close = close,
};
