// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* Faults on demand: the path in front of another one. */
#include <stdio.h>
#include <string.h>

#include "core/charge.h"
#include "core/objects.h"
#include "gid/fabric.h"
#include "path/fault/internal.h"
#include "rdma/completer.h"
#include "rdma/cq.h"
#include "rdma/qp.h"
#include "rdma/requester.h"
#include "rdma/responder.h"

static const char why_failed[] = "a fault of the operator (pvrdmactl fault)";

/* A rule that matches the queue pair. */
struct rule_use {
	struct pvr_fault *fault; /* valid while @gen is that of the engine's rules */
	uint32_t id; /* of the fault */
	struct pvr_fault_state state;
};

/* The state of a queue pair. */
struct pvr_fault_sq {
	uint8_t slots; /* of uses[], allocated */
	uint8_t num; /* of uses[], in use */
	uint64_t gen; /* of the rules in uses[] */
	/* The request at the head of the send queue. */
	bool is_known; /* its faults are decided: it was at the head before */
	bool may_pass; /* this try of it is not lost */
	uint32_t head; /* sq.head of the request */
	uint16_t status; /* of its failure, or PVRDMA_WC_SUCCESS */
	bool overflows; /* its completion finds a full CQ */
	uint8_t rnr_by; /* 1 + index in uses[]: its next try gets an RNR NAK; 0: it does not */
	uint8_t nak_by; /* likewise for a NAK for a sequence error */
	uint64_t due; /* not sent before this time in ns */
	uint32_t released; /* requests behind it whose delay ends with its own */
	struct rule_use uses[];
};

/* What to do with the request at the head. */
enum decision {
	PASS, /* the path behind sends it */
	SKIP, /* it has completed, or is decided again */
	STOP, /* the send queue waits or has failed */
	BUSY, /* the peer's adapter is locked */
};

/* ------------------------------------------------------------------ rules of a QP */

static struct pvr_fault_match message_of(const struct pvr_qp *qp)
{
	const struct pvr_adapter *adapter = qp->adapter;
	struct pvr_fault_match message = { .qpn = qp->qpn };

	snprintf(message.fabric, sizeof(message.fabric), "%s", adapter->fabric->name);
	snprintf(message.from, sizeof(message.from), "%s", adapter->name);
	snprintf(message.to, sizeof(message.to), "%s",
		 adapter->engine->paths[qp->path_target]->peer_name(qp));
	return message;
}

static unsigned int count_matches(const struct pvr_faults *faults,
				  const struct pvr_fault_match *message)
{
	unsigned int num = 0;
	uint32_t i;

	for (i = 0; i < faults->num; i++)
		num += pvr_fault_matches(&faults->list[i]->rule.match, message);
	return num;
}

static enum pvr_resolve resolve(struct pvr_qp *qp)
{
	const struct pvr_engine *engine = qp->adapter->engine;
	struct pvr_fault_match message = message_of(qp);

	if (!engine->paths[qp->path_target]->peer_name)
		return PVR_RESOLVE_NO;
	return count_matches(engine->faults, &message) ? PVR_RESOLVE_YES : PVR_RESOLVE_NO;
}

static size_t sq_bytes(unsigned int slots)
{
	return sizeof(struct pvr_fault_sq) + slots * sizeof(struct rule_use);
}

/* The state of a rule that the queue pair had before the rules changed. */
static const struct rule_use *find_use(const struct pvr_fault_sq *sq, uint32_t id)
{
	uint8_t i;

	for (i = 0; sq && i < sq->num; i++)
		if (sq->uses[i].id == id)
			return &sq->uses[i];
	return NULL;
}

static void use_rule(struct pvr_fault_sq *sq, const struct pvr_fault_sq *before,
		     struct pvr_fault *fault, uint32_t qpn)
{
	const struct rule_use *old = find_use(before, fault->id);
	struct rule_use *use = &sq->uses[sq->num++];

	if (old)
		*use = *old;
	else
		pvr_fault_state_init(&use->state, &fault->rule, qpn);
	use->fault = fault;
	use->id = fault->id;
}

/* Return: the state with the rules of now, or NULL: out of memory. */
static struct pvr_fault_sq *get_sq(struct pvr_qp *qp)
{
	struct pvr_faults *faults = qp->adapter->engine->faults;
	struct pvr_fault_sq *before = qp->fault_sq, *sq;
	struct pvr_fault_match message;
	unsigned int num;
	uint32_t i;

	if (before && before->gen == faults->gen)
		return before;
	message = message_of(qp);
	num = count_matches(faults, &message);
	sq = pvr_charge_alloc(qp->adapter, sq_bytes(num));
	if (!sq)
		return NULL;
	if (before)
		memcpy(sq, before, sizeof(*before));
	sq->slots = (uint8_t)num;
	sq->num = 0;
	sq->rnr_by = 0;
	sq->nak_by = 0;
	sq->gen = faults->gen;
	for (i = 0; i < faults->num; i++)
		if (pvr_fault_matches(&faults->list[i]->rule.match, &message))
			use_rule(sq, before, faults->list[i], qp->qpn);
	if (before)
		pvr_charge_free(qp->adapter, before, sq_bytes(before->slots));
	qp->fault_sq = sq;
	return sq;
}

static void free_sq(struct pvr_qp *qp)
{
	if (qp->fault_sq)
		pvr_charge_free(qp->adapter, qp->fault_sq, sq_bytes(qp->fault_sq->slots));
	qp->fault_sq = NULL;
}

/* The path behind this one. */
static const struct pvr_path_ops *behind(const struct pvr_qp *qp)
{
	return qp->adapter->engine->paths[qp->path_behind];
}

/* --------------------------------------------------------------- a request's faults */

/* UC has no responses. */
static bool has_status(const struct pvr_qp *qp, uint16_t status)
{
	return qp->type == PVR_QPT_RC || status == PVRDMA_WC_LOC_LEN_ERR ||
	       status == PVRDMA_WC_LOC_QP_OP_ERR || status == PVRDMA_WC_LOC_PROT_ERR ||
	       status == PVRDMA_WC_GENERAL_ERR;
}

static void decide_end(struct pvr_qp *qp, struct pvr_fault_sq *sq, struct rule_use *use)
{
	const struct pvr_fault_rule *rule = &use->fault->rule;

	if (!pvr_fault_fails(&use->state, rule) || sq->status || sq->overflows)
		return;
	if (rule->kinds & 1u << PVR_FAULT_CQ_OVERFLOW) {
		sq->overflows = true;
		pvr_fault_count(&use->fault->injected[PVR_FAULT_CQ_OVERFLOW]);
	} else if (has_status(qp, rule->status)) {
		sq->status = rule->status;
		pvr_fault_count(&use->fault->injected[PVR_FAULT_ERROR]);
	}
}

/* Return: the delay of the request in ns, unless it is released with another one. */
static uint64_t decide_delay(const struct pvr_fault_sq *sq, struct rule_use *use)
{
	const struct pvr_fault_rule *rule = &use->fault->rule;

	if (!rule->delay_ns)
		return 0;
	pvr_fault_count(&use->fault->injected[PVR_FAULT_DELAY]);
	return sq->released ? 0 : pvr_fault_delay(&use->state, rule);
}

/* Return: the time before which the rate of a rule holds the request, or 0. */
static uint64_t decide_rate(struct rule_use *use, uint64_t now, uint64_t length)
{
	uint64_t due = pvr_fault_rate(&use->state, &use->fault->rule, now, length);

	if (due)
		pvr_fault_count(&use->fault->injected[PVR_FAULT_RATE]);
	return due;
}

/* UC drops a message without a receive request, as drop= does. */
static bool decide_rnr(const struct pvr_qp *qp, struct rule_use *use, const struct pvr_opcode *op)
{
	return op->recv && qp->type == PVR_QPT_RC && pvr_fault_rnr(&use->state, &use->fault->rule);
}

/* UC has no responses. */
static bool decide_nak(const struct pvr_qp *qp, struct rule_use *use)
{
	return qp->type == PVR_QPT_RC && pvr_fault_seq_nak(&use->state, &use->fault->rule);
}

/* Return: bytes of the request at the head. The path behind refuses it if they are too many. */
static uint64_t length_of(const struct pvr_qp *qp)
{
	struct pvr_send_wqe wqe PVR_UNINITIALIZED;
	uint64_t length = 0;
	uint32_t i;

	pvr_wq_fetch_send(&qp->sq, &wqe);
	if (pvr_wqe_is_inline(&qp->sq, &wqe))
		return wqe.hdr.total_len;
	for (i = 0; i < wqe.hdr.num_sge && i < qp->sq.max_sge; i++)
		length += wqe.sge[i].length;
	return length;
}

/* Decide all but the losses of a request that is new at the head. @posted: from it on */
static void begin_request(struct pvr_qp *qp, struct pvr_fault_sq *sq, const struct pvr_opcode *op,
			  uint32_t posted)
{
	uint64_t now = pvr_now(qp->adapter->engine), length = length_of(qp);
	uint64_t delay = 0, due;
	uint8_t i;

	sq->is_known = true;
	sq->may_pass = false;
	sq->head = qp->sq.head;
	sq->status = PVRDMA_WC_SUCCESS;
	sq->overflows = false;
	sq->rnr_by = 0;
	sq->nak_by = 0;
	sq->due = 0;
	for (i = 0; i < sq->num; i++) {
		struct rule_use *use = &sq->uses[i];

		pvr_fault_count(&use->fault->messages);
		decide_end(qp, sq, use);
		delay += decide_delay(sq, use);
		due = decide_rate(use, now, length);
		if (due > sq->due)
			sq->due = due;
		if (decide_rnr(qp, use, op) && !sq->rnr_by)
			sq->rnr_by = i + 1;
		if (decide_nak(qp, use) && !sq->nak_by)
			sq->nak_by = i + 1;
	}
	if (sq->released)
		sq->released--;
	else if (delay)
		sq->released = posted - 1;
	if (delay && now + delay > sq->due)
		sq->due = now + delay;
}

static bool is_lost(struct pvr_fault_sq *sq)
{
	bool lost = false;
	uint8_t i;

	for (i = 0; i < sq->num && !lost; i++) {
		lost = pvr_fault_drops(&sq->uses[i].state, &sq->uses[i].fault->rule);
		if (lost)
			pvr_fault_count(&sq->uses[i].fault->injected[PVR_FAULT_DROP]);
	}
	return lost;
}

static bool is_sending(const struct pvr_qp *qp)
{
	return qp->state == PVR_QPS_RTS || qp->sq_draining;
}

/* IBTA table 58: the events of the NAK codes. */
static enum pvr_eqe_type event_of(uint16_t status)
{
	switch (status) {
	case PVRDMA_WC_REM_ACCESS_ERR:
		return PVR_EVENT_QP_ACCESS_ERR;
	case PVRDMA_WC_REM_INV_REQ_ERR:
		return PVR_EVENT_QP_REQ_ERR;
	default:
		return PVR_EVENT_NUM;
	}
}

/* A responder that sends a NAK moves to ERR. Return: false if its adapter is locked. */
static bool fail_peer(struct pvr_qp *qp, uint16_t status)
{
	const struct pvr_path_ops *path = behind(qp);
	struct pvr_qp *peer;

	if (status != PVRDMA_WC_REM_ACCESS_ERR && status != PVRDMA_WC_REM_INV_REQ_ERR &&
	    status != PVRDMA_WC_REM_OP_ERR)
		return true;
	if (!path->lock_peer)
		return true;
	if (!path->lock_peer(qp, &peer))
		return false;
	if (!peer || peer->state < PVR_QPS_RTR || peer->state > PVR_QPS_SQE)
		return true;
	pvr_count(peer,
		  status == PVRDMA_WC_REM_ACCESS_ERR ? PVR_STAT_ACCESS_ERRORS
						     : PVR_STAT_REQUEST_ERRORS,
		  1);
	pvr_qp_fail(peer, event_of(status), why_failed);
	pvr_publish(peer->adapter);
	return true;
}

static enum decision fail_request(struct pvr_qp *qp, struct pvr_fault_sq *sq,
				  const struct pvr_send_wqe *wqe)
{
	if (!fail_peer(qp, sq->status))
		return BUSY;
	sq->is_known = false;
	if (sq->status == PVRDMA_WC_RETRY_EXC_ERR)
		pvr_count(qp, PVR_STAT_RETRIES_EXCEEDED, 1);
	/* A queue pair that is its own peer has failed already. */
	if (is_sending(qp))
		pvr_requester_fail(qp, wqe, sq->status, why_failed);
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

/*
 * The timer of an RNR NAK is the responder's, and both sides of a connection usually have the
 * same. The own one is known for each path.
 */
static enum decision not_ready(struct pvr_qp *qp, struct pvr_fault_sq *sq,
			       const struct pvr_send_wqe *wqe)
{
	struct pvr_fault *fault = sq->uses[sq->rnr_by - 1].fault;
	uint64_t ns;

	pvr_fault_count(&fault->injected[PVR_FAULT_RNR]);
	if (!fault->rule.rnr_always)
		sq->rnr_by = 0;
	ns = pvr_requester_rnr_nak(qp, wqe, pvr_rnr_timer_ns(qp));
	if (ns)
		pvr_requester_wait_rnr(qp, ns);
	return STOP;
}

/* The responder has a hole before the request, and executes nothing. */
static enum decision out_of_sequence(struct pvr_qp *qp, struct pvr_fault_sq *sq,
				     const struct pvr_send_wqe *wqe)
{
	struct pvr_fault *fault = sq->uses[sq->nak_by - 1].fault;

	pvr_fault_count(&fault->injected[PVR_FAULT_NAK]);
	if (!fault->rule.nak_always)
		sq->nak_by = 0;
	return pvr_requester_seq_nak(qp, wqe) ? SKIP : STOP;
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
	request = pvr_requester_fragment(qp, &wqe, op, &sg);
	request.chunk = request.length;
	request.last = true;
	pvr_count(qp, PVR_STAT_TX_MSGS, 1);
	pvr_count(qp, PVR_STAT_TX_BYTES, request.length);
	return pvr_requester_go_on(qp, &budget, pvr_requester_ack(qp, &request, &budget)) ? SKIP
											  : STOP;
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

/* Decide about the request at the head, unless some of it has been sent. */
static enum decision decide(struct pvr_qp *qp, struct pvr_fault_sq *sq)
{
	struct pvr_send_wqe wqe PVR_UNINITIALIZED;
	int posted = pvr_wq_avail(&qp->sq);
	const struct pvr_opcode *op;
	uint64_t now;

	if (posted <= 0 || qp->sq_offset || sq->may_pass)
		return PASS;
	pvr_wq_fetch_send_hdr(&qp->sq, &wqe);
	op = pvr_opcode(wqe.hdr.opcode);
	if (op->kind == PVR_OP_LOCAL || !pvr_may_post(qp, op))
		return PASS;
	if (!sq->is_known || sq->head != qp->sq.head)
		begin_request(qp, sq, op, (uint32_t)posted);
	now = sq->due ? pvr_now(qp->adapter->engine) : 0;
	if (now < sq->due) {
		pvr_requester_await(qp, sq->due - now);
		return STOP;
	}
	if (sq->status)
		return fail_request(qp, sq, &wqe);
	if (sq->overflows)
		return overflow_cq(qp, sq);
	if (sq->nak_by)
		return out_of_sequence(qp, sq, &wqe);
	if (sq->rnr_by)
		return not_ready(qp, sq, &wqe);
	if (has_no_try_left(qp) || is_lost(sq))
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
	return path->run_sq(qp, max);
}

/* @max: requests, or fragments of a request that has begun */
static enum pvr_quantum send_one(struct pvr_qp *qp, struct pvr_fault_sq *sq, unsigned int max)
{
	enum pvr_quantum result;

	/* A poll for a receive, or a request in flight: what is sent now was decided before. */
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
	/* A try that was not made is not decided again. */
	if (result != PVR_QUANTUM_BUSY)
		sq->may_pass = false;
	return result;
}

static enum pvr_quantum run_sq(struct pvr_qp *qp, unsigned int max)
{
	const uint64_t *sent = &qp->adapter->stat[PVR_STAT_TX_BYTES];
	struct pvr_fault_sq *sq = get_sq(qp);
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
		if (!is_sending(qp) || qp->sq_offset || *sent - before >= PVR_QUANTUM_BYTES)
			break;
	}
	return result;
}

/* ------------------------------------------------------------------------ the table */

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
	free_sq(qp);
	return true;
}

static void timeout(struct pvr_qp *qp)
{
	if (behind(qp)->timeout)
		behind(qp)->timeout(qp);
}

static void stop(struct pvr_qp *qp)
{
	struct pvr_fault_sq *sq = qp->fault_sq;

	if (sq) {
		sq->is_known = false;
		sq->may_pass = false;
		sq->released = 0;
	}
	if (behind(qp)->stop)
		behind(qp)->stop(qp);
}

static void close(struct pvr_qp *qp)
{
	if (behind(qp)->close)
		behind(qp)->close(qp);
	free_sq(qp);
}

const struct pvr_path_ops pvr_fault_path_ops = {
	.name = "fault",
	.resolve = resolve,
	.detach = detach,
	.run_sq = run_sq,
	.timeout = timeout,
	.stop = stop,
	.close = close,
};
