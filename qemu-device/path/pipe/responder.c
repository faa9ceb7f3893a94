// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * The responder of the pipe path: requests of other hosts' queue pairs.
 *
 * DOC: expected PSN and offset
 *
 * * A queue pair has executed all messages before rq_psn, and rq_offset bytes of the
 *   message at rq_psn.
 * * A fragment at this PSN and offset is executed like a fragment of the local path
 *   (rdma/responder.c).
 * * A fragment before it is a duplicate after a broken connection. Its payload is
 *   discarded; a READ or an atomic is answered again.
 * * A fragment that begins before it and ends behind it was sent in smaller parts before.
 *   Its tail is executed. A READ is answered again as a whole, and the offset moves to its
 *   end.
 * * A fragment behind it is dropped, because a fragment is missing. One PSN_SEQ_ERR is
 *   sent, and no other until the missing fragment arrives.
 * * A fragment whose payload arrives in parts is classified again each time. If another
 *   connection has delivered it meanwhile, the rest is discarded and does not reach the
 *   guest's memory.
 * * A fragment before the queue pair's first PSN was never executed here: the ends
 *   disagree on PSNs, and no response claims otherwise (NO_QP).
 *
 * DOC: ACKs
 *
 * * An ACK is held back until no more frames can be handled, or until a response to
 *   another queue pair is due on the connection.
 * * READ_DATA and ATOMIC_ACK acknowledge as well.
 */
#include <endian.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "rdma/capture.h"
#include "rdma/cq.h"
#include "rdma/responder.h"
#include "rdma/throttle.h"
#include "gid/resolve.h"
#include "core/demand.h"
#include "core/ext_dma.h"
#include "path/pipe/fault.h"
#include "path/pipe/internal.h"
#include "path/pipe/sq.h"
#include "rdma/worker.h"
#include "rdma/responder_state.h"
#include "gid/fabric.h"

static const uint32_t opcodes[PVR_FRAME_OP_NUM] = {
	[PVR_FRAME_OP_SEND] = PVRDMA_WR_SEND,
	[PVR_FRAME_OP_SEND_IMM] = PVRDMA_WR_SEND_WITH_IMM,
	[PVR_FRAME_OP_SEND_INV] = PVRDMA_WR_SEND_WITH_INV,
	[PVR_FRAME_OP_WRITE] = PVRDMA_WR_RDMA_WRITE,
	[PVR_FRAME_OP_WRITE_IMM] = PVRDMA_WR_RDMA_WRITE_WITH_IMM,
	[PVR_FRAME_OP_READ] = PVRDMA_WR_RDMA_READ,
	[PVR_FRAME_OP_CMP_SWAP] = PVRDMA_WR_ATOMIC_CMP_AND_SWP,
	[PVR_FRAME_OP_FETCH_ADD] = PVRDMA_WR_ATOMIC_FETCH_AND_ADD,
	[PVR_FRAME_OP_ATOMIC_WRITE] = PVR_WR_ATOMIC_WRITE,
	[PVR_FRAME_OP_FLUSH] = PVR_WR_FLUSH,
};

/* A received fragment of a request. */
struct pvr_rx_request {
	struct pvr_inbound inbound; /* refers to the members below */
	struct pvr_req_src req_src;
	struct pvr_send_wqe wqe; /* only its header is valid */
	struct pvr_rsp_conn *conn;
	const struct pvr_frame_request *frame;
	uint8_t *payload; /* the whole payload, or NULL: not arrived */
	struct pvr_qp *to;
};

static bool is_unreliable(const struct pvr_frame_request *frame)
{
	return frame->frame.flags & PVR_REQUEST_F_UC;
}

static enum pvr_xrc_role role_of_responder(const struct pvr_frame_request *frame)
{
	return frame->frame.flags & PVR_REQUEST_F_XRC ? PVR_XRC_TGT : PVR_XRC_NONE;
}

/* ------------------------------------------------------------------ answers */

/* A response to the requester of @frame. */
static struct pvr_frame_ack answer_to(const struct pvr_frame_request *frame,
				      enum pvr_frame_syndrome syndrome)
{
	struct pvr_frame_ack ack = {
		.frame.type = PVR_FRAME_ACK,
		.frame.fabric = frame->frame.fabric,
		.syndrome = syndrome,
		.epoch = frame->epoch,
		.qpn = frame->src_qpn,
	};

	memcpy(ack.gid, frame->sgid, sizeof(ack.gid));
	return ack;
}

static bool is_for_same(const struct pvr_frame_ack *a, const struct pvr_frame_ack *b)
{
	return a->qpn == b->qpn && a->epoch == b->epoch && a->frame.fabric == b->frame.fabric &&
	       !memcmp(a->gid, b->gid, sizeof(a->gid));
}

static void send_ack(struct pvr_rsp_conn *in, const struct pvr_frame_ack *ack)
{
	union pvr_any_frame any = { .ack = *ack };

	pvr_rsp_conn_reply(in, &any, sizeof(any.ack), NULL, NULL, 0, 0);
}

void pvr_pipe_request_end(struct pvr_rsp_conn *in)
{
	struct pvr_rsp_conn_acks *acks = pvr_rsp_conn_acks(in);

	if (!acks->ack_pending)
		return;
	acks->ack_pending = false;
	send_ack(in, &acks->frame);
}

/*
 * @ack supersedes a pending ACK of the same queue pair. An ACK of another queue pair is
 * sent.
 */
static void flush_acks(struct pvr_rsp_conn *in, const struct pvr_frame_ack *ack)
{
	struct pvr_rsp_conn_acks *acks = pvr_rsp_conn_acks(in);

	if (is_for_same(&acks->frame, ack))
		acks->ack_pending = false;
	else
		pvr_pipe_request_end(in);
}

static void set_expected(struct pvr_frame_ack *ack, const struct pvr_qp *to)
{
	ack->psn = htole32(to->rq_psn);
	ack->offset = htole64(to->rq_offset);
}

/* Stores an ACK with the expected PSN and offset, to be sent later. */
static void ack_later(const struct pvr_rx_request *fragment)
{
	struct pvr_rsp_conn_acks *acks = pvr_rsp_conn_acks(fragment->conn);
	struct pvr_frame_ack ack = answer_to(fragment->frame, PVR_FRAME_SYN_ACK);

	if (is_unreliable(fragment->frame))
		return;
	set_expected(&ack, fragment->to);
	flush_acks(fragment->conn, &ack);
	acks->frame = ack;
	acks->ack_pending = true;
	acks->count++;
}

/* @ack supersedes what is pending for this queue pair. */
static void send_at_once(const struct pvr_rx_request *fragment, const struct pvr_frame_ack *ack)
{
	flush_acks(fragment->conn, ack);
	send_ack(fragment->conn, ack);
}

/*
 * Sends the position behind a fragment that was executed before, and stores the expected one. A
 * requester that was on the local path meanwhile does not know what it had sent behind the fragment,
 * and ignores a position of that.
 */
static void ack_duplicate(const struct pvr_rx_request *fragment)
{
	struct pvr_frame_ack ack = answer_to(fragment->frame, PVR_FRAME_SYN_ACK);
	const struct pvr_request *request = &fragment->inbound.request;
	uint32_t psn = fragment->req_src.psn;
	uint64_t offset = 0;
	bool is_before;

	if (is_unreliable(fragment->frame))
		return;
	if (request->last)
		psn = (psn + le32toh(fragment->frame->psns)) & PVR_PSN_MASK;
	else
		offset = request->offset + request->chunk;
	/* A requester that has begun anew may end its message before the position. */
	is_before = pvr_psn_distance(psn, fragment->to->rq_psn) < PVR_PSNS_HALF;
	if (is_before && (psn != fragment->to->rq_psn || offset != fragment->to->rq_offset)) {
		ack.psn = htole32(psn);
		ack.offset = htole64(offset);
		send_at_once(fragment, &ack);
	}
	ack_later(fragment);
}

/* Sends a negative response with the expected PSN and offset. */
static void send_nak(const struct pvr_rx_request *fragment, struct pvr_frame_ack *ack)
{
	if (is_unreliable(fragment->frame))
		return;
	set_expected(ack, fragment->to);
	send_at_once(fragment, ack);
}

/* No queue pair here executes the request. */
static void send_no_qp(struct pvr_rsp_conn *in, const struct pvr_frame_request *frame,
		       enum pvr_frame_syndrome syndrome)
{
	struct pvr_frame_ack ack = answer_to(frame, syndrome);

	if (is_unreliable(frame))
		return;
	ack.psn = frame->psn;
	pvr_pipe_request_end(in);
	send_ack(in, &ack);
}

static void send_nak_of(const struct pvr_rx_request *fragment, uint8_t nak)
{
	struct pvr_frame_ack ack = answer_to(fragment->frame, PVR_FRAME_SYN_NAK);

	ack.nak = nak;
	send_nak(fragment, &ack);
}

/* ------------------------------------------------------- payload, either way */

static int recv_payload(struct pvr_inbound *in, const struct pvr_sg *to)
{
	struct pvr_rx_request *fragment = (struct pvr_rx_request *)in;
	const struct pvr_request *request = &fragment->inbound.request;
	uint64_t begin = le64toh(fragment->frame->offset);
	uint32_t skip = (uint32_t)(request->offset - begin);
	struct pvr_sg own;
	int ret;

	if (!request->chunk)
		return 0;
	if (fragment->payload) {
		pvr_sg_build_flat(&own, fragment->to->adapter, fragment->payload + skip,
				  request->chunk);
		return pvr_sg_copy(to, request->offset, &own, 0, request->chunk);
	}
	ret = pvr_rsp_conn_recv_payload(fragment->conn, fragment->to, to, begin,
					skip + (uint32_t)request->chunk, skip);
	if (ret < 0)
		return ret;
	return ret ? 0 : -EAGAIN;
}

static int read_reply(struct pvr_inbound *in, const struct pvr_sg *from)
{
	struct pvr_rx_request *fragment = (struct pvr_rx_request *)in;
	const struct pvr_request *request = &fragment->inbound.request;
	const struct pvr_frame_request *frame = fragment->frame;
	struct pvr_page_range range;
	union pvr_any_frame any = { .read_data = {
					    .frame.type = PVR_FRAME_READ_DATA,
					    .frame.fabric = frame->frame.fabric,
					    .epoch = frame->epoch,
					    .qpn = frame->src_qpn,
					    .psn = frame->psn,
					    .chunk = frame->chunk,
					    .offset = frame->offset,
				    } };

	if (pvr_sg_absent(from, request->offset, request->chunk, &range))
		return -EFAULT;
	memcpy(any.read_data.gid, frame->sgid, sizeof(frame->sgid));
	pvr_rsp_conn_reply(fragment->conn, &any, sizeof(any.read_data), fragment->to, from,
			   request->offset, request->chunk);
	return 0;
}

static void send_value(const struct pvr_rx_request *fragment, uint64_t value)
{
	const struct pvr_frame_request *frame = fragment->frame;
	union pvr_any_frame any = { .atomic_ack = {
					    .frame.type = PVR_FRAME_ATOMIC_ACK,
					    .frame.fabric = frame->frame.fabric,
					    .epoch = frame->epoch,
					    .qpn = frame->src_qpn,
					    .psn = frame->psn,
					    .value = htole64(value),
				    } };

	memcpy(any.atomic_ack.gid, frame->sgid, sizeof(frame->sgid));
	pvr_rsp_conn_reply(fragment->conn, &any, sizeof(any.atomic_ack), NULL, NULL, 0, 0);
}

static void atomic_reply(struct pvr_inbound *in, uint64_t original)
{
	send_value((struct pvr_rx_request *)in, original);
}

static const struct pvr_inbound_ops inbound_ops = {
	.recv_payload = recv_payload,
	.read_reply = read_reply,
	.atomic_reply = atomic_reply,
};

/* ------------------------------------------------------------- the responder's */

/* The queue pair that @frame is for: connected to its requester. */
static struct pvr_qp *find_stopped(struct pvr_adapter *adapter,
				   const struct pvr_frame_request *frame)
{
	struct pvr_qp *qp;

	if (!adapter->link_up)
		return NULL;
	qp = pvr_qp_find(adapter, le32toh(frame->dst_qpn));
	if (!qp || qp->type != (is_unreliable(frame) ? PVR_QPT_UC : PVR_QPT_RC) ||
	    qp->xrc_role != role_of_responder(frame) ||
	    qp->attr.dest_qp_num != le32toh(frame->src_qpn) ||
	    memcmp(qp->attr.ah_attr.dgid, frame->sgid, sizeof(frame->sgid)))
		return NULL;
	return qp;
}

/* The same. It can execute requests. A closed adapter executes those whose requester would not wait. */
static struct pvr_qp *find(struct pvr_adapter *adapter, const struct pvr_rsp_conn *in,
			   const struct pvr_frame_request *frame)
{
	if (pvr_adapter_serves(adapter) ||
	    (pvr_adapter_is_closed(adapter) && !adapter->ends_connections &&
	     (is_unreliable(frame) || !pvr_rsp_conn_has_held(in))))
		return find_stopped(adapter, frame);
	return NULL;
}

static void fill_atomic_write(struct pvrdma_sq_wqe_hdr *hdr, const struct pvr_frame_request *frame)
{
	struct pvr_wqe_atomic_write write = {
		.addr = le64toh(frame->addr),
		.rkey = le32toh(frame->rkey),
		.value = le64toh(frame->swap),
	};

	memcpy(&hdr->wr, &write, sizeof(write));
}

static void fill_flush(struct pvrdma_sq_wqe_hdr *hdr, const struct pvr_frame_request *frame)
{
	uint64_t selectors = le64toh(frame->swap);
	struct pvr_wqe_flush flush = {
		.addr = le64toh(frame->addr),
		.length = le64toh(frame->compare_add),
		.rkey = le32toh(frame->rkey),
		.placement = selectors,
		.level = selectors >> 8,
	};

	memcpy(&hdr->wr, &flush, sizeof(flush));
}

static void fill_header(struct pvrdma_sq_wqe_hdr *hdr, const struct pvr_frame_request *frame)
{
	uint32_t key;

	memset(hdr, 0, sizeof(*hdr));
	hdr->opcode = opcodes[frame->op];
	hdr->send_flags = frame->frame.flags & PVR_REQUEST_F_SOLICITED ? PVR_SEND_SOLICITED : 0;
	hdr->reserved = le32toh(frame->srqn);
	memcpy(&hdr->ex.imm_data, frame->imm, sizeof(frame->imm));
	if (frame->op == PVR_FRAME_OP_SEND_INV) {
		memcpy(&key, frame->imm, sizeof(key));
		hdr->ex.invalidate_rkey = le32toh(key);
	}
	if (frame->op == PVR_FRAME_OP_CMP_SWAP || frame->op == PVR_FRAME_OP_FETCH_ADD) {
		hdr->wr.atomic.remote_addr = le64toh(frame->addr);
		hdr->wr.atomic.rkey = le32toh(frame->rkey);
		hdr->wr.atomic.compare_add = le64toh(frame->compare_add);
		hdr->wr.atomic.swap = le64toh(frame->swap);
		return;
	}
	if (frame->op == PVR_FRAME_OP_ATOMIC_WRITE) {
		fill_atomic_write(hdr, frame);
		return;
	}
	if (frame->op == PVR_FRAME_OP_FLUSH) {
		fill_flush(hdr, frame);
		return;
	}
	hdr->wr.rdma.remote_addr = le64toh(frame->addr);
	hdr->wr.rdma.rkey = le32toh(frame->rkey);
}

static void fill_fragment(struct pvr_rx_request *fragment)
{
	const struct pvr_frame_request *frame = fragment->frame;

	fill_header(&fragment->wqe.hdr, frame);
	fragment->req_src = (struct pvr_req_src){
		.qpn = le32toh(frame->src_qpn),
		.psn = le32toh(frame->psn),
	};
	fragment->inbound.ops = &inbound_ops;
	fragment->inbound.request = (struct pvr_request){
		.from = &fragment->req_src,
		.wqe = &fragment->wqe,
		.op = pvr_opcode(opcodes[frame->op]),
		.length = le64toh(frame->length),
		.offset = le64toh(frame->offset),
		.chunk = le32toh(frame->chunk),
		.psns = le32toh(frame->psns),
		.last = frame->frame.flags & PVR_REQUEST_F_LAST,
	};
}

/* ------------------------------------------------------------------- a fragment */

static enum pvr_frame_nak nak_of(enum pvrdma_wc_status status)
{
	switch (status) {
	case PVRDMA_WC_REM_ACCESS_ERR:
		return PVR_FRAME_NAK_ACCESS;
	case PVRDMA_WC_REM_OP_ERR:
		return PVR_FRAME_NAK_OPERATION;
	default:
		return PVR_FRAME_NAK_INVALID_REQUEST;
	}
}

static void refused(const struct pvr_rx_request *fragment, enum pvrdma_wc_status status)
{
	struct pvr_responder_state *rq = fragment->to->responder_state;

	rq->has_refused = true;
	rq->psn = fragment->req_src.psn;
	rq->status = status;
	send_nak_of(fragment, nak_of(status));
}

static void not_ready(const struct pvr_rx_request *fragment, struct pvr_syndrome why)
{
	bool page = why.kind == PVR_SYN_PAGE && pvr_rsp_conn_has_page(fragment->conn);
	struct pvr_frame_ack ack =
		answer_to(fragment->frame, page ? PVR_FRAME_SYN_PAGE : PVR_FRAME_SYN_RNR);

	/* Fragments behind this one are resent later. */
	fragment->to->responder_state->nak_sent = true;
	ack.rnr_ns = htole64(why.wait_ns);
	send_nak(fragment, &ack);
}

static void done(const struct pvr_rx_request *fragment)
{
	const struct pvr_request *request = &fragment->inbound.request;
	struct pvr_qp *to = fragment->to;

	if (request->last) {
		pvr_count(to, PVR_STAT_RX_MSGS, 1);
		pvr_count(to, PVR_STAT_RX_BYTES, request->length);
	}
	if (request->op->local) {
		struct pvr_frame_ack ack = answer_to(fragment->frame, PVR_FRAME_SYN_ACK);

		/* The response was sent and acknowledges all before it. */
		flush_acks(fragment->conn, &ack);
		return;
	}
	ack_later(fragment);
}

/* A payload that a NIC has placed is not known here. */
static void capture(const struct pvr_rx_request *fragment, struct pvr_syndrome answer)
{
	const struct pvr_request *request = &fragment->inbound.request;
	uint64_t skip = request->offset - le64toh(fragment->frame->offset);
	struct pvr_sg payload;

	if (fragment->payload)
		pvr_sg_build_flat(&payload, fragment->to->adapter, fragment->payload + skip,
				  (uint32_t)request->chunk);
	pvr_capture_inbound(fragment->to, request, fragment->payload ? &payload : NULL, answer);
}

static enum pvr_handled answer(struct pvr_rx_request *fragment, struct pvr_syndrome syndrome)
{
	switch (syndrome.kind) {
	case PVR_SYN_PARTIAL:
		return PVR_HANDLED_PARTLY;
	case PVR_SYN_ACK:
		done(fragment);
		break;
	case PVR_SYN_RNR:
	case PVR_SYN_PAGE:
		not_ready(fragment, syndrome);
		break;
	case PVR_SYN_NAK:
		refused(fragment, syndrome.status);
		break;
	case PVR_SYN_NONE: /* of UC */
		break;
	}
	return PVR_HANDLED;
}

/* Return: whether a fault of the operator stalls the peer, so its request waits, or is lost. */
static bool is_stalled(const struct pvr_rx_request *fragment)
{
	const struct pvr_path_ops *path;

	if (!fragment->to->adapter->engine->num_faults)
		return false;
	path = pvr_path_get(fragment->to);
	return path->stalls_peer && path->stalls_peer(fragment->to);
}

/* While there are captures or faults. @is_tail: as of execute_tail() */
static pvr_noinline enum pvr_handled execute_observed(struct pvr_rx_request *fragment, bool is_tail)
{
	const struct pvr_syndrome wait = { .kind = PVR_SYN_PAGE, .wait_ns = PVR_PIPE_STALL_NS };
	const struct pvr_syndrome none = { .kind = PVR_SYN_NONE };
	struct pvr_syndrome syndrome;

	if (is_stalled(fragment))
		return answer(fragment, is_unreliable(fragment->frame) ? none : wait);
	if (is_tail)
		syndrome = pvr_responder_execute_tail(fragment->to, &fragment->inbound);
	else
		syndrome = pvr_responder_execute_inbound(fragment->to, &fragment->inbound);
	if (pvr_captures(fragment->to->adapter) && syndrome.kind != PVR_SYN_PARTIAL)
		capture(fragment, syndrome);
	return answer(fragment, syndrome);
}

static pvr_always_inline void begin_execution(struct pvr_rx_request *fragment)
{
	fragment->to->responder_state->nak_sent = false;
	/* Stop the NIC of a replaced connection from writing the same fragment. */
	pvr_ext_dma_revoke_dst(fragment->to, pvr_rsp_conn_ext_dma(fragment->conn));
}

static enum pvr_handled execute(struct pvr_rx_request *fragment)
{
	begin_execution(fragment);
	if (fragment->to->adapter->engine->observed)
		return execute_observed(fragment, false);
	return answer(fragment, pvr_responder_execute_inbound(fragment->to, &fragment->inbound));
}

/* An earlier connection, or another path, has delivered the head of the fragment. */
static pvr_noinline enum pvr_handled execute_tail(struct pvr_rx_request *fragment)
{
	begin_execution(fragment);
	if (fragment->to->adapter->engine->observed)
		return execute_observed(fragment, true);
	return answer(fragment, pvr_responder_execute_tail(fragment->to, &fragment->inbound));
}

static enum pvr_handled execute_fault(struct pvr_rx_request *fragment)
{
	fragment->to->responder_state->nak_sent = false;
	return answer(fragment, pvr_pipe_fault_execute(fragment->to, &fragment->inbound.request,
						       fragment->frame));
}

static void replay_duplicate(struct pvr_rx_request *fragment)
{
	struct pvr_syndrome answer;
	uint64_t value;

	switch (fragment->inbound.request.op->kind) {
	case PVR_OP_READ:
		answer = pvr_responder_read_again(fragment->to, &fragment->inbound);
		if (answer.kind == PVR_SYN_NAK)
			refused(fragment, answer.status);
		else if (answer.kind == PVR_SYN_PAGE)
			not_ready(fragment, answer);
		break;
	case PVR_OP_ATOMIC:
		/* Without a stored value the requester no longer waits for it. */
		if (pvr_replay_find(fragment->to, fragment->req_src.psn, &value))
			send_value(fragment, value);
		break;
	default:
		ack_duplicate(fragment);
		break;
	}
}

static void send_seq_nak(const struct pvr_rx_request *fragment)
{
	struct pvr_frame_ack ack = answer_to(fragment->frame, PVR_FRAME_SYN_PSN_SEQ_ERR);

	if (fragment->to->responder_state->nak_sent)
		return;
	fragment->to->responder_state->nak_sent = true;
	send_nak(fragment, &ack);
}

/*
 * In the error state, acknowledge what was executed before, and repeat the NAK for a
 * requester whose connection has broken. All else gets NO_QP.
 */
static void in_error(const struct pvr_rx_request *fragment)
{
	const struct pvr_responder_state *rq = fragment->to->responder_state;
	enum pvr_psn_class psn_class = pvr_psn_classify(fragment->to, &fragment->inbound.request);

	if (rq->has_refused && rq->psn == fragment->req_src.psn &&
	    (psn_class == PVR_PSN_EXPECTED || psn_class == PVR_PSN_STRADDLES))
		send_nak_of(fragment, nak_of(rq->status));
	else if (psn_class == PVR_PSN_DUPLICATE && !fragment->inbound.request.op->local)
		ack_duplicate(fragment);
	else
		send_no_qp(fragment->conn, fragment->frame, PVR_FRAME_SYN_NO_QP);
}

/* Longer than a connection is late, and short for a requester whose PSNs have gone on without us. */
#define OVERTAKEN_MS 1000u

static uint64_t heard_now(const struct pvr_rx_request *fragment)
{
	return le32toh(fragment->frame->epoch) | pvr_now(fragment->to->adapter->engine) / 1000000
							 << 32;
}

/*
 * UC takes the first fragment of a message with any PSN. But a requester may use several connections
 * in turn, and a message that was overtaken there must not follow its successor. It is lost, as the
 * successor has begun anew.
 */
static bool is_overtaken(const struct pvr_rx_request *fragment, uint64_t now)
{
	const struct pvr_qp *to = fragment->to;
	uint32_t behind = (to->rq_psn - fragment->req_src.psn) & PVR_PSN_MASK;

	return (uint32_t)to->uc_heard == (uint32_t)now &&
	       (uint32_t)((now >> 32) - (to->uc_heard >> 32)) < OVERTAKEN_MS && behind &&
	       behind < PVR_PSNS_HALF;
}

static enum pvr_handled handle_unreliable(struct pvr_rx_request *fragment, bool is_fault)
{
	struct pvr_qp *to = fragment->to;
	bool begins = !fragment->inbound.request.offset;
	uint64_t now = begins ? heard_now(fragment) : 0;
	enum pvr_handled handled;

	if (!pvr_qp_can_respond(to) || (begins && is_overtaken(fragment, now)))
		return PVR_HANDLED;
	if (is_fault)
		return execute_fault(fragment);
	handled = execute(fragment);
	/* Only a fragment that has set the expected PSN tells what comes behind it. */
	if (begins &&
	    ((to->rq_psn - fragment->req_src.psn) & PVR_PSN_MASK) <= fragment->inbound.request.psns)
		to->uc_heard = now;
	return handled;
}

/* Compiled twice: for REQUEST, and for FAULT, whose message is never executed. */
static pvr_always_inline enum pvr_handled handle(struct pvr_rx_request *fragment, bool is_fault)
{
	struct pvr_qp *to = fragment->to;

	if (to->type == PVR_QPT_UC)
		return handle_unreliable(fragment, is_fault);
	if (to->state == PVR_QPS_ERR) {
		in_error(fragment);
		return PVR_HANDLED;
	}
	if (!pvr_qp_can_respond(to)) {
		send_no_qp(fragment->conn, fragment->frame, PVR_FRAME_SYN_NO_QP);
		return PVR_HANDLED;
	}
	switch (pvr_psn_classify(to, &fragment->inbound.request)) {
	case PVR_PSN_EXPECTED:
		return is_fault ? execute_fault(fragment) : execute(fragment);
	case PVR_PSN_DUPLICATE:
		if (is_fault)
			ack_duplicate(fragment);
		else
			replay_duplicate(fragment);
		break;
	case PVR_PSN_STRADDLES: /* Never a FAULT, which has no bytes. */
		return execute_tail(fragment);
	case PVR_PSN_AHEAD:
		send_seq_nak(fragment);
		break;
	case PVR_PSN_INVALID:
		send_no_qp(fragment->conn, fragment->frame, PVR_FRAME_SYN_NO_QP);
		break;
	}
	return PVR_HANDLED;
}

/* --------------------------------------------------------------- stopped adapters */

/* A short stop costs its peers few polls, and a wait not much longer than the stop. */
#define HELD_MIN_NS 2000000u
#define HELD_MAX_NS 100000000u

static uint64_t held_ns(const struct pvr_adapter *adapter)
{
	uint64_t ns = (pvr_now(adapter->engine) - adapter->stopped_at) / 4;

	if (pvr_adapter_is_closed(adapter))
		return pvr_throttle_left(adapter);
	if (ns < HELD_MIN_NS || adapter->ends_connections)
		return HELD_MIN_NS;
	return ns < HELD_MAX_NS ? ns : HELD_MAX_NS;
}

/*
 * The requester sends again from the expected PSN and offset. It sends fragments behind the first
 * one again, too, so they get no response.
 */
static void send_held(const struct pvr_rx_request *fragment)
{
	struct pvr_frame_ack ack = answer_to(fragment->frame, PVR_FRAME_SYN_HELD);
	struct pvr_responder_state *rq = fragment->to->responder_state;
	enum pvr_psn_class class = pvr_psn_classify(fragment->to, &fragment->inbound.request);

	if (rq->nak_sent && class == PVR_PSN_AHEAD)
		return;
	rq->nak_sent = true;
	ack.rnr_ns = htole64(held_ns(fragment->to->adapter));
	if (class != PVR_PSN_DUPLICATE) {
		send_nak(fragment, &ack);
		return;
	}
	/* Not the expected position: see ack_duplicate(). */
	ack.psn = fragment->frame->psn;
	ack.offset = fragment->frame->offset;
	send_at_once(fragment, &ack);
}

/* Return: whether the adapter is stopped, and its queue pair receives the request after the start. */
static bool hold(struct pvr_adapter *adapter, struct pvr_rx_request *fragment)
{
	if (!pvr_adapter_is_held(adapter) || !pvr_rsp_conn_has_held(fragment->conn))
		return false;
	fragment->to = find_stopped(adapter, fragment->frame);
	if (!fragment->to || !pvr_qp_can_respond(fragment->to) ||
	    !pvr_host_rq_get(fragment->to, pvr_rsp_conn_host(fragment->conn), false))
		return false;
	send_held(fragment);
	return true;
}

/* No queue pair executes the request now. */
static pvr_noinline enum pvr_handled absent(struct pvr_adapter *adapter,
					    struct pvr_rx_request *fragment)
{
	if (!hold(adapter, fragment))
		send_no_qp(fragment->conn, fragment->frame, PVR_FRAME_SYN_NO_QP);
	return PVR_HANDLED;
}

/* The adapter's lock is held. */
static pvr_always_inline enum pvr_handled handle_for(struct pvr_adapter *adapter,
						     struct pvr_rsp_conn *in,
						     const struct pvr_frame_request *frame,
						     uint8_t *payload, bool is_fault)
{
	struct pvr_rx_request fragment;

	fragment.conn = in;
	fragment.frame = frame;
	fragment.payload = payload;
	fragment.to = find(adapter, in, frame);
	fill_fragment(&fragment);
	if (!fragment.to || !pvr_host_rq_get(fragment.to, pvr_rsp_conn_host(in),
					     fragment.inbound.request.op->kind == PVR_OP_ATOMIC))
		return absent(adapter, &fragment);
	return handle(&fragment, is_fault);
}

/*
 * The sender may be the host that has the requester's adapter now. It waits without a retry until
 * the directory has decided.
 */
static void hold_for(struct pvr_adapter *adapter, struct pvr_rsp_conn *in,
		     const struct pvr_frame_request *frame)
{
	struct pvr_frame_ack ack = answer_to(frame, PVR_FRAME_SYN_HELD);
	struct pvr_rx_request fragment = {
		.conn = in,
		.frame = frame,
		.to = find(adapter, in, frame),
	};

	if (!fragment.to || !pvr_qp_can_respond(fragment.to) || !pvr_rsp_conn_has_held(in)) {
		send_no_qp(in, frame, PVR_FRAME_SYN_NO_QP);
		return;
	}
	ack.rnr_ns = htole64(HELD_MAX_NS);
	send_nak(&fragment, &ack);
}

static void log_imposture(struct pvr_adapter *adapter, const struct pvr_rsp_conn *in)
{
	pvr_log_guest(adapter, "host %s: request from a GID that this host does not have",
		      pvr_host_name(pvr_rsp_conn_host(in)));
}

static pvr_always_inline enum pvr_handled request(struct pvr_rsp_conn *in, const char *fabric,
						  const struct pvr_frame_request *frame,
						  uint8_t *payload, bool is_fault)
{
	struct pvr_host *host = pvr_rsp_conn_host(in);
	enum pvr_handled handled = PVR_HANDLED;
	struct pvr_adapter *adapter;
	enum pvr_gid_state where;
	bool replaces;

	where = pvr_rsp_conn_check_sender(in, fabric, frame->sgid, frame->gid_type, frame->dgid);
	if (where == PVR_GID_UNKNOWN && pvr_rsp_conn_may_stall(in))
		return PVR_HANDLED_STALLED;
	replaces = where == PVR_GID_ABSENT && pvr_rsp_conn_replaces_sender(in, fabric, frame->sgid);
	adapter = pvr_fabric_look_up(pvr_host_engine(host), fabric, frame->dgid, frame->gid_type);
	/*
	 * Only a host that has the requester's GID learns which GIDs are here. Other
	 * hosts get NO_QP in all cases, unless that host is silent: hold_for(). Their GID
	 * may be resolved later, and then NO_QP makes them send again.
	 */
	if (where != PVR_GID_AT_HOST && !(replaces && adapter))
		send_no_qp(in, frame, PVR_FRAME_SYN_NO_QP);
	else if (!adapter)
		send_no_qp(in, frame, PVR_FRAME_SYN_NO_GID);
	if (!adapter)
		return PVR_HANDLED;
	pvr_adapter_lock(adapter);
	if (where == PVR_GID_AT_HOST)
		handled = handle_for(adapter, in, frame, payload, is_fault);
	else if (replaces)
		hold_for(adapter, in, frame);
	else if (where != PVR_GID_UNKNOWN)
		log_imposture(adapter, in);
	pvr_publish(adapter);
	pvr_adapter_unlock(adapter);
	return handled;
}

enum pvr_handled pvr_pipe_request(struct pvr_rsp_conn *in, const char *fabric,
				  const struct pvr_frame_request *frame, uint8_t *payload)
{
	return request(in, fabric, frame, payload, false);
}

enum pvr_handled pvr_pipe_request_fault(struct pvr_rsp_conn *in, const char *fabric,
					const struct pvr_frame_request *frame)
{
	return request(in, fabric, frame, NULL, true);
}
