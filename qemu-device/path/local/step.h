/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * The requester of the local path. Compiled three times, so that a message without capture
 * and damage executes no instruction more: local.c has the one without, captured.c the one with
 * captures, damaged.c the one with both.
 */
#ifndef PVR_LOCAL_STEP_H
#define PVR_LOCAL_STEP_H

#include <stdlib.h>

#include "path/local/local.h"
#include "path/local/rnr.h"
#include "rdma/capture.h"
#include "rdma/completer.h"
#include "rdma/cq.h"
#include "rdma/flips.h"
#include "rdma/responder.h"
#include "rdma/shaper.h"
#include "rdma/worker.h"
#include "rdma/wr.h"
#include "gid/flow.h"

struct local_quantum {
	struct pvr_quantum_budget budget;
	bool met; /* @peer is valid */
	struct pvr_qp *peer; /* or NULL */
	struct pvr_quantum_stats stats;
};

static enum pvr_step fail(struct pvr_qp *qp, const struct pvr_send_wqe *wqe,
			  enum pvrdma_wc_status status, const char *why)
{
	pvr_requester_fail(qp, wqe, status, why);
	return PVR_STEP_STOP;
}

/* @taken: the responder has executed the last fragment; RC requires that, UC does not. */
static void count_sent(struct pvr_quantum_stats *stats, const struct pvr_request *request,
		       bool taken)
{
	stats->msgs++;
	stats->bytes += request->length;
	if (request->op->local) {
		stats->reads += request->op->kind == PVR_OP_READ;
		stats->atomics += request->op->kind == PVR_OP_ATOMIC;
	}
	/* Each fragment is executed only if the fragment before it was. */
	if (!taken) {
		stats->lost_msgs++;
		stats->lost_bytes += request->length;
	}
}

static enum pvr_step local_step(struct pvr_qp *qp, const struct pvr_send_wqe *wqe,
				struct local_quantum *quantum)
{
	if (pvr_wqe_is_inline(&qp->sq, wqe) || wqe->hdr.num_sge > qp->sq.max_sge)
		return fail(qp, wqe, PVRDMA_WC_LOC_QP_OP_ERR,
			    "local operation with SGEs or inline data");
	if (pvr_local_op(qp, wqe, &quantum->budget.bytes))
		return fail(qp, wqe, PVRDMA_WC_MW_BIND_ERR,
			    "a region or window could not be bound, registered or invalidated");
	pvr_send_complete(qp, wqe, PVRDMA_WC_SUCCESS, 0);
	return PVR_STEP_NEXT;
}

/* Handles a result of the RC responder other than ACK. */
static pvr_noinline enum pvr_step not_acknowledged(struct pvr_qp *qp, struct pvr_send_wqe *wqe,
						   struct pvr_qp *peer,
						   struct pvr_syndrome syndrome)
{
	enum pvr_step step;
	uint64_t wait_ns;

	if (syndrome.kind == PVR_SYN_NONE && pvr_local_can_receive(peer)) {
		syndrome = pvr_local_catch_up(qp, wqe, peer, &step);
		if (syndrome.kind == PVR_SYN_ACK)
			return step;
	}
	switch (syndrome.kind) {
	case PVR_SYN_RNR:
		wait_ns = pvr_requester_rnr_nak(qp, wqe, syndrome.wait_ns);
		if (wait_ns)
			pvr_rnr_wait(qp, peer, wait_ns);
		return PVR_STEP_STOP;
	case PVR_SYN_PAGE:
		pvr_requester_wait_page(qp, syndrome.wait_ns);
		return PVR_STEP_STOP;
	case PVR_SYN_NAK:
		return fail(qp, wqe, syndrome.status, "the responder refused a request");
	default:
		pvr_requester_no_response(qp, wqe);
		/* The peer may be connected late. */
		pvr_requester_ask_again(qp);
		return PVR_STEP_STOP;
	}
}

/* Executes a fragment of a request with qp->flips. */
static pvr_noinline struct pvr_syndrome local_execute_damaged(struct pvr_qp *qp, struct pvr_qp *to,
							      struct pvr_request *request)
{
	bool is_read = request->op->kind == PVR_OP_READ;
	const struct pvr_sg *payload = request->local;
	struct pvr_syndrome syndrome;
	uint8_t *copy = NULL;
	struct pvr_sg damaged;

	if (!qp->flips)
		return pvr_responder_execute(to, request);
	if (!is_read && request->chunk)
		copy = pvr_flips_copy(qp->flips, payload, request->offset,
				      (uint32_t)request->chunk);
	if (copy) {
		pvr_flips_build(&damaged, payload, request->offset, copy);
		request->local = &damaged;
	}
	syndrome = pvr_responder_execute(to, request);
	request->local = payload;
	free(copy);
	if (is_read && syndrome.kind == PVR_SYN_ACK)
		pvr_flips_apply(qp->flips, payload, request->offset, request->chunk);
	return syndrome;
}

/* Sends the next fragment of the oldest request of an RC or UC queue pair. */
static pvr_always_inline enum pvr_step local_send_wr(struct pvr_qp *qp, struct pvr_send_wqe *wqe,
						     struct local_quantum *quantum, bool captures,
						     bool damages)
{
	struct pvr_syndrome syndrome = { .kind = PVR_SYN_NONE };
	const struct pvr_opcode *op = pvr_opcode(wqe->hdr.opcode);
	struct pvr_request request PVR_UNINITIALIZED;
	enum pvrdma_wc_status status;
	enum pvr_step step;
	struct pvr_sg sg PVR_UNINITIALIZED;
	bool taken;

	if (!pvr_may_post(qp, op))
		return fail(qp, wqe, PVRDMA_WC_LOC_QP_OP_ERR, "send with an unknown opcode");
	if (op->kind == PVR_OP_LOCAL)
		return local_step(qp, wqe, quantum);
	status = pvr_prepare(&sg, qp, wqe, op, qp->sq_offset);
	if (status != PVRDMA_WC_SUCCESS)
		return fail(qp, wqe, status, pvr_prepare_why(qp, op, status));
	request = pvr_requester_fragment(qp, wqe, op, &sg, quantum->budget.max_bytes);
	quantum->met = quantum->met || pvr_local_peer(qp, &quantum->peer);
	if (!quantum->met)
		return PVR_STEP_BUSY;
	if (pvr_local_can_receive(quantum->peer))
		syndrome = damages ? local_execute_damaged(qp, quantum->peer, &request)
				   : pvr_responder_execute(quantum->peer, &request);
	else if (!quantum->peer && pvr_local_hold(qp))
		return PVR_STEP_STOP;
	if (captures && pvr_captures(qp->adapter))
		pvr_capture_exchange(qp, quantum->peer, &request, syndrome);
	/* A queue pair that is its own peer may have failed as responder. */
	if (qp->state != PVR_QPS_RTS && !qp->sq_draining)
		return PVR_STEP_STOP;
	taken = syndrome.kind == PVR_SYN_ACK;
	/* IBTA 9.8.2: a UC request completes when it is sent, with or without effect. */
	if (!taken && (qp->type != PVR_QPT_UC || syndrome.kind == PVR_SYN_PAGE))
		return not_acknowledged(qp, wqe, quantum->peer, syndrome);
	step = pvr_requester_ack(qp, &request, &quantum->budget);
	if (step == PVR_STEP_NEXT)
		count_sent(&quantum->stats, &request, taken);
	return step;
}

static void count_quantum(struct pvr_qp *qp, const struct pvr_quantum_stats *stats)
{
	pvr_count(qp, PVR_STAT_TX_MSGS, stats->msgs);
	pvr_count(qp, PVR_STAT_TX_BYTES, stats->bytes);
	if (stats->reads)
		pvr_count(qp, PVR_STAT_TX_READS, stats->reads);
	if (stats->atomics)
		pvr_count(qp, PVR_STAT_TX_ATOMICS, stats->atomics);
	pvr_count(qp, PVR_STAT_LOCAL_BYTES, stats->bytes - stats->lost_bytes);
}

/* Ends the quantum: updates counters and publishes the peer's completions. */
static void end_quantum(struct pvr_qp *qp, struct pvr_qp *peer,
			const struct pvr_quantum_stats *stats)
{
	uint64_t msgs = stats->msgs - stats->lost_msgs;
	uint64_t bytes = stats->bytes - stats->lost_bytes;

	pvr_count(peer, PVR_STAT_RX_MSGS, msgs);
	pvr_count(peer, PVR_STAT_RX_BYTES, bytes);
	if (qp->flow) {
		pvr_stat_add(&qp->flow->messages, msgs);
		pvr_stat_add(&qp->flow->bytes, bytes);
	}
	/*
	 * Publish the responder first: on a network the requester's completion comes
	 * later, too.
	 */
	pvr_publish(peer->adapter);
}

/*
 * Run a quantum, see struct pvr_path_ops. @captures: there may be captures, see pvr_captures();
 * @damages: there may be qp->flips
 */
static pvr_always_inline enum pvr_quantum local_run(struct pvr_qp *qp, unsigned int max,
						    bool captures, bool damages)
{
	struct local_quantum quantum = { .budget = pvr_requester_budget(qp, max) };
	struct pvr_send_wqe wqe PVR_UNINITIALIZED;

	if (qp->wait != PVR_QP_RUNNING) {
		if (!pvr_rnr_poll(qp))
			return PVR_QUANTUM_BUSY;
		if (qp->wait != PVR_QP_RUNNING)
			return PVR_QUANTUM_DONE;
	}
	while (pvr_requester_fetch(qp, &quantum.budget, &wqe))
		if (!pvr_requester_go_on(qp, &quantum.budget,
					 local_send_wr(qp, &wqe, &quantum, captures, damages)))
			break;
	if (quantum.stats.msgs)
		count_quantum(qp, &quantum.stats);
	if (quantum.peer)
		end_quantum(qp, quantum.peer, &quantum.stats);
	if (qp->adapter->shaper)
		pvr_shaper_count(qp->adapter->shaper, qp);
	return quantum.budget.result;
}

#endif /* PVR_LOCAL_STEP_H */
