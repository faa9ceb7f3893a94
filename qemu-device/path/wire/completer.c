// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * The completer of the wire path: ACKs, NAKs, READ data and values of atomics.
 *
 * Source: IBTA volume 1, 9.7.5.1 (acknowledge packets), 9.9.2 (errors of a requester).
 *
 * DOC: accepted responses
 *
 * - A response to a PSN that is not in flight is ignored: it is late, or of an earlier
 *   connection, or forged.
 * - All requests before its PSN are complete, except READs and atomics, which are complete
 *   only with their data. If such data are missing, the requester asks again from there.
 * - READ data are known by their PSN alone: peers repeat a part with different opcodes.
 */
#include "path/wire/internal.h"

#include "rdma/completer.h"
#include "rdma/cq.h"
#include "rdma/page_fault.h"
#include "rdma/qp.h"
#include "rdma/responder.h"
#include "rdma/sched.h"

#define SYNDROME_KIND 0xe0u
#define RNR_TIMER 0x1fu

/* ------------------------------------------------------------------------- completions */

static void complete_first(struct pvr_eth_sq *sq)
{
	const struct pvr_eth_inflight inflight = *pvr_eth_inflight(sq, 0);
	struct pvr_send_wqe wqe PVR_UNINITIALIZED;
	struct pvr_qp *qp = sq->qp;

	pvr_wq_fetch_send_hdr(&qp->sq, &wqe);
	sq->reads -= pvr_eth_has_response(&inflight);
	qp->sq_inflight--;
	if (sq->cursor)
		sq->cursor--;
	pvr_eth_count_message(qp, inflight.kind, inflight.length);
	/* Completing may fail the CQ, and the queue pair with it. */
	pvr_send_complete(qp, &wqe, PVRDMA_WC_SUCCESS, inflight.length);
}

static void complete_local(struct pvr_eth_sq *sq)
{
	while (sq->qp->sq_inflight && pvr_eth_inflight(sq, 0)->kind == PVR_OP_LOCAL)
		complete_first(sq);
}

/* Moves the oldest PSN in flight to @psn, which is not before it. */
static void move_to(struct pvr_eth_sq *sq, uint32_t psn)
{
	/* The peer has packets that were to be sent again. */
	if (pvr_eth_distance(sq->una, sq->next) < pvr_eth_distance(sq->una, psn))
		sq->next = psn;
	sq->acked += pvr_eth_distance(sq->una, psn);
	sq->una = psn;
}

/*
 * All before @psn is done, as far as it needs no data. Return: whether that is progress.
 */
static bool reach(struct pvr_eth_sq *sq, uint32_t psn)
{
	uint32_t begin = sq->una;

	while (sq->qp->sq_inflight && sq->una != psn) {
		const struct pvr_eth_inflight *inflight = pvr_eth_inflight(sq, 0);
		uint32_t end = pvr_eth_psn_add(inflight->psn, inflight->psns);

		if (pvr_eth_has_response(inflight))
			break;
		if (pvr_eth_distance(sq->una, psn) < pvr_eth_distance(sq->una, end)) {
			move_to(sq, psn);
			break;
		}
		move_to(sq, end);
		complete_first(sq);
		complete_local(sq);
	}
	return sq->una != begin;
}

/* The time that an answer takes, smoothed (RFC 6298). */
static void measured(struct pvr_eth_sq *sq)
{
	uint64_t ns;

	if (!sq->timed_at || pvr_eth_distance(sq->una, sq->timed_psn) < PVR_ETH_PSNS_HALF)
		return;
	ns = sq->progress - sq->timed_at;
	if (ns > PVR_ETH_RTT_MAX_NS)
		ns = PVR_ETH_RTT_MAX_NS;
	sq->srtt = sq->srtt ? (uint32_t)((7ull * sq->srtt + ns) / 8) : (uint32_t)ns;
	sq->timed_at = 0;
}

static void grow(struct pvr_eth_sq *sq)
{
	if (sq->acked < sq->window)
		return;
	sq->acked = 0;
	if (sq->window < PVR_ETH_WINDOW_MAX)
		sq->window++;
}

static void resume(struct pvr_qp *qp)
{
	if (qp->wait == PVR_QP_WAIT_ACKS) {
		pvr_qp_set_wait(qp, PVR_QP_RUNNING);
		pvr_sched_kick(qp);
	} else if (qp->wait == PVR_QP_WAIT_RNR || qp->wait == PVR_QP_WAIT_RETRY) {
		pvr_requester_resume(qp);
	}
}

static void progressed(struct pvr_eth_sq *sq)
{
	struct pvr_qp *qp = sq->qp;

	if (!pvr_eth_is_sending(qp))
		return;
	qp->retry_left = qp->attr.retry_cnt;
	qp->rnr_left = qp->attr.rnr_retry;
	qp->unanswered = false;
	qp->rnr_nak = false;
	sq->progress = pvr_now(qp->adapter->engine);
	sq->probes = 0;
	measured(sq);
	grow(sq);
	if (qp->sq_draining && !qp->sq_inflight)
		pvr_requester_drained(qp);
	else
		resume(qp);
	/* With requests in flight the guest needs no doorbell, see rdma/db_suppress.c. */
	if (qp->db_suppress_shm && qp->wait == PVR_QP_RUNNING &&
	    (!qp->sq_inflight || pvr_requester_has_work(qp)))
		pvr_sched_kick(qp);
}

/* ------------------------------------------------------------------------------- errors */

static bool is_waiting(const struct pvr_qp *qp)
{
	return qp->wait == PVR_QP_WAIT_RNR || qp->wait == PVR_QP_WAIT_RETRY;
}

static void send_again(struct pvr_eth_sq *sq)
{
	pvr_eth_go_back(sq);
	if (sq->qp->wait == PVR_QP_WAIT_ACKS)
		pvr_qp_set_wait(sq->qp, PVR_QP_RUNNING);
	pvr_sched_kick(sq->qp);
}

/*
 * Data from @una on are missing. Asks again at once, but once for a position: more may be on
 * their way, and the timer does the rest.
 */
static void gap(struct pvr_eth_sq *sq)
{
	if (is_waiting(sq->qp) || sq->qp->wait == PVR_QP_WAIT_PAGE ||
	    (sq->has_gap && sq->gap == sq->una))
		return;
	sq->has_gap = true;
	sq->gap = sq->una;
	send_again(sq);
}

static void sequence_error(struct pvr_eth_sq *sq)
{
	struct pvr_send_wqe wqe PVR_UNINITIALIZED;

	if (is_waiting(sq->qp))
		return;
	pvr_wq_fetch_send_hdr(&sq->qp->sq, &wqe);
	if (pvr_requester_seq_nak(sq->qp, &wqe))
		send_again(sq);
}

static uint64_t rnr_ns(uint8_t syndrome)
{
	struct pvr_qp peer = { .attr.min_rnr_timer = syndrome & RNR_TIMER };

	return pvr_rnr_timer_ns(&peer);
}

static void not_ready(struct pvr_eth_sq *sq, uint8_t syndrome)
{
	struct pvr_send_wqe wqe PVR_UNINITIALIZED;
	uint64_t ns;

	if (is_waiting(sq->qp))
		return;
	sq->next = sq->una;
	sq->cursor = 0;
	pvr_wq_fetch_send_hdr(&sq->qp->sq, &wqe);
	ns = pvr_requester_rnr_nak(sq->qp, &wqe, rnr_ns(syndrome));
	if (!ns)
		return;
	pvr_timer_cancel(&sq->qp->adapter->timers, &sq->qp->timer);
	sq->progress = pvr_now(sq->qp->adapter->engine) + ns;
	pvr_requester_wait_rnr(sq->qp, ns);
}

static void refused(struct pvr_eth_sq *sq, enum pvrdma_wc_status status)
{
	struct pvr_send_wqe wqe PVR_UNINITIALIZED;

	pvr_wq_fetch_send_hdr(&sq->qp->sq, &wqe);
	pvr_requester_fail(sq->qp, &wqe, status, "the responder refused a request");
}

/* A NAK for @una. */
static void negative(struct pvr_eth_sq *sq, uint8_t syndrome)
{
	switch (syndrome) {
	case PVR_ETH_NAK_SEQUENCE:
		sequence_error(sq);
		break;
	case PVR_ETH_NAK_INVALID:
		refused(sq, PVRDMA_WC_REM_INV_REQ_ERR);
		break;
	case PVR_ETH_NAK_ACCESS:
		refused(sq, PVRDMA_WC_REM_ACCESS_ERR);
		break;
	case PVR_ETH_NAK_OPERATION:
		refused(sq, PVRDMA_WC_REM_OP_ERR);
		break;
	default:
		if ((syndrome & SYNDROME_KIND) == PVR_ETH_RNR)
			not_ready(sq, syndrome);
		break;
	}
}

/* -------------------------------------------------------------------------------- data */

/* Find where the data go. Return: false if the queue pair has failed. */
static bool find_target(struct pvr_eth_sq *sq, struct pvr_send_wqe *wqe, struct pvr_sg *sg)
{
	const struct pvr_eth_inflight *inflight = pvr_eth_inflight(sq, 0);
	enum pvrdma_wc_status status = PVRDMA_WC_LOC_QP_OP_ERR;
	const struct pvr_opcode *op;

	pvr_wq_fetch_send(&sq->qp->sq, wqe);
	op = pvr_opcode(wqe->hdr.opcode);
	if (op->kind == inflight->kind)
		status = pvr_prepare(sg, sq->qp, wqe, op, 0);
	if (status == PVRDMA_WC_SUCCESS && sg->total != inflight->length)
		status = PVRDMA_WC_LOC_QP_OP_ERR;
	if (status == PVRDMA_WC_SUCCESS)
		return true;
	pvr_requester_fail(sq->qp, wqe, status, "WQE was changed after it was posted");
	return false;
}

/* The response to @una could not be stored. If its page is absent, ask again later. */
static void not_stored(struct pvr_eth_sq *sq, const struct pvr_send_wqe *wqe,
		       const struct pvr_sg *sg, uint64_t offset)
{
	uint64_t left = sg->total - offset;
	uint32_t wait_ns = PVR_PAGE_WAIT_MIN_NS;
	struct pvr_qp *qp = sq->qp;

	left = left < PVR_QUANTUM_BYTES ? left : PVR_QUANTUM_BYTES;
	if (pvr_page_fault(sg, offset, left, &wait_ns) != PVR_PAGE_ABSENT) {
		pvr_requester_fail(qp, wqe, PVRDMA_WC_LOC_PROT_ERR,
				   "memory for a response is not there");
		return;
	}
	if (is_waiting(qp))
		return;
	sq->next = sq->una;
	sq->cursor = 0;
	sq->progress = pvr_now(qp->adapter->engine) + wait_ns;
	pvr_requester_wait_page(qp, wait_ns);
}

/* @packets from @una on have their data. */
static void taken(struct pvr_eth_sq *sq, unsigned int packets)
{
	const struct pvr_eth_inflight *inflight = pvr_eth_inflight(sq, 0);
	uint32_t end = pvr_eth_psn_add(inflight->psn, inflight->psns);

	move_to(sq, pvr_eth_psn_add(sq->una, packets));
	sq->has_gap = false;
	if (sq->una == end) {
		complete_first(sq);
		complete_local(sq);
	}
	progressed(sq);
}

static void take_data(struct pvr_eth_sq *sq, const struct pvr_eth_packet *packet)
{
	const struct pvr_eth_inflight *inflight = pvr_eth_inflight(sq, 0);
	uint64_t offset = (uint64_t)pvr_eth_distance(inflight->psn, sq->una) * pvr_eth_mtu(sq->qp);
	uint64_t left = inflight->length - offset;
	uint32_t bytes = packet->frame->payload_bytes, mtu = pvr_eth_mtu(sq->qp);
	struct pvr_send_wqe wqe PVR_UNINITIALIZED;
	struct pvr_sg sg PVR_UNINITIALIZED;

	/* A packet of another length is of a peer with another path MTU: no answer. */
	if (inflight->kind != PVR_OP_READ || bytes != (left < mtu ? left : mtu))
		return;
	if (!find_target(sq, &wqe, &sg))
		return;
	if (bytes && pvr_eth_store(&sg, offset, packet)) {
		not_stored(sq, &wqe, &sg, offset);
		return;
	}
	taken(sq, packet->count);
}

static void take_value(struct pvr_eth_sq *sq, uint64_t value)
{
	struct pvr_send_wqe wqe PVR_UNINITIALIZED;
	struct pvr_sg sg PVR_UNINITIALIZED;

	if (pvr_eth_inflight(sq, 0)->kind != PVR_OP_ATOMIC || !find_target(sq, &wqe, &sg))
		return;
	if (pvr_sg_write(&sg, &value, sizeof(value)))
		not_stored(sq, &wqe, &sg, 0);
	else
		taken(sq, 1);
}

/* ------------------------------------------------------------------------------ packets */

static void judge(struct pvr_eth_sq *sq, const struct pvr_eth_packet *packet, bool positive)
{
	const struct pvr_roce_frame *frame = packet->frame;

	if (packet->op->kind == PVR_ROCE_READ_RESPONSE)
		take_data(sq, packet);
	else if (packet->op->kind == PVR_ROCE_ATOMIC_ACK)
		take_value(sq, frame->original);
	else if (!positive)
		negative(sq, frame->syndrome);
}

bool pvr_eth_responses_fit(const struct pvr_qp *qp, const struct pvr_eth_packet *packet)
{
	struct pvr_eth_sq *sq = pvr_eth_sq(qp);
	const struct pvr_eth_inflight *inflight;
	uint64_t offset;

	if (!sq || !qp->sq_inflight || packet->frame->psn != sq->una ||
	    pvr_eth_distance(sq->una, sq->high) < packet->count)
		return false;
	inflight = pvr_eth_inflight(sq, 0);
	offset = (uint64_t)pvr_eth_distance(inflight->psn, sq->una) * pvr_eth_mtu(qp);
	return inflight->kind == PVR_OP_READ &&
	       offset + pvr_eth_payload(packet) <= inflight->length;
}

void pvr_eth_response(struct pvr_qp *qp, const struct pvr_eth_packet *packet)
{
	const struct pvr_roce_frame *frame = packet->frame;
	bool ack = packet->op->kind == PVR_ROCE_ACK;
	bool positive = ack && !(frame->syndrome & SYNDROME_KIND);
	struct pvr_eth_sq *sq = pvr_eth_sq(qp);
	/* The first PSN that the response does not report as done. */
	uint32_t psn = pvr_eth_psn_add(frame->psn, positive ? 1 : 0);

	if (!sq || !qp->sq_inflight || !pvr_eth_is_sending(qp) ||
	    pvr_eth_distance(sq->una, frame->psn) >= pvr_eth_distance(sq->una, sq->high))
		return;
	if (reach(sq, psn))
		progressed(sq);
	if (!pvr_eth_is_sending(qp) || !qp->sq_inflight)
		return;
	if (sq->una != psn)
		gap(sq);
	else
		judge(sq, packet, positive);
}
