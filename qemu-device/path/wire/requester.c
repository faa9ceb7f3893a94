// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * The requester of the wire path: sends packets, a window of them at a time.
 *
 * Source: IBTA volume 1, 9.7.2 (PSNs), 9.7.6 (timeouts), 9.8.2 (UC).
 *
 * DOC: packets in flight
 *
 * - A request stays in its ring slot until it is complete, and is fetched and checked again
 *   whenever packets of it are sent.
 * - The window counts PSNs. A READ has a PSN for each packet of its data. It is asked for in
 *   parts of PVR_ETH_READ_PACKETS, one at a time, so no peer sends more at once.
 * - A part that is asked for again ends where the first request for it has ended: a responder
 *   that has not got the next part's request would otherwise stay behind.
 */
#include "path/wire/internal.h"

#include <string.h>

#include "core/charge.h"
#include "rdma/completer.h"
#include "rdma/page_fault.h"
#include "rdma/cq.h"
#include "rdma/qp.h"
#include "rdma/sched.h"
#include "rdma/shaper.h"

struct burst {
	unsigned int left; /* requests that may still be fetched */
	uint64_t bytes;
	uint64_t payload, messages; /* sent, and read */
	struct pvr_eth_last last;
};

enum burst_step {
	STEP_NEXT,
	STEP_STOP, /* idle, waiting, or the queue pair has failed */
};

/* -------------------------------------------------------------------------- its memory */

static size_t sq_bytes(uint32_t size)
{
	return sizeof(struct pvr_eth_sq) + size * sizeof(struct pvr_eth_inflight);
}

static struct pvr_eth_sq *sq_get(struct pvr_qp *qp)
{
	uint32_t size = qp->sq.count < PVR_ETH_INFLIGHT_MAX ? qp->sq.count : PVR_ETH_INFLIGHT_MAX;
	struct pvr_eth_sq *sq = pvr_eth_sq(qp);

	if (sq)
		return sq;
	/* UC has no requests in flight. */
	if (qp->type == PVR_QPT_UC)
		size = 1;
	sq = pvr_charge_alloc(qp->adapter, sq_bytes(size));
	if (!sq)
		return NULL;
	sq->qp = qp;
	sq->peer = pvr_eth_peer_of(qp->adapter->wire, qp->attr.ah_attr.dgid);
	sq->size = size;
	sq->window = PVR_ETH_WINDOW_FIRST;
	sq->una = qp->sq_psn;
	sq->next = qp->sq_psn;
	sq->high = qp->sq_psn;
	qp->adapter->wire->qps[qp->handle].sq = sq;
	return sq;
}

void pvr_eth_stop(struct pvr_qp *qp)
{
	struct pvr_eth_sq *sq = pvr_eth_sq(qp);

	qp->sq_inflight = 0;
	if (!sq)
		return;
	sq->cursor = 0;
	sq->reads = 0;
	sq->has_gap = false;
	sq->timed_at = 0;
	sq->probes = 0;
}

void pvr_eth_close(struct pvr_qp *qp)
{
	struct pvr_eth_sq *sq = pvr_eth_sq(qp);

	pvr_eth_stop(qp);
	if (sq)
		pvr_charge_free(qp->adapter, sq, sq_bytes(sq->size));
	qp->adapter->wire->qps[qp->handle].sq = NULL;
}

void pvr_eth_count_message(struct pvr_qp *qp, uint8_t kind, uint64_t length)
{
	struct pvr_eth_peer *peer = pvr_eth_sq(qp)->peer;

	if (kind == PVR_OP_LOCAL)
		return;
	pvr_count(qp, PVR_STAT_TX_MSGS, 1);
	pvr_count(qp, PVR_STAT_TX_BYTES, length);
	pvr_count(qp, PVR_STAT_TX_READS, kind == PVR_OP_READ);
	pvr_count(qp, PVR_STAT_TX_ATOMICS, kind == PVR_OP_ATOMIC);
	pvr_stat_add(&peer->messages, 1);
	pvr_stat_add(&peer->bytes, length);
}

/* ------------------------------------------------------------------------------ waiting */

static enum burst_step wait_for_acks(struct pvr_eth_sq *sq)
{
	pvr_qp_set_wait(sq->qp, PVR_QP_WAIT_ACKS);
	return STEP_STOP;
}

static enum burst_step wait_for_room(struct pvr_eth_sq *sq)
{
	sq->is_full = true;
	pvr_requester_await(sq->qp, PVR_ETH_FULL_NS);
	return STEP_STOP;
}

/* A request fails after those before it have completed. */
static enum burst_step fail(struct pvr_eth_sq *sq, uint32_t i, const struct pvr_send_wqe *wqe,
			    enum pvrdma_wc_status status, const char *why)
{
	if (i)
		return wait_for_acks(sq);
	pvr_requester_fail(sq->qp, wqe, status, why);
	return STEP_STOP;
}

/* Bytes of @sg at @offset are absent, or were unplugged. */
static enum burst_step no_memory_at(struct pvr_eth_sq *sq, uint32_t i,
				    const struct pvr_send_wqe *wqe, const struct pvr_sg *sg,
				    uint64_t offset)
{
	uint64_t left = sg->total - offset;

	left = left < PVR_QUANTUM_BYTES ? left : PVR_QUANTUM_BYTES;
	if (pvr_requester_page_fault(sq->qp, sg, offset, left) != PVR_PAGE_ABSENT)
		return fail(sq, i, wqe, PVRDMA_WC_LOC_PROT_ERR, "memory of a request is not there");
	sq->progress = pvr_now(sq->qp->adapter->engine) + PVR_PAGE_WAIT_MAX_NS;
	return STEP_STOP;
}

/* ------------------------------------------------------------------------- reliable, RC */

static void sent(struct pvr_eth_sq *sq, uint32_t psns)
{
	if (pvr_eth_distance(sq->una, sq->next) + psns > pvr_eth_distance(sq->una, sq->high))
		sq->high = pvr_eth_psn_add(sq->next, psns);
	sq->next = pvr_eth_psn_add(sq->next, psns);
}

/* A further part of a READ waits until the part before it has come. */
static bool must_wait(const struct pvr_eth_sq *sq, const struct pvr_eth_message *message)
{
	uint32_t begun = pvr_eth_distance(message->psn, sq->next);

	return message->op->kind == PVR_OP_READ && begun && sq->una != sq->next;
}

/* Bytes of @psns packets of the message from @next on. */
static uint64_t payload_of(const struct pvr_eth_sq *sq, const struct pvr_eth_message *message,
			   uint32_t psns)
{
	uint64_t mtu = pvr_eth_mtu(sq->qp);
	uint64_t offset = pvr_eth_distance(message->psn, sq->next) * mtu, bytes = psns * mtu;

	return bytes < message->sg->total - offset ? bytes : message->sg->total - offset;
}

/* Packets of @psns have been sent. */
static void went(struct pvr_eth_sq *sq, const struct pvr_eth_message *message, uint32_t psns,
		 struct burst *burst)
{
	bool read = message->op->kind == PVR_OP_READ;

	burst->payload += payload_of(sq, message, psns);
	sent(sq, psns);
	burst->bytes += (uint64_t)pvr_eth_mtu(sq->qp) * (read ? 1 : psns);
}

/* Sends packets of a message until it is sent or the window is full. */
static enum burst_step send_packets(struct pvr_eth_sq *sq, const struct pvr_eth_message *message,
				    struct burst *burst)
{
	uint32_t end = pvr_eth_psn_add(message->psn, message->psns), psns;

	while (sq->next != end) {
		if (!pvr_eth_room(sq) || must_wait(sq, message))
			return wait_for_acks(sq);
		psns = pvr_eth_send_middles(sq, message, &burst->last);
		if (psns) {
			went(sq, message, psns, burst);
			continue;
		}
		switch (pvr_eth_send_one(sq, message, false, &psns, &burst->last)) {
		case PVR_ETH_FULL:
			return wait_for_room(sq);
		case PVR_ETH_FAULT:
			return no_memory_at(sq, sq->cursor, message->wqe, message->sg,
					    (uint64_t)pvr_eth_distance(message->psn, sq->next) *
						    pvr_eth_mtu(sq->qp));
		default:
			break;
		}
		went(sq, message, psns, burst);
	}
	burst->messages++;
	sq->cursor++;
	return STEP_NEXT;
}

/* Fetches request in flight @i again: the guest may have changed it. @message: refers to the others. */
static enum pvrdma_wc_status load(struct pvr_eth_sq *sq, uint32_t i, struct pvr_send_wqe *wqe,
				  struct pvr_sg *sg, struct pvr_eth_message *message)
{
	const struct pvr_eth_inflight *inflight = pvr_eth_inflight(sq, i);
	enum pvrdma_wc_status status;
	struct pvr_qp *qp = sq->qp;

	pvr_wq_fetch_send_at(&qp->sq, qp->sq.head + i, wqe);
	*message = (struct pvr_eth_message){
		.wqe = wqe,
		.op = pvr_opcode(wqe->hdr.opcode),
		.sg = sg,
		.psn = inflight->psn,
		.psns = inflight->psns,
	};
	if (message->op->kind != inflight->kind || !pvr_may_post(qp, message->op))
		return PVRDMA_WC_LOC_QP_OP_ERR;
	status = pvr_prepare(sg, qp, wqe, message->op, 0);
	if (status == PVRDMA_WC_SUCCESS && sg->total != inflight->length)
		status = PVRDMA_WC_LOC_QP_OP_ERR;
	return status;
}

/* Sends packets of the request in flight at the cursor. */
static enum burst_step go_on(struct pvr_eth_sq *sq, struct burst *burst)
{
	struct pvr_send_wqe wqe PVR_UNINITIALIZED;
	struct pvr_sg sg PVR_UNINITIALIZED;
	enum pvrdma_wc_status status;
	struct pvr_eth_message message;

	if (pvr_eth_inflight(sq, sq->cursor)->kind == PVR_OP_LOCAL) {
		sq->cursor++;
		return STEP_NEXT;
	}
	status = load(sq, sq->cursor, &wqe, &sg, &message);
	if (status != PVRDMA_WC_SUCCESS)
		return fail(sq, sq->cursor, &wqe, status, "WQE was changed after it was posted");
	burst->left--;
	return send_packets(sq, &message, burst);
}

static void begin_inflight(struct pvr_eth_sq *sq, const struct pvr_eth_inflight *inflight)
{
	struct pvr_qp *qp = sq->qp;

	if (!qp->sq_inflight) {
		sq->una = inflight->psn;
		sq->next = inflight->psn;
		sq->high = inflight->psn;
		sq->cursor = 0;
		sq->has_gap = false;
		sq->probes = 0;
		sq->timed_at = 0;
		sq->progress = pvr_now(qp->adapter->engine);
	}
	*pvr_eth_inflight(sq, qp->sq_inflight) = *inflight;
	qp->sq_inflight++;
	qp->sq_psn = pvr_eth_psn_add(qp->sq_psn, inflight->psns);
	sq->reads += pvr_eth_has_response(inflight);
}

static enum burst_step local_step(struct pvr_eth_sq *sq, const struct pvr_send_wqe *wqe,
				  struct burst *burst)
{
	struct pvr_qp *qp = sq->qp;

	/* IBTA 10.6.5: earlier requests may still need the key. */
	if (wqe->hdr.opcode == PVRDMA_WR_LOCAL_INV && qp->sq_inflight)
		return wait_for_acks(sq);
	burst->left--;
	if (pvr_wqe_is_inline(&qp->sq, wqe) || wqe->hdr.num_sge > qp->sq.max_sge)
		return fail(sq, qp->sq_inflight, wqe, PVRDMA_WC_LOC_QP_OP_ERR,
			    "local operation with SGEs or inline data");
	if (pvr_local_op(qp, wqe, &burst->bytes))
		return fail(sq, qp->sq_inflight, wqe, PVRDMA_WC_MW_BIND_ERR,
			    "a region or window could not be bound, registered or invalidated");
	if (!qp->sq_inflight) {
		pvr_send_complete(qp, wqe, PVRDMA_WC_SUCCESS, 0);
		return STEP_NEXT;
	}
	begin_inflight(sq, &(struct pvr_eth_inflight){ .psn = qp->sq_psn, .kind = PVR_OP_LOCAL });
	return STEP_NEXT;
}

/* Return: whether a request in flight delays the begin of @wqe. */
static bool is_held_up(struct pvr_eth_sq *sq, const struct pvr_send_wqe *wqe,
		       const struct pvr_opcode *op)
{
	const struct pvr_qp *qp = sq->qp;

	if (!qp->sq_inflight)
		return false;
	if ((wqe->hdr.send_flags & PVR_SEND_FENCE) && sq->reads)
		return true;
	if (op->local && sq->reads && sq->reads >= qp->attr.max_rd_atomic)
		return true;
	return pvr_eth_distance(sq->una, qp->sq_psn) >= PVR_ETH_PSNS_HALF / 2;
}

static enum burst_step begin_rc(struct pvr_eth_sq *sq, struct pvr_send_wqe *wqe,
				struct burst *burst)
{
	const struct pvr_opcode *op = pvr_opcode(wqe->hdr.opcode);
	struct pvr_sg sg PVR_UNINITIALIZED;
	enum pvrdma_wc_status status;
	struct pvr_qp *qp = sq->qp;
	struct pvr_eth_message message;

	if (!pvr_may_post(qp, op))
		return fail(sq, qp->sq_inflight, wqe, PVRDMA_WC_LOC_QP_OP_ERR,
			    "send with an unknown opcode");
	if (is_held_up(sq, wqe, op))
		return wait_for_acks(sq);
	if (op->kind == PVR_OP_LOCAL)
		return local_step(sq, wqe, burst);
	if (op->kind > PVR_OP_ATOMIC)
		return fail(sq, qp->sq_inflight, wqe, PVRDMA_WC_REM_INV_REQ_ERR,
			    "ATOMIC WRITE and FLUSH are not offered on the wire");
	status = pvr_prepare(&sg, qp, wqe, op, 0);
	if (status != PVRDMA_WC_SUCCESS)
		return fail(sq, qp->sq_inflight, wqe, status, pvr_prepare_why(qp, op, status));
	message = (struct pvr_eth_message){
		.wqe = wqe,
		.op = op,
		.sg = &sg,
		.psn = qp->sq_psn,
		.psns = op->kind == PVR_OP_ATOMIC ? 1 : pvr_psns(qp, sg.total),
	};
	begin_inflight(sq, &(struct pvr_eth_inflight){
				   .psn = message.psn,
				   .psns = message.psns,
				   .length = sg.total,
				   .kind = op->kind,
			   });
	burst->left--;
	return send_packets(sq, &message, burst);
}

/* ----------------------------------------------------------------------- unreliable, UC */

static enum burst_step send_unreliable(struct pvr_eth_sq *sq, const struct pvr_eth_message *message,
				       struct burst *burst)
{
	uint32_t mtu = pvr_eth_mtu(sq->qp), i = (uint32_t)(sq->qp->sq_offset / mtu);
	struct pvr_qp *qp = sq->qp;

	for (; i < message->psns && burst->bytes < qp->adapter->quantum_bytes; i++) {
		struct pvr_roce_frame frame = { .psn = pvr_eth_psn_add(message->psn, i) };

		pvr_eth_fill_packet(&frame, qp, message, i);
		if (pvr_eth_address(&frame, qp)) {
			switch (pvr_eth_send(qp->adapter, &frame, message->sg, (uint64_t)i * mtu)) {
			case PVR_ETH_FULL:
				return wait_for_room(sq);
			case PVR_ETH_FAULT:
				return no_memory_at(sq, 0, message->wqe, message->sg,
						    (uint64_t)i * mtu);
			default:
				break;
			}
		}
		qp->sq_offset += frame.payload_bytes;
		burst->payload += frame.payload_bytes;
		burst->bytes += mtu;
	}
	if (i < message->psns)
		return STEP_NEXT;
	burst->messages++;
	qp->sq_psn = pvr_eth_psn_add(qp->sq_psn, message->psns);
	pvr_eth_count_message(qp, message->op->kind, message->sg->total);
	pvr_send_complete(qp, message->wqe, PVRDMA_WC_SUCCESS, message->sg->total);
	return STEP_NEXT;
}

/* IBTA 9.8.2: a UC request completes when it is sent, with or without effect. */
static enum burst_step begin_uc(struct pvr_eth_sq *sq, struct pvr_send_wqe *wqe,
				struct burst *burst)
{
	const struct pvr_opcode *op = pvr_opcode(wqe->hdr.opcode);
	struct pvr_sg sg PVR_UNINITIALIZED;
	enum pvrdma_wc_status status;
	struct pvr_qp *qp = sq->qp;

	if (!pvr_may_post(qp, op))
		return fail(sq, 0, wqe, PVRDMA_WC_LOC_QP_OP_ERR, "send with an unknown opcode");
	if (op->kind == PVR_OP_LOCAL)
		return local_step(sq, wqe, burst);
	status = pvr_prepare(&sg, qp, wqe, op, qp->sq_offset);
	if (status != PVRDMA_WC_SUCCESS)
		return fail(sq, 0, wqe, status, pvr_prepare_why(qp, op, status));
	burst->left--;
	return send_unreliable(sq,
			       &(struct pvr_eth_message){ .wqe = wqe,
							  .op = op,
							  .sg = &sg,
							  .psn = qp->sq_psn,
							  .psns = pvr_psns(qp, sg.total) },
			       burst);
}

/* --------------------------------------------------------------------------- a quantum */

static enum burst_step begin(struct pvr_eth_sq *sq, struct burst *burst)
{
	struct pvr_send_wqe wqe PVR_UNINITIALIZED;
	struct pvr_qp *qp = sq->qp;
	int avail = pvr_wq_avail(&qp->sq);

	if (avail < (int)qp->sq_inflight) {
		pvr_requester_bad_index(qp);
		return STEP_STOP;
	}
	if (avail == (int)qp->sq_inflight)
		return STEP_STOP;
	/* While draining, only a message that has begun goes on. */
	if ((qp->sq_draining && (qp->sq_inflight || !qp->sq_offset)) || qp->sq_inflight >= sq->size)
		return wait_for_acks(sq);
	pvr_wq_fetch_send_at(&qp->sq, qp->sq.head + qp->sq_inflight, &wqe);
	return qp->type == PVR_QPT_UC ? begin_uc(sq, &wqe, burst) : begin_rc(sq, &wqe, burst);
}

static enum pvr_quantum send_some(struct pvr_eth_sq *sq, struct burst *burst)
{
	struct pvr_qp *qp = sq->qp;
	enum burst_step result;

	while (burst->left && burst->bytes < qp->adapter->quantum_bytes) {
		result = sq->cursor < qp->sq_inflight ? go_on(sq, burst) : begin(sq, burst);
		if (!pvr_eth_is_sending(qp))
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

/* ------------------------------------------------------------------------------- probes */

/* The request that has the last PSN in flight. Return: false if there is none. */
static bool find_last(struct pvr_eth_sq *sq, uint32_t *i)
{
	uint32_t last = pvr_eth_psn_add(sq->next, ~0u);
	const struct pvr_eth_inflight *inflight;

	for (*i = sq->cursor < sq->qp->sq_inflight ? sq->cursor + 1 : sq->qp->sq_inflight; *i;) {
		inflight = pvr_eth_inflight(sq, --*i);
		if (pvr_eth_distance(inflight->psn, last) < inflight->psns)
			return true;
	}
	return false;
}

void pvr_eth_probe(struct pvr_eth_sq *sq)
{
	struct pvr_send_wqe wqe PVR_UNINITIALIZED;
	struct pvr_sg sg PVR_UNINITIALIZED;
	struct pvr_eth_last last = { 0 };
	uint32_t next = sq->next, i, psns;
	struct pvr_eth_message message;

	sq->probes++;
	sq->all_probes++;
	if (!find_last(sq, &i) || load(sq, i, &wqe, &sg, &message) != PVRDMA_WC_SUCCESS)
		return;
	sq->next = pvr_eth_psn_add(next, ~0u);
	if (message.op->kind == PVR_OP_READ)
		sq->next = pvr_eth_distance(message.psn, sq->una) < message.psns ? sq->una
										 : message.psn;
	pvr_eth_send_one(sq, &message, true, &psns, &last);
	pvr_eth_flush(sq->qp->adapter->wire);
	sq->next = next;
}

/* ---------------------------------------------------------------------------- its turn */

/* The guest has reached its limit, or the host has no memory. */
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

enum pvr_quantum pvr_eth_run_sq(struct pvr_qp *qp, unsigned int max)
{
	struct burst burst = { .left = max };
	struct pvr_eth_sq *sq = sq_get(qp);
	enum pvr_quantum result;
	uint64_t now;

	if (!sq) {
		no_memory(qp);
		return PVR_QUANTUM_DONE;
	}
	/* While it has waited for room or for a receive, its timer had another use. */
	now = pvr_now(qp->adapter->engine);
	if (sq->is_full && !pvr_eth_check_timeout(sq, now))
		return PVR_QUANTUM_MORE;
	sq->is_full = false;
	result = send_some(sq, &burst);
	if (burst.bytes)
		pvr_eth_answered(qp, now);
	pvr_eth_flush(qp->adapter->wire);
	if (qp->adapter->shaper)
		pvr_shaper_sent(qp->adapter->shaper, burst.payload, burst.messages);
	if (pvr_eth_is_sending(qp))
		pvr_eth_start_timer(sq);
	return result;
}
