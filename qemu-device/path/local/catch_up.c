// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Requests that the peer has executed while it was at another host, or this queue pair was, and
 * whose responses did not arrive before both came to one host.
 */
#include "path/local/local.h"

#include "core/sg.h"
#include "rdma/page_fault.h"
#include "rdma/requester.h"
#include "rdma/responder_state.h"

struct local_reply {
	struct pvr_inbound inbound;
	const struct pvr_sg *to;
};

static int read_reply(struct pvr_inbound *in, const struct pvr_sg *from)
{
	const struct local_reply *reply = (const struct local_reply *)in;
	const struct pvr_request *request = &in->request;

	return pvr_sg_copy(reply->to, request->offset, from, request->offset, request->chunk);
}

static const struct pvr_inbound_ops reply_ops = { .read_reply = read_reply };

static struct pvr_syndrome read_again(struct pvr_qp *peer, const struct pvr_request *request)
{
	struct local_reply reply = {
		.inbound = { .ops = &reply_ops, .request = *request },
		.to = request->local,
	};

	reply.inbound.request.local = NULL;
	return pvr_responder_read_again(peer, &reply.inbound);
}

/* The part of the message that was executed: all of it, or that before the expected offset. */
static void take_executed(const struct pvr_qp *peer, struct pvr_request *request)
{
	bool all = request->from->psn != peer->rq_psn;
	uint64_t end = all ? request->length : peer->rq_offset;

	/* A READ is repeated in fragments, as its data have to come. */
	if (request->op->kind == PVR_OP_READ && request->chunk < end - request->offset)
		end = request->offset + request->chunk;
	request->chunk = end - request->offset;
	request->last = all && end == request->length;
}

/* The responder knows nothing of the requester's memory. Return: ACK if its pages are there. */
static struct pvr_syndrome find_pages(const struct pvr_request *request)
{
	uint32_t wait_ns = PVR_PAGE_WAIT_MIN_NS;

	switch (pvr_page_fault(request->local, request->offset, request->chunk, &wait_ns)) {
	case PVR_PAGE_ABSENT:
		return (struct pvr_syndrome){ .kind = PVR_SYN_PAGE, .wait_ns = wait_ns };
	case PVR_PAGE_REFUSED:
		return (struct pvr_syndrome){ .kind = PVR_SYN_NAK,
					      .status = PVRDMA_WC_LOC_PROT_ERR };
	default:
		return (struct pvr_syndrome){ .kind = PVR_SYN_ACK };
	}
}

static struct pvr_syndrome execute_again(struct pvr_qp *peer, struct pvr_request *request)
{
	const struct pvr_syndrome none = { .kind = PVR_SYN_NONE };
	struct pvr_syndrome ack = { .kind = PVR_SYN_ACK };
	enum pvr_psn_class psn_class;
	uint64_t value;

	if (peer->type != PVR_QPT_RC || !peer->responder_state)
		return none;
	psn_class = pvr_psn_classify(peer, request);
	if (psn_class != PVR_PSN_DUPLICATE && psn_class != PVR_PSN_STRADDLES)
		return none;
	take_executed(peer, request);
	if (request->op->kind == PVR_OP_READ || request->op->kind == PVR_OP_ATOMIC)
		ack = find_pages(request);
	if (ack.kind != PVR_SYN_ACK)
		return ack;
	if (request->op->kind == PVR_OP_READ)
		return read_again(peer, request);
	if (request->op->kind != PVR_OP_ATOMIC)
		return ack;
	if (!pvr_replay_find(peer, request->from->psn, &value) ||
	    pvr_sg_write(request->local, &value, sizeof(value)))
		return none;
	return ack;
}

static void count(struct pvr_qp *qp, const struct pvr_request *request)
{
	pvr_count(qp, PVR_STAT_TX_MSGS, 1);
	pvr_count(qp, PVR_STAT_TX_BYTES, request->length);
	if (request->op->kind == PVR_OP_READ)
		pvr_count(qp, PVR_STAT_TX_READS, 1);
	if (request->op->kind == PVR_OP_ATOMIC)
		pvr_count(qp, PVR_STAT_TX_ATOMICS, 1);
}

/* Prepares the request once more, so that messages without this case cost nothing. */
struct pvr_syndrome pvr_local_catch_up(struct pvr_qp *qp, struct pvr_send_wqe *wqe,
				       struct pvr_qp *peer, enum pvr_step *step)
{
	const struct pvr_opcode *op = pvr_opcode(wqe->hdr.opcode);
	struct pvr_quantum_budget budget = { 0 };
	struct pvr_syndrome syndrome = { .kind = PVR_SYN_NONE };
	struct pvr_request request;
	struct pvr_sg sg;

	*step = PVR_STEP_STOP;
	if (pvr_prepare(&sg, qp, wqe, op, qp->sq_offset) != PVRDMA_WC_SUCCESS)
		return syndrome;
	request = pvr_requester_fragment(qp, wqe, op, &sg, PVR_QUANTUM_BYTES);
	syndrome = execute_again(peer, &request);
	if (syndrome.kind != PVR_SYN_ACK)
		return syndrome;
	*step = pvr_requester_ack(qp, &request, &budget);
	if (*step == PVR_STEP_NEXT)
		count(qp, &request);
	return syndrome;
}
