// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* A path between adapters of one engine that loses and delays requests. */
#include "lossy_path.h"

#include <string.h>

#include "path/local/local.h"
#include "rdma/completer.h"
#include "rdma/cq.h"
#include "rdma/responder.h"

struct lossy_path lossy_path;

/*
 * The queue pair whose request at the head has waited, or waits, for its delay. A queue pair
 * has no pointer for its path, so the path delays one request at a time.
 */
static const struct pvr_qp *delayed_qp;

/* ------------------------------------------------------------------------ requester */

struct lossy_quantum {
	struct pvr_quantum_budget budget;
	struct pvr_qp *peer; /* or NULL */
};

static bool is_nth(unsigned int n)
{
	return n && lossy_path.sent % n == 0;
}

/* Return: true if the request at the head has to wait first. */
static bool delay(struct pvr_qp *qp)
{
	if (delayed_qp == qp) {
		delayed_qp = NULL;
		return false;
	}
	lossy_path.sent++;
	if (delayed_qp || !is_nth(lossy_path.delay_every))
		return false;
	lossy_path.delayed++;
	delayed_qp = qp;
	pvr_requester_await(qp, lossy_path.delay_ns);
	return true;
}

static struct pvr_syndrome carry(struct pvr_qp *peer, const struct pvr_request *request)
{
	bool lost = is_nth(lossy_path.lose_every);

	lossy_path.lost += lost;
	if (!lost && peer && peer->state >= PVR_QPS_RTR && peer->state <= PVR_QPS_SQE)
		return pvr_responder_execute(peer, request);
	return (struct pvr_syndrome){ .kind = PVR_SYN_NONE };
}

static enum pvr_step send_fragment(struct pvr_qp *qp, const struct pvr_request *request,
				   struct lossy_quantum *quantum)
{
	struct pvr_syndrome answer;
	uint64_t ns = 0;

	if (!pvr_local_peer(qp, &quantum->peer))
		return PVR_STEP_BUSY;
	if (delay(qp))
		return PVR_STEP_STOP;
	answer = carry(quantum->peer, request);
	if (answer.kind == PVR_SYN_ACK || qp->type == PVR_QPT_UC)
		return pvr_requester_ack(qp, request, &quantum->budget);
	lossy_path.rnr += answer.kind == PVR_SYN_RNR;
	if (answer.kind == PVR_SYN_NAK)
		pvr_requester_fail(qp, request->wqe, answer.status, "NAK");
	else if (answer.kind == PVR_SYN_NONE)
		pvr_requester_no_response(qp, request->wqe);
	else
		ns = pvr_requester_rnr_nak(qp, request->wqe, answer.wait_ns);
	if (ns)
		pvr_requester_wait_rnr(qp, ns);
	return PVR_STEP_STOP;
}

static enum pvr_step step(struct pvr_qp *qp, struct pvr_send_wqe *wqe,
			  struct lossy_quantum *quantum)
{
	const struct pvr_opcode *op = pvr_opcode(wqe->hdr.opcode);
	enum pvrdma_wc_status status;
	struct pvr_request request;
	struct pvr_sg sg;

	/* No test posts local operations: they are an error here. */
	status = PVRDMA_WC_LOC_QP_OP_ERR;
	if (pvr_may_post(qp, op) && op->kind != PVR_OP_LOCAL)
		status = pvr_prepare(&sg, qp, wqe, op, qp->sq_offset);
	if (status != PVRDMA_WC_SUCCESS) {
		pvr_requester_fail(qp, wqe, status, "bad request");
		return PVR_STEP_STOP;
	}
	request = pvr_requester_fragment(qp, wqe, op, &sg, quantum->budget.max_bytes);
	return send_fragment(qp, &request, quantum);
}

static enum pvr_quantum run_sq(struct pvr_qp *qp, unsigned int max)
{
	struct lossy_quantum quantum = { .budget = pvr_requester_budget(qp, max) };
	struct pvr_send_wqe wqe;

	if (lossy_path.busy)
		return PVR_QUANTUM_BUSY;
	while (pvr_requester_fetch(qp, &quantum.budget, &wqe))
		if (!pvr_requester_go_on(qp, &quantum.budget, step(qp, &wqe, &quantum)))
			break;
	if (quantum.peer)
		pvr_publish(quantum.peer->adapter);
	return quantum.budget.result;
}

/* ------------------------------------------------------------------------ the table */

static enum pvr_resolve resolve(struct pvr_qp *qp)
{
	if (lossy_path.unreachable)
		return PVR_RESOLVE_NO;
	return pvr_local_path_ops.resolve(qp);
}

static bool detach(struct pvr_qp *qp)
{
	lossy_path.detached++;
	return !lossy_path.keeps_qps && delayed_qp != qp;
}

static void stop_sq(struct pvr_qp *qp)
{
	lossy_path.stopped++;
	if (delayed_qp == qp)
		delayed_qp = NULL;
}

static void close_sq(struct pvr_qp *qp)
{
	(void)qp;
	lossy_path.closed++;
}

static const struct pvr_path_ops lossy_path_ops = {
	.name = "lossy",
	.resolve = resolve,
	.detach = detach,
	.run_sq = run_sq,
	.stop = stop_sq,
	.close = close_sq,
};

void lossy_path_install(struct pvr_engine *engine)
{
	lossy_path = (struct lossy_path){ 0 };
	memmove(&engine->paths[1], &engine->paths[0],
		(PVR_PATHS_MAX - 1) * sizeof(engine->paths[0]));
	engine->paths[0] = &lossy_path_ops;
}
