// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Requests that the peer has executed while it was at another host, or this queue pair was, and
 * whose responses did not arrive before both came to one host.
 */
#include "path/local/local.h"

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

struct pvr_syndrome pvr_local_catch_up(struct pvr_qp *peer, struct pvr_request *request)
{
	const struct pvr_syndrome none = { .kind = PVR_SYN_NONE }, ack = { .kind = PVR_SYN_ACK };
	uint64_t value;

	if (peer->type != PVR_QPT_RC || !peer->responder_state ||
	    pvr_psn_classify(peer, request) != PVR_PSN_DUPLICATE)
		return none;
	take_executed(peer, request);
	if (request->op->kind == PVR_OP_READ)
		return read_again(peer, request);
	if (request->op->kind != PVR_OP_ATOMIC)
		return ack;
	if (!pvr_replay_find(peer, request->from->psn, &value) ||
	    pvr_sg_write(request->local, &value, sizeof(value)))
		return none;
	return ack;
}
