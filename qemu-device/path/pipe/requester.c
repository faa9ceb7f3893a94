// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * The requester of the pipe path: sends requests and does not wait for the responses.
 *
 * DOC: end of a quantum
 *
 * * All requests are sent, with or without requests in flight.
 * * The quantum has used its share.
 * * The connection is full, or no connection is up (PVR_QP_WAIT_CONN, until
 *   pvr_host_resume()).
 * * The next request needs responses first (PVR_QP_WAIT_ACKS): a fence, an RDMA READ
 *   beyond max_rd_atomic, a full window, or a request that must fail in its order.
 */
#include <endian.h>
#include <stdlib.h>
#include <string.h>

#include "rdma/capture.h"
#include "rdma/cq.h"
#include "rdma/flips.h"
#include "rdma/completer.h"
#include "rdma/wr.h"
#include "rdma/page_fault.h"
#include "rdma/path.h"
#include "rdma/sched.h"
#include "rdma/shaper.h"
#include "gid/fabric.h"
#include "gid/flow.h"
#include "core/ext_dma.h"
#include "path/pipe/fault.h"
#include "path/pipe/sq.h"
#include "rdma/qp.h"

/* Each fragment but the last one of a message ends at a multiple of this. */
#define FRAGMENT_STEP PVR_FRAME_CHUNK_MIN

struct quantum {
	unsigned int left; /* fragments that may still be sent */
	uint64_t bytes;
	uint64_t payload, messages; /* sent, and read */
	bool sent; /* a fragment was sent */
};

enum step {
	STEP_NEXT,
	STEP_STOP, /* idle, waiting, or the queue pair has failed */
};

/* ------------------------------------------------------------------- the route */

/* Return: number of in-flight WRs that were sent, in whole or in part. */
static uint64_t inflight_sent(const struct pvr_pipe_sq *sq)
{
	return sq->cursor + (sq->sent > sq->qp->sq_offset);
}

/* Return: whether a connection is up. */
static bool find_route(struct pvr_pipe_sq *sq)
{
	struct pvr_route before = sq->route;
	struct pvr_qp *qp = sq->qp;

	if (pvr_pipe_is_routed(sq))
		return true;
	if (!pvr_link_route(qp->path_host, qp->qpn, pvr_dscp_of(qp->attr.ah_attr.traffic_class),
			    &sq->route)) {
		sq->route.generation = 0;
		sq->route.host = qp->path_host;
		return false;
	}
	sq->route.host = qp->path_host;
	if (before.host != qp->path_host || !sq->flow)
		sq->flow = pvr_flow_get_host(qp->adapter, qp->path_host);
	if (sq->flow)
		__atomic_store_n(&sq->flow->kind, sq->route.kind, __ATOMIC_RELAXED);
	/* The connection has changed: requests sent on the last one may be lost. */
	if (inflight_sent(sq))
		pvr_host_count_retransmits(qp->path_host, inflight_sent(sq));
	pvr_pipe_rewind(sq);
	return true;
}

/* ------------------------------------------------------------------------ waiting */

static enum step wait_for_answers(struct pvr_pipe_sq *sq)
{
	pvr_qp_set_wait(sq->qp, PVR_QP_WAIT_ACKS);
	return STEP_STOP;
}

static enum step wait_for_link(struct pvr_pipe_sq *sq, bool down)
{
	sq->down = down;
	pvr_qp_set_wait(sq->qp, PVR_QP_WAIT_CONN);
	return STEP_STOP;
}

/* Other queue pairs share the connection, so its state is not read again. */
static enum step not_sent(struct pvr_pipe_sq *sq, enum pvr_sent why)
{
	if (why == PVR_SENT_FAILED)
		return STEP_STOP;
	return wait_for_link(sq, why == PVR_SENT_DOWN);
}

/*
 * A request fails after those before it have completed. Until then the guest may change
 * it.
 */
static enum step fail(struct pvr_pipe_sq *sq, uint32_t i, const struct pvr_send_wqe *wqe,
		      enum pvrdma_wc_status status, const char *why)
{
	if (i)
		return wait_for_answers(sq);
	pvr_requester_fail(sq->qp, wqe, status, why);
	return STEP_STOP;
}

/* ------------------------------------------------------------------------ frames */

static const uint8_t wire_ops[PVR_OPCODES] = {
	[PVRDMA_WR_SEND] = PVR_FRAME_OP_SEND,
	[PVRDMA_WR_SEND_WITH_IMM] = PVR_FRAME_OP_SEND_IMM,
	[PVRDMA_WR_SEND_WITH_INV] = PVR_FRAME_OP_SEND_INV,
	[PVRDMA_WR_RDMA_WRITE] = PVR_FRAME_OP_WRITE,
	[PVRDMA_WR_RDMA_WRITE_WITH_IMM] = PVR_FRAME_OP_WRITE_IMM,
	[PVRDMA_WR_RDMA_READ] = PVR_FRAME_OP_READ,
	[PVRDMA_WR_ATOMIC_CMP_AND_SWP] = PVR_FRAME_OP_CMP_SWAP,
	[PVRDMA_WR_ATOMIC_FETCH_AND_ADD] = PVR_FRAME_OP_FETCH_ADD,
	[PVR_WR_ATOMIC_WRITE] = PVR_FRAME_OP_ATOMIC_WRITE,
	[PVR_WR_FLUSH] = PVR_FRAME_OP_FLUSH,
};

/* A fragment of a message. */
struct fragment {
	const struct pvr_send_wqe *wqe;
	const struct pvr_opcode *op;
	const struct pvr_sg *sg;
	uint32_t psn, psns;
	uint64_t offset;
	uint32_t len;
	bool last;
};

static void fill_atomic_write(struct pvr_frame_request *frame, const struct pvrdma_sq_wqe_hdr *hdr)
{
	struct pvr_wqe_atomic_write write;

	memcpy(&write, &hdr->wr, sizeof(write));
	frame->addr = htole64(write.addr);
	frame->rkey = htole32(write.rkey);
	frame->swap = htole64(write.value);
}

static void fill_flush(struct pvr_frame_request *frame, const struct pvrdma_sq_wqe_hdr *hdr)
{
	struct pvr_wqe_flush flush;

	memcpy(&flush, &hdr->wr, sizeof(flush));
	frame->addr = htole64(flush.addr);
	frame->rkey = htole32(flush.rkey);
	frame->compare_add = htole64(flush.length);
	frame->swap = htole64(flush.placement | (uint64_t)flush.level << 8);
}

static void fill_operands(struct pvr_frame_request *frame, const struct fragment *fragment)
{
	const struct pvrdma_sq_wqe_hdr *hdr = &fragment->wqe->hdr;
	uint32_t key = htole32(hdr->ex.invalidate_rkey);

	switch (fragment->op->kind) {
	case PVR_OP_ATOMIC:
		frame->addr = htole64(hdr->wr.atomic.remote_addr);
		frame->rkey = htole32(hdr->wr.atomic.rkey);
		frame->compare_add = htole64(hdr->wr.atomic.compare_add);
		frame->swap = htole64(hdr->wr.atomic.swap);
		break;
	case PVR_OP_FLUSH:
		fill_flush(frame, hdr);
		break;
	case PVR_OP_ATOMIC_WRITE:
		fill_atomic_write(frame, hdr);
		break;
	case PVR_OP_WRITE:
	case PVR_OP_READ:
		frame->addr = htole64(hdr->wr.rdma.remote_addr);
		frame->rkey = htole32(hdr->wr.rdma.rkey);
		break;
	default:
		break;
	}
	if (fragment->op->imm)
		memcpy(frame->imm, &hdr->ex.imm_data, sizeof(frame->imm));
	else if (hdr->opcode == PVRDMA_WR_SEND_WITH_INV)
		memcpy(frame->imm, &key, sizeof(frame->imm));
}

static uint8_t flags_of(const struct pvr_qp *qp, const struct fragment *fragment)
{
	uint8_t flags = 0;

	if (fragment->wqe->hdr.send_flags & PVR_SEND_SOLICITED)
		flags |= PVR_REQUEST_F_SOLICITED;
	if (fragment->last)
		flags |= PVR_REQUEST_F_LAST;
	if (qp->type == PVR_QPT_UC)
		flags |= PVR_REQUEST_F_UC;
	if (qp->xrc_role)
		flags |= PVR_REQUEST_F_XRC;
	return flags;
}

/* Return: false if the source GID was removed. */
static bool fill_request(struct pvr_frame_request *frame, const struct pvr_qp *qp,
			 const struct fragment *fragment)
{
	const struct pvr_ah_attr *ah = &qp->attr.ah_attr;
	const struct pvr_gid_entry *sgid = pvr_gid_get(qp->adapter, ah->sgid_index);

	if (!sgid)
		return false;
	*frame = (struct pvr_frame_request){
		.frame.type = PVR_FRAME_REQUEST,
		.frame.flags = flags_of(qp, fragment),
		.op = wire_ops[fragment->wqe->hdr.opcode],
		.gid_type = qp->adapter->gid_type,
		.epoch = htole32(qp->epoch),
		.src_qpn = htole32(qp->qpn),
		.dst_qpn = htole32(qp->attr.dest_qp_num),
		.psn = htole32(fragment->psn),
		.psns = htole32(fragment->psns),
		.length = htole64(fragment->sg->total),
		.offset = htole64(fragment->offset),
		.chunk = htole32(fragment->len),
	};
	memcpy(frame->sgid, sgid->gid, sizeof(frame->sgid));
	memcpy(frame->dgid, ah->dgid, sizeof(frame->dgid));
	if (qp->xrc_role)
		frame->srqn = htole32(fragment->wqe->hdr.reserved);
	fill_operands(frame, fragment);
	return true;
}

static void capture(const struct pvr_qp *qp, const struct fragment *fragment)
{
	struct pvr_req_src from = { .qpn = qp->qpn, .psn = fragment->psn };
	struct pvr_request request = {
		.from = &from,
		.wqe = fragment->wqe,
		.op = fragment->op,
		.local = fragment->sg,
		.length = fragment->sg->total,
		.offset = fragment->offset,
		.chunk = fragment->len,
		.psns = fragment->psns,
		.last = fragment->last,
	};

	pvr_capture_request(qp, true, &request);
}

/* Of the payload that is sent; @expose_qp as in pvr_link_send(). */
static enum pvr_sent send_with(struct pvr_pipe_sq *sq, const struct fragment *fragment,
			       union pvr_any_frame *any, const struct pvr_sg *payload,
			       const struct pvr_qp *expose_qp)
{
	return pvr_link_send(&sq->route, sq->qp->adapter->fabric, any, sizeof(any->request),
			     expose_qp, payload, payload ? fragment->offset : 0,
			     payload ? fragment->len : 0);
}

/*
 * Ask the responder's daemon for the error of the message, instead of sending the message. If it
 * does not allow that, a NAK fails the requester alone. There is no other request in flight.
 */
static enum pvr_sent send_fault(struct pvr_pipe_sq *sq, const struct fragment *fragment,
				union pvr_any_frame *any)
{
	struct pvr_flips *flips = sq->qp->flips;

	if (!sq->route.has_fault) {
		flips->asked = PVR_FLIPS_REFUSED;
		pvr_requester_fail(sq->qp, fragment->wqe, flips->far_status,
				   "a fault of the operator (pvrdmactl fault)");
		return PVR_SENT_FAILED;
	}
	flips->asked = PVR_FLIPS_ASKED;
	pvr_pipe_fault_fill(&any->request, flips->far_status);
	return send_with(sq, fragment, any, NULL, NULL);
}

/* Return: whether the fragment is that of a message with an error at the responder. */
static bool fails_far(const struct pvr_pipe_sq *sq, const struct fragment *fragment)
{
	struct pvr_flips *flips = sq->qp->flips;

	if (!flips || !flips->far_status || fragment->offset)
		return false;
	if (sq->route.has_fault || !pvr_pipe_fault_is_of_recv(flips->far_status))
		return true;
	flips->asked = PVR_FLIPS_REFUSED;
	return false;
}

/* The frame of a request with qp->flips, or with a capture, or both. */
static pvr_noinline enum pvr_sent
send_observed(struct pvr_pipe_sq *sq, const struct fragment *fragment, union pvr_any_frame *any,
	      const struct pvr_sg *payload, const struct pvr_qp *expose_qp)
{
	const struct pvr_flips *flips = sq->qp->flips;
	uint8_t *copy = NULL;
	struct pvr_sg damaged;
	enum pvr_sent sent;

	if (fails_far(sq, fragment))
		return send_fault(sq, fragment, any);
	if (flips && payload && fragment->len)
		copy = pvr_flips_copy(flips, payload, fragment->offset, fragment->len);
	if (copy) {
		/* The other host's NIC cannot read the copy. */
		pvr_flips_build(&damaged, payload, fragment->offset, copy);
		sent = send_with(sq, fragment, any, &damaged, NULL);
		free(copy);
	} else {
		sent = send_with(sq, fragment, any, payload, expose_qp);
	}
	if (sent == PVR_SENT && pvr_captures(sq->qp->adapter))
		capture(sq->qp, fragment);
	return sent;
}

static enum pvr_sent send_frame(struct pvr_pipe_sq *sq, const struct fragment *fragment)
{
	const struct pvr_sg *payload = fragment->op->local ? NULL : fragment->sg;
	/*
	 * A UC request is complete when it is sent, so its payload cannot stay exposed.
	 */
	const struct pvr_qp *expose_qp = sq->qp->type == PVR_QPT_RC ? sq->qp : NULL;
	union pvr_any_frame any;

	if (!fill_request(&any.request, sq->qp, fragment))
		return PVR_SENT_DOWN;
	if (sq->qp->adapter->engine->observed)
		return send_observed(sq, fragment, &any, payload, expose_qp);
	return send_with(sq, fragment, &any, payload, expose_qp);
}

/*
 * Return: whether byte @done of the message at the cursor was sent before: after that, the
 * responder may have executed any part of it.
 */
static bool was_sent(const struct pvr_pipe_sq *sq, uint64_t done)
{
	uint32_t n = sq->qp->sq_inflight;

	return sq->cursor < n && (sq->cursor + 1 < n || sq->complete || done < sq->highest_sent);
}

/*
 * Return: the bytes of the fragment from byte @done on, at most. A responder without
 * PVR_HELLO_F_TAIL drops a fragment that it has executed in part, and its position in a READ
 * stays behind. So what was sent before is sent in parts whose ends are those of all fragments.
 */
static uint32_t max_fragment(const struct pvr_pipe_sq *sq, uint64_t done)
{
	uint32_t chunk = sq->route.chunk; /* 0: no connection, the fragment is lost */
	uint32_t max = sq->qp->adapter->quantum_bytes;

	if (chunk && chunk < max)
		max = chunk;
	if (!sq->route.has_tail && was_sent(sq, done) && max > FRAGMENT_STEP - done % FRAGMENT_STEP)
		max = FRAGMENT_STEP - done % FRAGMENT_STEP;
	return max;
}

/* The next fragment of a message, from byte @done on. */
static struct fragment next_fragment(const struct pvr_pipe_sq *sq, const struct pvr_send_wqe *wqe,
				     const struct pvr_sg *sg, uint64_t done)
{
	uint64_t left = sg->total - done;
	uint32_t max = max_fragment(sq, done);
	struct fragment fragment = {
		.wqe = wqe,
		.op = pvr_opcode(wqe->hdr.opcode),
		.sg = sg,
		.psns = pvr_psns(sq->qp, sg->total),
		.offset = done,
		.len = left < max ? (uint32_t)left : max,
	};

	fragment.last = fragment.len == left;
	/* The operands are in the header; the response has the value. */
	if (fragment.op->kind == PVR_OP_ATOMIC) {
		fragment.len = 0;
		fragment.last = true;
	}
	return fragment;
}

static void count_fragment(struct quantum *quantum, const struct fragment *fragment)
{
	quantum->bytes += fragment->len;
	quantum->payload += fragment->len;
	quantum->messages += fragment->last;
	quantum->left--;
	quantum->sent = true;
}

/*
 * Return: whether the bytes of the fragment of request @i are present: those that it sends, or
 * those that the response is stored to. Else the queue pair waits or fails.
 */
static bool is_present(struct pvr_pipe_sq *sq, uint32_t i, const struct fragment *fragment)
{
	uint64_t left = fragment->sg->total - fragment->offset;
	enum pvr_page_state state = pvr_requester_page_fault(sq->qp, fragment->sg, fragment->offset,
							     fragment->last ? left : fragment->len);

	if (state == PVR_PAGE_REFUSED)
		fail(sq, i, fragment->wqe, PVRDMA_WC_LOC_PROT_ERR,
		     "the guest has no page for an SGE on demand");
	return state == PVR_PAGE_FOUND;
}

/* ------------------------------------------------------------------ reliable, RC */

static void fragment_sent(struct pvr_pipe_sq *sq, const struct fragment *fragment)
{
	uint64_t end = fragment->offset + fragment->len;

	sq->last_psn = fragment->psn;
	sq->last_offset = fragment->offset;
	if (sq->cursor + 1 == sq->qp->sq_inflight) {
		if (end > sq->highest_sent)
			sq->highest_sent = end;
		sq->complete |= fragment->last;
	}
	if (!fragment->last) {
		sq->sent = end;
		return;
	}
	sq->cursor++;
	sq->sent = 0;
}

static enum step sent_rc(struct pvr_pipe_sq *sq, const struct fragment *fragment,
			 struct quantum *quantum)
{
	fragment_sent(sq, fragment);
	count_fragment(quantum, fragment);
	/* One fragment is enough to detect whether the responder exists now. */
	return sq->probing ? wait_for_answers(sq) : STEP_NEXT;
}

/* The peer's pvrdmad may be too old for the operation. */
static bool peer_has(const struct pvr_pipe_sq *sq, const struct pvr_opcode *op)
{
	if (sq->qp->xrc_role && !sq->route.has_xrc)
		return false;
	return op->kind < PVR_OP_ATOMIC_WRITE || sq->route.has_atomic_write;
}

static const char too_old[] = "the peer's pvrdmad has no ATOMIC WRITE, FLUSH or XRC: update it";

/* Sends the next fragment of the in-flight WR at the cursor. */
static enum step go_on(struct pvr_pipe_sq *sq, struct quantum *quantum)
{
	const struct pvr_inflight *inflight = pvr_inflight(sq, sq->cursor);
	static const char changed[] = "WQE was changed after it was posted";
	struct pvr_qp *qp = sq->qp;
	enum pvrdma_wc_status status;
	const struct pvr_opcode *op;
	struct pvr_send_wqe wqe PVR_UNINITIALIZED;
	enum pvr_sent sent;
	struct fragment fragment;
	struct pvr_sg sg PVR_UNINITIALIZED;

	if (inflight->kind == PVR_OP_LOCAL) {
		sq->cursor++;
		return STEP_NEXT;
	}
	pvr_wq_fetch_send_at(&qp->sq, qp->sq.head + sq->cursor, &wqe);
	op = pvr_opcode(wqe.hdr.opcode);
	if (op->kind != inflight->kind || !pvr_may_post(qp, op))
		return fail(sq, sq->cursor, &wqe, PVRDMA_WC_LOC_QP_OP_ERR, changed);
	if (!peer_has(sq, op))
		return fail(sq, sq->cursor, &wqe, PVRDMA_WC_REM_INV_REQ_ERR, too_old);
	status = pvr_prepare(&sg, qp, &wqe, op, 0);
	if (status == PVRDMA_WC_SUCCESS && sg.total != inflight->length)
		status = PVRDMA_WC_LOC_QP_OP_ERR;
	if (status != PVRDMA_WC_SUCCESS)
		return fail(sq, sq->cursor, &wqe, status, changed);
	fragment = next_fragment(sq, &wqe, &sg, sq->sent);
	fragment.psn = inflight->psn;
	if (!is_present(sq, sq->cursor, &fragment))
		return STEP_STOP;
	sent = send_frame(sq, &fragment);
	return sent == PVR_SENT ? sent_rc(sq, &fragment, quantum) : not_sent(sq, sent);
}

static void begin_inflight(struct pvr_pipe_sq *sq, const struct pvr_inflight *inflight)
{
	struct pvr_qp *qp = sq->qp;

	*pvr_inflight(sq, qp->sq_inflight) = *inflight;
	if (!qp->sq_inflight && qp->attr.timeout)
		sq->progress = pvr_now(qp->adapter->engine);
	qp->sq_inflight++;
	qp->sq_psn = (qp->sq_psn + inflight->psns) & PVR_PSN_MASK;
	sq->reads += pvr_inflight_has_response(inflight);
	sq->highest_sent = 0;
	sq->complete = false;
}

static enum step local_step(struct pvr_pipe_sq *sq, const struct pvr_send_wqe *wqe,
			    struct quantum *quantum)
{
	struct pvr_qp *qp = sq->qp;

	/* IBTA 10.6.5: earlier requests may still need the key. */
	if (wqe->hdr.opcode == PVRDMA_WR_LOCAL_INV && qp->sq_inflight)
		return wait_for_answers(sq);
	if (pvr_wqe_is_inline(&qp->sq, wqe) || wqe->hdr.num_sge > qp->sq.max_sge)
		return fail(sq, qp->sq_inflight, wqe, PVRDMA_WC_LOC_QP_OP_ERR,
			    "local operation with SGEs or inline data");
	if (pvr_local_op(qp, wqe, &quantum->bytes))
		return fail(sq, qp->sq_inflight, wqe, PVRDMA_WC_MW_BIND_ERR,
			    "a region or window could not be bound, registered or invalidated");
	quantum->left--;
	if (!qp->sq_inflight) {
		pvr_send_complete(qp, wqe, PVRDMA_WC_SUCCESS, 0);
		return STEP_NEXT;
	}
	begin_inflight(sq, &(struct pvr_inflight){ .psn = qp->sq_psn, .kind = PVR_OP_LOCAL });
	sq->complete = true;
	sq->cursor++;
	return STEP_NEXT;
}

/* Return: true if an in-flight WR delays the start of @wqe. */
static bool is_held_up(struct pvr_pipe_sq *sq, const struct pvr_send_wqe *wqe,
		       const struct pvr_opcode *op)
{
	const struct pvr_qp *qp = sq->qp;

	if (!qp->sq_inflight)
		return false;
	if ((wqe->hdr.send_flags & PVR_SEND_FENCE) && sq->reads)
		return true;
	if (op->local && sq->reads && sq->reads >= qp->attr.max_rd_atomic)
		return true;
	return pvr_psn_distance(pvr_inflight(sq, 0)->psn, qp->sq_psn) >= PVR_PSNS_HALF;
}

/* Starts the request behind the in-flight WRs. It exists. */
static enum step begin_rc(struct pvr_pipe_sq *sq, struct pvr_send_wqe *wqe, struct quantum *quantum)
{
	const struct pvr_opcode *op = pvr_opcode(wqe->hdr.opcode);
	struct pvr_qp *qp = sq->qp;
	uint64_t done = qp->sq_inflight ? 0 : qp->sq_offset;
	enum pvrdma_wc_status status;
	enum pvr_sent sent;
	struct fragment fragment;
	struct pvr_sg sg PVR_UNINITIALIZED;

	if (!pvr_may_post(qp, op))
		return fail(sq, qp->sq_inflight, wqe, PVRDMA_WC_LOC_QP_OP_ERR,
			    "send with an unknown opcode");
	if (is_held_up(sq, wqe, op))
		return wait_for_answers(sq);
	if (op->kind == PVR_OP_LOCAL)
		return local_step(sq, wqe, quantum);
	if (!peer_has(sq, op))
		return fail(sq, qp->sq_inflight, wqe, PVRDMA_WC_REM_INV_REQ_ERR, too_old);
	status = pvr_prepare(&sg, qp, wqe, op, done);
	if (status != PVRDMA_WC_SUCCESS)
		return fail(sq, qp->sq_inflight, wqe, status, pvr_prepare_why(qp, op, status));
	fragment = next_fragment(sq, wqe, &sg, done);
	fragment.psn = qp->sq_psn;
	if (!is_present(sq, qp->sq_inflight, &fragment))
		return STEP_STOP;
	/* The request is in flight only if its fragment was sent. */
	sent = send_frame(sq, &fragment);
	if (sent != PVR_SENT)
		return not_sent(sq, sent);
	begin_inflight(sq, &(struct pvr_inflight){
				   .psn = fragment.psn,
				   .psns = fragment.psns,
				   .length = sg.total,
				   .kind = op->kind,
			   });
	return sent_rc(sq, &fragment, quantum);
}

/* ---------------------------------------------------------------- unreliable, UC */

/* IBTA 9.8.2: a UC request completes when it is sent, with or without effect. */
static enum step begin_uc(struct pvr_pipe_sq *sq, struct pvr_send_wqe *wqe, struct quantum *quantum)
{
	const struct pvr_opcode *op = pvr_opcode(wqe->hdr.opcode);
	enum pvr_sent sent = PVR_SENT_DOWN;
	struct pvr_qp *qp = sq->qp;
	enum pvrdma_wc_status status;
	struct fragment fragment;
	struct pvr_sg sg PVR_UNINITIALIZED;

	if (!pvr_may_post(qp, op))
		return fail(sq, 0, wqe, PVRDMA_WC_LOC_QP_OP_ERR, "send with an unknown opcode");
	if (op->kind == PVR_OP_LOCAL)
		return local_step(sq, wqe, quantum);
	status = pvr_prepare(&sg, qp, wqe, op, qp->sq_offset);
	if (status != PVRDMA_WC_SUCCESS)
		return fail(sq, 0, wqe, status, pvr_prepare_why(qp, op, status));
	fragment = next_fragment(sq, wqe, &sg, qp->sq_offset);
	fragment.psn = qp->sq_psn;
	if (!is_present(sq, 0, &fragment))
		return STEP_STOP;
	if (!sq->down)
		sent = send_frame(sq, &fragment);
	if (sent == PVR_SENT_BLOCKED)
		return not_sent(sq, sent);
	count_fragment(quantum, &fragment);
	if (!fragment.last) {
		qp->sq_offset += fragment.len;
		return STEP_NEXT;
	}
	qp->sq_psn = (qp->sq_psn + fragment.psns) & PVR_PSN_MASK;
	pvr_pipe_count(sq, op->kind, sg.total, sent == PVR_SENT);
	pvr_send_complete(qp, wqe, PVRDMA_WC_SUCCESS, sg.total);
	return STEP_NEXT;
}

/* ------------------------------------------------------------------------- a quantum */

/* While draining, only a request that was started on another path may start. */
static bool may_begin(const struct pvr_qp *qp)
{
	return !qp->sq_draining || (!qp->sq_inflight && qp->sq_offset);
}

static enum step begin(struct pvr_pipe_sq *sq, struct quantum *quantum)
{
	struct pvr_qp *qp = sq->qp;
	int avail = pvr_wq_avail(&qp->sq);
	struct pvr_send_wqe wqe PVR_UNINITIALIZED;

	if (avail < (int)qp->sq_inflight) {
		pvr_qp_fail(qp, PVR_EVENT_QP_FATAL, "its SQ producer index is out of range");
		return STEP_STOP;
	}
	if (avail == (int)qp->sq_inflight)
		return STEP_STOP;
	if (!may_begin(qp) || qp->sq_inflight >= sq->window)
		return wait_for_answers(sq);
	pvr_wq_fetch_send_at(&qp->sq, qp->sq.head + qp->sq_inflight, &wqe);
	return qp->type == PVR_QPT_UC ? begin_uc(sq, &wqe, quantum) : begin_rc(sq, &wqe, quantum);
}

static bool has_budget(const struct pvr_pipe_sq *sq, const struct quantum *quantum)
{
	return quantum->left && quantum->bytes < sq->qp->adapter->quantum_bytes;
}

static enum pvr_quantum send_some(struct pvr_pipe_sq *sq, struct quantum *quantum)
{
	struct pvr_qp *qp = sq->qp;
	enum step result;

	while (has_budget(sq, quantum)) {
		result = sq->cursor < qp->sq_inflight ? go_on(sq, quantum) : begin(sq, quantum);
		if (!pvr_pipe_is_sending(qp))
			return PVR_QUANTUM_MORE;
		if (qp->sq_draining && !qp->sq_inflight && !qp->sq_offset) {
			pvr_requester_drained(qp);
			return PVR_QUANTUM_DONE;
		}
		if (result == STEP_STOP)
			return PVR_QUANTUM_DONE;
	}
	return PVR_QUANTUM_MORE;
}

/* Queue pairs that have sent nothing in this quantum resume first. */
static void enlist(struct pvr_pipe_sq *sq, const struct quantum *quantum)
{
	struct pvr_pipe_sq_lists *hosts = &sq->qp->adapter->hosts;

	if (sq->qp->wait == PVR_QP_WAIT_CONN)
		pvr_pipe_enlist(sq, quantum->sent ? &hosts->blocked : &hosts->starved);
	else
		pvr_pipe_enlist(sq, sq->qp->sq_inflight ? &hosts->in_flight : NULL);
}

/* The own link is down or the peer has gone for good: the request gets no response. */
static enum pvr_quantum no_link(struct pvr_pipe_sq *sq)
{
	struct pvr_qp *qp = sq->qp;
	struct pvr_send_wqe wqe PVR_UNINITIALIZED;

	if (!pvr_requester_has_request(qp))
		return PVR_QUANTUM_DONE;
	pvr_pipe_rewind(sq);
	pvr_wq_fetch_send_hdr(&qp->sq, &wqe);
	pvr_requester_no_response(qp, &wqe);
	/* The link may come up soon. */
	pvr_requester_ask_again(qp);
	return PVR_QUANTUM_DONE;
}

/* With a request before it, the operation waits for that one's responses. */
static bool is_local_next(const struct pvr_qp *qp)
{
	struct pvr_send_wqe wqe PVR_UNINITIALIZED;

	if (qp->sq_inflight || qp->sq_offset || qp->sq_draining || pvr_wq_avail(&qp->sq) <= 0)
		return false;
	pvr_wq_fetch_send_hdr(&qp->sq, &wqe);
	return pvr_opcode(wqe.hdr.opcode)->kind == PVR_OP_LOCAL;
}

/* Local operations have no responder. Return: whether a request is the next, which has one. */
static bool run_local(struct pvr_pipe_sq *sq, struct quantum *quantum)
{
	while (is_local_next(sq->qp))
		if (!has_budget(sq, quantum) || begin(sq, quantum) != STEP_NEXT)
			return false;
	return true;
}

/*
 * The guest has reached its limit, or the host has no memory. A reliable request is retried
 * as one without a response, and fails after the last try. UC has no retries: it waits.
 */
static void no_memory(struct pvr_qp *qp)
{
	struct pvr_send_wqe wqe PVR_UNINITIALIZED;

	if (qp->type != PVR_QPT_RC) {
		pvr_requester_wait(qp);
		return;
	}
	if (!pvr_requester_has_request(qp))
		return;
	pvr_wq_fetch_send_hdr(&qp->sq, &wqe);
	pvr_requester_no_response(qp, &wqe);
}

enum pvr_quantum pvr_pipe_run_sq(struct pvr_qp *qp, unsigned int max)
{
	struct quantum quantum = { .left = max };
	enum pvr_quantum result = PVR_QUANTUM_DONE;
	struct pvr_pipe_sq *sq;

	if (!qp->pipe_sq)
		qp->pipe_sq = pvr_pipe_sq_new(qp);
	sq = qp->pipe_sq;
	if (!sq) {
		no_memory(qp);
		return PVR_QUANTUM_DONE;
	}
	/*
	 * pvr_host_resume() takes this adapter's lock, so from here on it runs after this
	 * quantum.
	 */
	__atomic_store_n(&qp->adapter->hosts.any, true, __ATOMIC_SEQ_CST);
	if ((!qp->adapter->link_up || qp->peer_gone) && qp->type == PVR_QPT_RC)
		return run_local(sq, &quantum) ? no_link(sq) : PVR_QUANTUM_MORE;
	sq->down = !qp->adapter->link_up || !qp->path_host || !find_route(sq);
	if (sq->gap)
		pvr_pipe_rewind(sq);
	if (!sq->down || qp->type != PVR_QPT_RC)
		result = send_some(sq, &quantum);
	else if (!run_local(sq, &quantum))
		result = PVR_QUANTUM_MORE;
	else if (qp->sq_inflight || pvr_requester_has_request(qp))
		wait_for_link(sq, true);
	if (qp->adapter->shaper)
		pvr_shaper_sent(qp->adapter->shaper, quantum.payload, quantum.messages);
	/* For UC @sent includes lost fragments. */
	if (quantum.sent && sq->route.generation)
		pvr_link_flush(&sq->route);
	/* The queue pair may have failed. */
	if (!pvr_pipe_is_sending(qp))
		return result;
	pvr_pipe_start_timer(sq);
	enlist(sq, &quantum);
	return result;
}

/* Local operations in flight are executed, and cannot be repeated. */
static uint32_t local_operations(struct pvr_pipe_sq *sq)
{
	uint32_t i, n = 0;

	for (i = 0; i < sq->qp->sq_inflight; i++)
		n += pvr_inflight(sq, i)->kind == PVR_OP_LOCAL;
	return n;
}

/*
 * The peer is now on this host, or nowhere. In-flight WRs start again on the new path. The peer
 * does not execute their executed parts again.
 */
bool pvr_host_detach(struct pvr_qp *qp)
{
	struct pvr_pipe_sq *sq = qp->pipe_sq;

	if (!sq)
		return true;
	if (!qp->peer_adapter && qp->sq_inflight)
		return false;
	if (qp->sq_inflight)
		qp->sq_psn = pvr_inflight(sq, 0)->psn;
	qp->sq_local_done += local_operations(sq);
	pvr_timer_cancel(&qp->adapter->timers, &qp->timer);
	pvr_ext_dma_revoke_qp(qp);
	pvr_pipe_sq_free(qp);
	return true;
}
