// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * The responder of the wire path: packets of RC and UC.
 *
 * Source: IBTA volume 1, 9.7.4 (validation of requests), 9.7.5 (responses), 9.8.2 (UC).
 *
 * DOC: a packet is a fragment
 *
 * - rdma/responder.c executes each packet as a fragment of the message at rq_psn, from
 *   rq_offset on. The length of a SEND is known with its last packet only: until then the
 *   length is that of the packets so far.
 * - Immediate data and the key to invalidate come with the last packet, so the packets
 *   before it are of the plain operation.
 *
 * DOC: ACKs
 *
 * - One ACK for each queue pair and batch of frames, if a packet has asked for it.
 * - Answers leave in the order of PSNs: an ACK or NAK waits behind READ data and atomics. Those
 *   before a request that is refused are still sent, although the queue pair is in ERR.
 */
#include "path/wire/internal.h"

#include <string.h>

#include "core/charge.h"
#include "rdma/qp.h"
#include "rdma/responder.h"
#include "rdma/responder_state.h"

/* A packet, as a fragment of its message. */
struct pvr_eth_fragment {
	struct pvr_inbound inbound; /* refers to the members below */
	struct pvr_req_src req_src;
	struct pvr_send_wqe wqe; /* only its header is valid */
	struct pvr_eth_rq *rq;
	const struct pvr_eth_packet *packet;
};

uint32_t pvr_eth_expected(const struct pvr_qp *qp)
{
	return pvr_eth_psn_add(qp->rq_psn, (uint32_t)(qp->rq_offset >> (7 + qp->attr.path_mtu)));
}

/* -------------------------------------------------------------------------- its memory */

static size_t rq_bytes(uint32_t size)
{
	return sizeof(struct pvr_eth_rq) + size * sizeof(struct pvr_eth_answer);
}

static struct pvr_eth_rq *rq_get(struct pvr_qp *qp, bool atomic)
{
	struct pvr_eth_rq *rq = pvr_eth_rq(qp);
	uint32_t size = qp->attr.max_dest_rd_atomic;

	if (!rq && !pvr_eth_sq(qp) && pvr_eth_was_elsewhere(qp))
		return NULL;
	if (!pvr_host_rq_get(qp, NULL, atomic))
		return NULL;
	if (rq)
		return rq;
	size = size < PVR_MAX_RD_ATOMIC ? size : PVR_MAX_RD_ATOMIC;
	rq = pvr_charge_alloc(qp->adapter, rq_bytes(size));
	if (!rq)
		return NULL;
	if (pvr_eth_answers_init(rq, qp)) {
		pvr_charge_free(qp->adapter, rq, rq_bytes(size));
		return NULL;
	}
	rq->qp = qp;
	rq->size = size;
	qp->adapter->wire->qps[qp->handle].rq = rq;
	return rq;
}

void pvr_eth_rq_free(struct pvr_qp *qp)
{
	struct pvr_eth_rq *rq;

	if (!qp->adapter->wire)
		return;
	rq = pvr_eth_rq(qp);
	if (!rq)
		return;
	pvr_eth_answer_stop(rq);
	pvr_eth_forget_held(rq);
	pvr_timer_exit(&qp->adapter->timers, &rq->page);
	pvr_charge_free(qp->adapter, rq, rq_bytes(rq->size));
	qp->adapter->wire->qps[qp->handle].rq = NULL;
}

/* --------------------------------------------------------------------------------- ACKs */

void pvr_eth_send_ack(struct pvr_eth_rq *rq, uint8_t syndrome, uint32_t psn)
{
	struct pvr_roce_frame frame = {
		.opcode = PVR_ROCE_OP_ACK,
		.psn = psn,
		.syndrome = syndrome,
		.msn = rq->msn,
	};

	/* Without room it is lost: the requester asks again. */
	if (pvr_eth_address(&frame, rq->qp))
		pvr_eth_send(rq->qp->adapter, &frame, NULL, 0);
}

void pvr_eth_ack_behind(struct pvr_eth_rq *rq)
{
	if (rq->nak_due)
		pvr_eth_send_ack(rq, rq->nak, rq->nak_psn);
	else if (rq->ack_due)
		pvr_eth_send_ack(rq, PVR_ETH_ACK, pvr_eth_psn_add(pvr_eth_expected(rq->qp), ~0u));
	rq->nak_due = false;
	rq->ack_due = false;
}

void pvr_eth_flush_ack(struct pvr_eth_batch *batch)
{
	struct pvr_eth_rq *rq = batch->acks;

	batch->acks = NULL;
	/* pvr_eth_answer() sends it behind the answers. */
	if (!rq || rq->count)
		return;
	if (rq->ack_due)
		rq->acked = pvr_now(rq->qp->adapter->engine);
	pvr_eth_ack_behind(rq);
}

static void ack_later(struct pvr_eth_batch *batch, struct pvr_eth_rq *rq)
{
	if (batch->acks != rq)
		pvr_eth_flush_ack(batch);
	rq->ack_due = true;
	batch->acks = rq;
}

static void send_nak(struct pvr_eth_rq *rq, uint8_t syndrome, uint32_t psn)
{
	rq->qp->responder_state->nak_sent = true;
	rq->nak_due = true;
	rq->nak = syndrome;
	rq->nak_psn = psn;
	if (!rq->count)
		pvr_eth_ack_behind(rq);
}

static uint8_t nak_of(enum pvrdma_wc_status status)
{
	switch (status) {
	case PVRDMA_WC_REM_ACCESS_ERR:
		return PVR_ETH_NAK_ACCESS;
	case PVRDMA_WC_REM_OP_ERR:
		return PVR_ETH_NAK_OPERATION;
	default:
		return PVR_ETH_NAK_INVALID;
	}
}

void pvr_eth_refuse(struct pvr_eth_rq *rq, enum pvrdma_wc_status status, uint32_t psn)
{
	struct pvr_responder_state *state = rq->qp->responder_state;

	state->has_refused = true;
	state->psn = psn;
	state->status = (uint8_t)status;
	rq->is_refusing = true;
	rq->ack_due = false;
	rq->nak_due = true;
	rq->nak = nak_of(status);
	rq->nak_psn = psn;
	/* pvr_eth_answer() sends it behind the answers. */
	if (!rq->count)
		pvr_eth_ack_behind(rq);
}

/* The guest has set ERR: no READ reads its memory any more. */
void pvr_eth_end_answers(struct pvr_qp *qp)
{
	struct pvr_eth_rq *rq = qp->adapter->wire ? pvr_eth_rq(qp) : NULL;

	if (!rq)
		return;
	pvr_eth_answer_stop(rq);
	rq->count = 0;
	rq->is_refusing = false;
}

static void refuse_invalid(struct pvr_eth_rq *rq, uint32_t psn, const char *why)
{
	struct pvr_qp *qp = rq->qp;

	pvr_count(qp, PVR_STAT_REQUEST_ERRORS, 1);
	rq->is_open = false;
	if (qp->type == PVR_QPT_UC)
		return;
	pvr_qp_fail(qp, PVR_EVENT_QP_REQ_ERR, why);
	pvr_eth_refuse(rq, PVRDMA_WC_REM_INV_REQ_ERR, psn);
}

/* ------------------------------------------------------------------------------ payload */

static int recv_payload(struct pvr_inbound *in, const struct pvr_sg *to)
{
	struct pvr_eth_fragment *fragment = (struct pvr_eth_fragment *)in;
	const struct pvr_request *request = &fragment->inbound.request;

	return request->chunk ? pvr_eth_store(to, request->offset, fragment->packet) : 0;
}

/* The READ is permitted. pvr_eth_answer() sends the data, and checks the key again. */
static int read_reply(struct pvr_inbound *in, const struct pvr_sg *from)
{
	(void)in;
	(void)from;
	return 0;
}

static void atomic_reply(struct pvr_inbound *in, uint64_t original)
{
	struct pvr_eth_fragment *fragment = (struct pvr_eth_fragment *)in;

	pvr_eth_answer_add(fragment->rq, &(struct pvr_eth_answer){
						 .psn = fragment->packet->frame->psn,
						 .value = original,
						 .is_atomic = true,
					 });
}

static const struct pvr_inbound_ops inbound_ops = {
	.recv_payload = recv_payload,
	.read_reply = read_reply,
	.atomic_reply = atomic_reply,
};

/* -------------------------------------------------------------------- order of opcodes */

static bool is_message(const struct pvr_roce_opcode *op)
{
	return op->kind == PVR_ROCE_SEND || op->kind == PVR_ROCE_WRITE;
}

/* FIRST and MIDDLE fill the path MTU, LAST has at least a byte. */
static bool is_payload_ok(const struct pvr_qp *qp, const struct pvr_eth_packet *packet)
{
	uint32_t bytes = packet->frame->payload_bytes, mtu = pvr_eth_mtu(qp);

	if (!is_message(packet->op))
		return !bytes;
	if (!packet->op->ends)
		return bytes == mtu;
	return bytes <= mtu && (bytes || packet->op->begins);
}

/* The length of a WRITE is that of its RETH. */
static bool is_sum_ok(const struct pvr_eth_rq *rq, const struct pvr_eth_packet *packet)
{
	uint64_t done = (packet->op->begins ? 0 : rq->qp->rq_offset) + pvr_eth_payload(packet);

	if (packet->op->kind == PVR_ROCE_SEND)
		return done <= PVR_MAX_MSG_SIZE;
	return packet->op->ends ? done == rq->length : done < rq->length;
}

/* Return: NULL, or the reason why the packet is an invalid request. */
static const char *check(struct pvr_eth_rq *rq, const struct pvr_eth_packet *packet)
{
	const struct pvr_roce_opcode *op = packet->op;

	if (op->begins && rq->is_open && rq->qp->type == PVR_QPT_RC)
		return "a packet begins a message inside another one";
	if (!op->begins && (!rq->is_open || rq->kind != op->kind))
		return "a packet continues no message of its kind";
	if (op->kind == PVR_ROCE_FLUSH || op->kind == PVR_ROCE_ATOMIC_WRITE)
		return "FLUSH and ATOMIC WRITE are not offered on the wire";
	if (!is_payload_ok(rq->qp, packet))
		return "a packet's payload does not match the path MTU";
	if (op->begins && op->ext & PVR_ROCE_RETH) {
		if (packet->frame->length > PVR_MAX_MSG_SIZE)
			return "a message longer than 2^31 bytes";
		rq->length = packet->frame->length;
		rq->addr = packet->frame->addr;
		rq->rkey = packet->frame->rkey;
	}
	if (is_message(op) && !is_sum_ok(rq, packet))
		return "the packets of a message do not have its length";
	return NULL;
}

/* --------------------------------------------------------------------------- a fragment */

static uint32_t opcode_of(const struct pvr_eth_packet *packet)
{
	bool imm = packet->op->ext & PVR_ROCE_IMM;

	switch (packet->op->kind) {
	case PVR_ROCE_WRITE:
		return imm ? PVRDMA_WR_RDMA_WRITE_WITH_IMM : PVRDMA_WR_RDMA_WRITE;
	case PVR_ROCE_READ_REQUEST:
		return PVRDMA_WR_RDMA_READ;
	case PVR_ROCE_CMP_SWAP:
		return PVRDMA_WR_ATOMIC_CMP_AND_SWP;
	case PVR_ROCE_FETCH_ADD:
		return PVRDMA_WR_ATOMIC_FETCH_AND_ADD;
	default:
		if (packet->op->ext & PVR_ROCE_IETH)
			return PVRDMA_WR_SEND_WITH_INV;
		return imm ? PVRDMA_WR_SEND_WITH_IMM : PVRDMA_WR_SEND;
	}
}

static void fill_header(struct pvr_eth_fragment *fragment)
{
	const struct pvr_roce_frame *frame = fragment->packet->frame;
	struct pvrdma_sq_wqe_hdr *hdr = &fragment->wqe.hdr;

	memset(hdr, 0, sizeof(*hdr));
	hdr->opcode = opcode_of(fragment->packet);
	hdr->send_flags = frame->solicited ? PVR_SEND_SOLICITED : 0;
	memcpy(&hdr->ex.imm_data, frame->imm, sizeof(frame->imm));
	if (hdr->opcode == PVRDMA_WR_SEND_WITH_INV)
		hdr->ex.invalidate_rkey = frame->inv_rkey;
	if (fragment->packet->op->ext & PVR_ROCE_ATOMIC_ETH) {
		hdr->wr.atomic.remote_addr = frame->addr;
		hdr->wr.atomic.rkey = frame->rkey;
		hdr->wr.atomic.compare_add = fragment->packet->op->kind == PVR_ROCE_CMP_SWAP
						     ? frame->compare
						     : frame->swap_add;
		hdr->wr.atomic.swap = frame->swap_add;
		return;
	}
	hdr->wr.rdma.remote_addr = fragment->rq->addr;
	hdr->wr.rdma.rkey = fragment->rq->rkey;
}

static void fill(struct pvr_eth_fragment *fragment, struct pvr_eth_rq *rq,
		 const struct pvr_eth_packet *packet)
{
	const struct pvr_qp *qp = rq->qp;
	uint64_t offset = packet->op->begins ? 0 : qp->rq_offset;
	uint64_t end = offset + pvr_eth_payload(packet);
	struct pvr_request *request = &fragment->inbound.request;

	fragment->rq = rq;
	fragment->packet = packet;
	fill_header(fragment);
	fragment->req_src = (struct pvr_req_src){
		.qpn = qp->attr.dest_qp_num,
		.psn = packet->op->begins ? packet->frame->psn : qp->rq_psn,
	};
	fragment->inbound.ops = &inbound_ops;
	*request = (struct pvr_request){
		.from = &fragment->req_src,
		.wqe = &fragment->wqe,
		.op = pvr_opcode(fragment->wqe.hdr.opcode),
		.length = packet->op->kind == PVR_ROCE_SEND ? end : rq->length,
		.offset = offset,
		.chunk = pvr_eth_payload(packet),
		.last = packet->op->ends,
	};
	if (packet->op->kind == PVR_ROCE_READ_REQUEST)
		request->chunk = rq->length;
	if (packet->op->ext & PVR_ROCE_ATOMIC_ETH)
		request->length = sizeof(uint64_t);
	request->psns = packet->op->ext & PVR_ROCE_ATOMIC_ETH ? 1 : pvr_psns(qp, request->length);
}

static void count(struct pvr_qp *qp, const struct pvr_request *request)
{
	pvr_count(qp, PVR_STAT_RX_MSGS, 1);
	pvr_count(qp, PVR_STAT_RX_BYTES, request->length);
}

static void done(struct pvr_eth_batch *batch, const struct pvr_eth_fragment *fragment)
{
	const struct pvr_eth_packet *packet = fragment->packet;
	struct pvr_eth_rq *rq = fragment->rq;

	rq->is_open = !packet->op->ends;
	rq->kind = packet->op->kind;
	if (packet->op->ends) {
		rq->msn = pvr_eth_psn_add(rq->msn, 1);
		count(rq->qp, &fragment->inbound.request);
	}
	if (rq->qp->type == PVR_QPT_UC)
		return;
	if (packet->op->kind == PVR_ROCE_READ_REQUEST)
		pvr_eth_answer_add(rq, &(struct pvr_eth_answer){
					       .psn = packet->frame->psn,
					       .addr = rq->addr,
					       .rkey = rq->rkey,
					       .length = rq->length,
				       });
	if (!is_message(packet->op))
		pvr_eth_answer(rq);
	else if (packet->frame->ack_request)
		ack_later(batch, rq);
}

static void execute(struct pvr_eth_batch *batch, struct pvr_eth_rq *rq,
		    const struct pvr_eth_packet *packet)
{
	struct pvr_eth_fragment fragment PVR_UNINITIALIZED;
	struct pvr_qp *qp = rq->qp;
	struct pvr_syndrome answer;
	const char *why;

	qp->responder_state->nak_sent = false;
	rq->nak_due = false;
	why = check(rq, packet);
	if (!why && !is_message(packet->op) && rq->count >= rq->size)
		why = "more RDMA READs and atomics than max_dest_rd_atomic";
	if (why) {
		refuse_invalid(rq, packet->frame->psn, why);
		return;
	}
	fill(&fragment, rq, packet);
	answer = pvr_responder_execute_inbound(qp, &fragment.inbound);
	if (answer.kind == PVR_SYN_ACK) {
		done(batch, &fragment);
	} else if (qp->type == PVR_QPT_UC) { /* It has dropped the message, or has failed. */
		rq->is_open = false;
	} else if (answer.kind == PVR_SYN_RNR || answer.kind == PVR_SYN_PAGE) {
		send_nak(rq, PVR_ETH_RNR | (qp->attr.min_rnr_timer & 31), packet->frame->psn);
	} else if (answer.kind == PVR_SYN_NAK) {
		pvr_eth_refuse(rq, answer.status, packet->frame->psn);
	} else {
		rq->is_open = false;
	}
}

/* ------------------------------------------------------------------------- its position */

static enum pvr_psn_class classify(struct pvr_qp *qp, uint32_t psn)
{
	const struct pvr_req_src from = { .psn = psn };
	const struct pvr_request request = { .from = &from };
	uint32_t begun = pvr_eth_distance(qp->rq_psn, pvr_eth_expected(qp));

	if (pvr_eth_distance(qp->rq_psn, psn) < begun)
		return PVR_PSN_DUPLICATE;
	if (psn == pvr_eth_expected(qp))
		return PVR_PSN_EXPECTED;
	return pvr_psn_classify(qp, &request);
}

static void read_again(struct pvr_eth_rq *rq, const struct pvr_roce_frame *frame)
{
	if (frame->length > PVR_MAX_MSG_SIZE)
		return;
	pvr_eth_answers_drop(rq, frame->psn);
	if (pvr_eth_answer_add(rq, &(struct pvr_eth_answer){
					   .psn = frame->psn,
					   .addr = frame->addr,
					   .rkey = frame->rkey,
					   .length = frame->length,
				   }))
		pvr_eth_answer(rq);
}

static void atomic_again(struct pvr_eth_rq *rq, uint32_t psn)
{
	uint64_t value;

	if (!pvr_replay_find(rq->qp, psn, &value))
		return;
	pvr_eth_answers_drop(rq, psn);
	if (pvr_eth_answer_add(
		    rq, &(struct pvr_eth_answer){ .psn = psn, .value = value, .is_atomic = true }))
		pvr_eth_answer(rq);
}

static void duplicate(struct pvr_eth_batch *batch, struct pvr_eth_rq *rq,
		      const struct pvr_eth_packet *packet)
{
	switch (packet->op->kind) {
	case PVR_ROCE_READ_REQUEST:
		read_again(rq, packet->frame);
		break;
	case PVR_ROCE_CMP_SWAP:
	case PVR_ROCE_FETCH_ADD:
		atomic_again(rq, packet->frame->psn);
		break;
	default:
		ack_later(batch, rq);
		break;
	}
}

static void reliable(struct pvr_eth_batch *batch, struct pvr_eth_rq *rq,
		     const struct pvr_eth_packet *packet)
{
	switch (classify(rq->qp, packet->frame->psn)) {
	case PVR_PSN_EXPECTED:
		execute(batch, rq, packet);
		break;
	case PVR_PSN_DUPLICATE:
		duplicate(batch, rq, packet);
		break;
	case PVR_PSN_AHEAD:
		/* One NAK for a gap, and none during an RNR NAK. */
		if (!rq->qp->responder_state->nak_sent)
			send_nak(rq, PVR_ETH_NAK_SEQUENCE, pvr_eth_expected(rq->qp));
		break;
	case PVR_PSN_STRADDLES: /* never: a packet is compared by its PSN alone */
	case PVR_PSN_INVALID:
		break;
	}
}

static void unreliable(struct pvr_eth_batch *batch, struct pvr_eth_rq *rq,
		       const struct pvr_eth_packet *packet)
{
	if (!packet->op->begins && packet->frame->psn != pvr_eth_expected(rq->qp))
		rq->is_open = false;
	execute(batch, rq, packet);
}

static void in_error(struct pvr_eth_rq *rq, const struct pvr_eth_packet *packet)
{
	const struct pvr_responder_state *state = rq->qp->responder_state;

	/* Before its first answer the NAK is due anyway. */
	if (rq->qp->type == PVR_QPT_RC && state->has_refused && state->psn == packet->frame->psn &&
	    !rq->count)
		pvr_eth_send_ack(rq, nak_of(state->status), state->psn);
}

bool pvr_eth_requests_fit(const struct pvr_qp *qp, const struct pvr_eth_packet *packet)
{
	struct pvr_eth_rq *rq = pvr_eth_rq(qp);

	return rq && qp->state != PVR_QPS_ERR && packet->frame->psn == pvr_eth_expected(qp) &&
	       !check(rq, packet);
}

void pvr_eth_request(struct pvr_eth_batch *batch, struct pvr_qp *qp,
		     const struct pvr_eth_packet *packet)
{
	struct pvr_eth_rq *rq = rq_get(qp, packet->op->ext & PVR_ROCE_ATOMIC_ETH);

	/* Without memory, or if another path has served the queue pair, the peer gets no answer. */
	if (!rq)
		return;
	if (qp->state == PVR_QPS_ERR)
		in_error(rq, packet);
	else if (qp->type == PVR_QPT_UC)
		unreliable(batch, rq, packet);
	else
		reliable(batch, rq, packet);
}
