// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * The local path: copies between adapters of one engine.
 *
 * DOC: cached peer
 *
 * * A queue pair caches the adapter of its destination GID and the peer there.
 * * The cached adapter is valid while the fabric's GID generation is the cached one.
 * * The cached peer is valid while the QP generation of the peer's adapter is the cached
 *   one. Reading that generation takes the lock of the peer's adapter, so a reference to
 *   a removed adapter is never followed.
 * * A guest that changes its own queue pairs invalidates the caches of their peers only.
 */
#include "path/local/local.h"

#include <string.h>

#include "rdma/cq.h"
#include "rdma/completer.h"
#include "rdma/worker.h"
#include "rdma/wr.h"
#include "rdma/responder.h"
#include "path/local/rnr.h"
#include "rdma/sched.h"
#include "rdma/qp.h"
#include "rdma/rq.h"
#include "gid/dest.h"
#include "gid/fabric.h"
#include "gid/flow.h"

/* The queue pair that @qp's address and destination QPN name, in any state. */
static struct pvr_qp *look_up(const struct pvr_qp *qp)
{
	const struct pvr_gid_entry *sgid = pvr_gid_get(qp->adapter, qp->attr.ah_attr.sgid_index);
	struct pvr_qp *peer = pvr_qp_find(qp->peer_adapter, qp->attr.dest_qp_num);

	/* IBTA 9.6.1.2: the responder validates that the requester is its peer. */
	if (!sgid || !peer || peer->type != qp->type || peer->attr.dest_qp_num != qp->qpn ||
	    memcmp(peer->attr.ah_attr.dgid, sgid->gid, sizeof(sgid->gid)))
		return NULL;
	return peer;
}

static bool is_connected(const struct pvr_qp *qp)
{
	return qp->peer && qp->adapter->link_up && qp->peer_adapter->link_up &&
	       pvr_adapter_dma_ok(qp->peer_adapter);
}

bool pvr_local_peer(struct pvr_qp *qp, struct pvr_qp **peer)
{
	struct pvr_fabric *fabric = qp->adapter->fabric;

	*peer = NULL;
	if (!qp->peer_adapter)
		return true;
	if (!pvr_adapter_lock_peer(qp->adapter, qp->peer_adapter))
		return false;
	/*
	 * The GID may have moved before the peer's adapter was locked: retry in the next
	 * quantum.
	 */
	if (qp->path_gen != pvr_fabric_gid_gen(fabric))
		return false;
	if (qp->peer_qp_gen != qp->peer_adapter->qp_gen) {
		qp->peer_qp_gen = qp->peer_adapter->qp_gen;
		qp->peer = look_up(qp);
		if (qp->peer && !qp->flow)
			qp->flow = pvr_flow_get(qp->adapter, qp->peer_adapter);
	}
	if (is_connected(qp))
		*peer = qp->peer;
	else if (qp->peer_adapter->suspended)
		return false; /* as if it were locked: no retry is counted */
	return true;
}

/* ------------------------------------------------------------------------ requester */

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
static pvr_noinline enum pvr_step not_acknowledged(struct pvr_qp *qp,
						   const struct pvr_send_wqe *wqe,
						   struct pvr_qp *peer,
						   struct pvr_syndrome syndrome)
{
	uint64_t wait_ns;

	switch (syndrome.kind) {
	case PVR_SYN_RNR:
		wait_ns = pvr_requester_rnr_nak(qp, wqe, syndrome.wait_ns);
		if (wait_ns)
			pvr_rnr_wait(qp, peer, wait_ns);
		return PVR_STEP_STOP;
	case PVR_SYN_NAK:
		return fail(qp, wqe, syndrome.status, "the responder refused a request");
	default:
		pvr_requester_no_response(qp, wqe);
		return PVR_STEP_STOP;
	}
}

/* Sends the next fragment of the oldest request of an RC or UC queue pair. */
static pvr_always_inline enum pvr_step local_send_wr(struct pvr_qp *qp, struct pvr_send_wqe *wqe,
						     struct local_quantum *quantum)
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
	request = pvr_requester_fragment(qp, wqe, op, &sg);
	quantum->met = quantum->met || pvr_local_peer(qp, &quantum->peer);
	if (!quantum->met)
		return PVR_STEP_BUSY;
	if (pvr_local_can_receive(quantum->peer))
		syndrome = pvr_responder_execute(quantum->peer, &request);
	/* A queue pair that is its own peer may have failed as responder. */
	if (qp->state != PVR_QPS_RTS && !qp->sq_draining)
		return PVR_STEP_STOP;
	taken = syndrome.kind == PVR_SYN_ACK;
	/* IBTA 9.8.2: a UC request completes when it is sent, with or without effect. */
	if (!taken && qp->type != PVR_QPT_UC)
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

static enum pvr_quantum local_run_sq(struct pvr_qp *qp, unsigned int max)
{
	struct local_quantum quantum = { .budget.left = max };
	struct pvr_send_wqe wqe PVR_UNINITIALIZED;

	if (qp->wait != PVR_QP_RUNNING) {
		if (!pvr_rnr_poll(qp))
			return PVR_QUANTUM_BUSY;
		if (qp->wait != PVR_QP_RUNNING)
			return PVR_QUANTUM_DONE;
	}
	while (pvr_requester_fetch(qp, &quantum.budget, &wqe))
		if (!pvr_requester_go_on(qp, &quantum.budget, local_send_wr(qp, &wqe, &quantum)))
			break;
	if (quantum.stats.msgs)
		count_quantum(qp, &quantum.stats);
	if (quantum.peer)
		end_quantum(qp, quantum.peer, &quantum.stats);
	return quantum.budget.result;
}

/* A pending RNR poll timer stays set: the queue pair cannot leave this path before. */
static bool detach(struct pvr_qp *qp)
{
	if (qp->wait != PVR_QP_WAIT_RNR_POLL)
		return true;
	if (pvr_timer_is_set(&qp->timer))
		return false;
	qp->wait = PVR_QP_RUNNING;
	return true;
}

static bool rnr_resume(struct pvr_qp *qp)
{
	struct pvr_qp *peer;
	bool waits;

	if (!pvr_local_peer(qp, &peer))
		return false;
	pvr_qp_set_rnr_resume_pending(qp, false);
	waits = peer && peer->wait == PVR_QP_WAIT_RNR;
	if (waits)
		pvr_requester_resume(peer);
	/* In ERR the queue pair uses no receive: it is for the next one of the SRQ. */
	if (!waits || !pvr_local_can_receive(qp))
		pvr_sched_pass_on(qp);
	return true;
}

static enum pvr_resolve resolve(struct pvr_qp *qp)
{
	qp->peer_adapter = pvr_dest_get(qp->adapter, qp->attr.ah_attr.dgid)->adapter;
	return qp->peer_adapter ? PVR_RESOLVE_YES : PVR_RESOLVE_NO;
}

static const char *peer_name(const struct pvr_qp *qp)
{
	return qp->peer_adapter ? qp->peer_adapter->name : "";
}

const struct pvr_path_ops pvr_local_path_ops = {
	.name = "local",
	.resolve = resolve,
	.detach = detach,
	.run_sq = local_run_sq,
	.peer_name = peer_name,
	.lock_peer = pvr_local_peer,
	.rnr_resume = rnr_resume,
};
