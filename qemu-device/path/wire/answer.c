// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Answers of the wire path's responder: READ data and atomics, in the order of their PSNs.
 *
 * A READ of any length leaves in turns of PVR_ETH_ANSWER_PACKETS, so that a peer's requests
 * cost a bounded time each. Its key is checked again in each turn.
 */
#include "path/wire/internal.h"

#include <string.h>

#include "core/sg.h"
#include "rdma/cq.h"
#include "rdma/responder.h"

/* A turn of a READ. */
struct pvr_eth_turn {
	struct pvr_inbound inbound; /* refers to the members below */
	struct pvr_req_src req_src;
	struct pvr_send_wqe wqe; /* only its header is valid */
	struct pvr_eth_rq *rq;
	struct pvr_eth_answer *answer;
	unsigned int left; /* packets */
	bool is_full;
	uint32_t page_ns; /* a page is absent: go on after this time */
};

static struct pvr_eth_answer *first(struct pvr_eth_rq *rq)
{
	return &rq->answers[rq->first];
}

bool pvr_eth_answer_add(struct pvr_eth_rq *rq, const struct pvr_eth_answer *answer)
{
	if (rq->count >= rq->size)
		return false;
	rq->answers[(rq->first + rq->count) % rq->size] = *answer;
	rq->count++;
	return true;
}

void pvr_eth_answers_drop(struct pvr_eth_rq *rq, uint32_t psn)
{
	const struct pvr_eth_answer *last;

	while (rq->count) {
		last = &rq->answers[(rq->first + rq->count - 1) % rq->size];
		/* One that begins before @psn, but has it, is repeated from there. */
		if (!last->is_atomic && pvr_eth_distance(last->psn, psn) > 0 &&
		    pvr_eth_distance(last->psn, psn) < pvr_psns(rq->qp, last->length)) {
			rq->count--;
			return;
		}
		if (pvr_eth_distance(psn, last->psn) >= PVR_ETH_PSNS_HALF)
			return;
		rq->count--;
	}
}

/* ----------------------------------------------------------------------------- packets */

static struct pvr_roce_frame data_frame(const struct pvr_eth_turn *turn, bool ends)
{
	const struct pvr_eth_answer *answer = turn->answer;
	uint32_t mtu = pvr_eth_mtu(turn->rq->qp);

	return (struct pvr_roce_frame){
		.opcode = (uint8_t)pvr_roce_opcode_of(PVR_ROCE_RC, PVR_ROCE_READ_RESPONSE,
						      !answer->done, ends, 0),
		.psn = pvr_eth_psn_add(answer->psn, (uint32_t)(answer->done / mtu)),
		.syndrome = PVR_ETH_ACK,
		.msn = turn->rq->msn,
		.payload_bytes = ends ? (uint32_t)(answer->length - answer->done) : mtu,
	};
}

/* Sends a packet of data. @frame: the last one, and set; @is_middle: whether it has no AETH */
static enum pvr_eth_sent send_packet(struct pvr_eth_turn *turn, const struct pvr_sg *from,
				     struct pvr_roce_frame *frame, bool *is_middle)
{
	const struct pvr_eth_answer *answer = turn->answer;
	struct pvr_qp *qp = turn->rq->qp;
	bool ends = answer->length - answer->done <= pvr_eth_mtu(qp);

	if (*is_middle && !ends) {
		frame->psn = pvr_eth_psn_add(frame->psn, 1);
		return pvr_eth_send_next(qp->adapter, frame, from, answer->done);
	}
	*frame = data_frame(turn, ends);
	*is_middle = answer->done && !ends;
	pvr_eth_address(frame, qp);
	return pvr_eth_send(qp->adapter, frame, from, answer->done);
}

static void went(struct pvr_eth_turn *turn, unsigned int packets, uint64_t bytes)
{
	turn->left -= packets;
	turn->answer->done += bytes;
}

/* Sends packets like the last one, but not the end. */
static void send_middles(struct pvr_eth_turn *turn, const struct pvr_sg *from,
			 struct pvr_roce_frame *frame)
{
	const struct pvr_eth_answer *answer = turn->answer;
	uint32_t mtu = pvr_eth_mtu(turn->rq->qp);
	uint64_t middles = answer->done < answer->length ? (answer->length - answer->done - 1) / mtu
							 : 0;
	unsigned int n;

	n = pvr_eth_send_run(turn->rq->qp->adapter, frame, from, answer->done,
			     middles < turn->left ? (unsigned int)middles : turn->left, 0);
	went(turn, n, (uint64_t)n * mtu);
}

static int send_data(struct pvr_inbound *in, const struct pvr_sg *from)
{
	struct pvr_eth_turn *turn = (struct pvr_eth_turn *)in;
	struct pvr_eth_answer *answer = turn->answer;
	struct pvr_roce_frame frame PVR_UNINITIALIZED;
	bool is_middle = false;

	if (!pvr_gid_get(turn->rq->qp->adapter, turn->rq->qp->attr.ah_attr.sgid_index))
		return 0;
	do {
		switch (send_packet(turn, from, &frame, &is_middle)) {
		case PVR_ETH_FAULT:
			return -EFAULT;
		case PVR_ETH_FULL:
			turn->is_full = true;
			return 0;
		default:
			break;
		}
		went(turn, 1, frame.payload_bytes);
		if (is_middle)
			send_middles(turn, from, &frame);
	} while (answer->done < answer->length && turn->left);
	return 0;
}

static const struct pvr_inbound_ops turn_ops = { .read_reply = send_data };

static struct pvr_syndrome send_read(struct pvr_eth_turn *turn)
{
	const struct pvr_eth_answer *answer = turn->answer;
	struct pvrdma_sq_wqe_hdr *hdr = &turn->wqe.hdr;

	memset(hdr, 0, sizeof(*hdr));
	hdr->opcode = PVRDMA_WR_RDMA_READ;
	hdr->wr.rdma.remote_addr = answer->addr;
	hdr->wr.rdma.rkey = answer->rkey;
	turn->inbound.ops = &turn_ops;
	turn->inbound.request = (struct pvr_request){
		.from = &turn->req_src,
		.wqe = &turn->wqe,
		.op = pvr_opcode(PVRDMA_WR_RDMA_READ),
		.length = answer->length,
		.offset = answer->done,
		.chunk = answer->length - answer->done,
	};
	return pvr_responder_read_again(turn->rq->qp, &turn->inbound);
}

static void send_atomic(struct pvr_eth_turn *turn)
{
	struct pvr_roce_frame frame = {
		.opcode = PVR_ROCE_OP_ATOMIC_ACK,
		.psn = turn->answer->psn,
		.syndrome = PVR_ETH_ACK,
		.msn = turn->rq->msn,
		.original = turn->answer->value,
	};

	if (pvr_eth_address(&frame, turn->rq->qp))
		turn->is_full = pvr_eth_send(turn->rq->qp->adapter, &frame, NULL, 0) ==
				PVR_ETH_FULL;
	turn->left--;
}

/* -------------------------------------------------------------------------------- turns */

/* Return: whether the first answer is complete. */
static bool send_first(struct pvr_eth_turn *turn)
{
	const struct pvr_eth_answer *answer = turn->answer;
	uint32_t psn =
		pvr_eth_psn_add(answer->psn, (uint32_t)(answer->done / pvr_eth_mtu(turn->rq->qp)));
	struct pvr_syndrome syndrome;

	if (answer->is_atomic) {
		send_atomic(turn);
		return !turn->is_full;
	}
	syndrome = send_read(turn);
	if (syndrome.kind == PVR_SYN_NAK) {
		turn->rq->count = 0;
		pvr_eth_refuse(turn->rq, syndrome.status, psn);
		return false;
	}
	if (syndrome.kind == PVR_SYN_PAGE) {
		turn->page_ns = syndrome.wait_ns;
		return false;
	}
	return !turn->is_full && answer->done == answer->length;
}

static bool may_answer(const struct pvr_eth_rq *rq)
{
	const struct pvr_qp *qp = rq->qp;
	bool responds = pvr_qp_can_respond(qp) || (qp->state == PVR_QPS_ERR && rq->is_refusing);

	return responds && qp->adapter->link_up && pvr_adapter_dma_ok(qp->adapter);
}

void pvr_eth_answer_stop(struct pvr_eth_rq *rq)
{
	struct pvr_eth_adapter *wire = rq->qp->adapter->wire;

	if (rq->is_answering)
		TAILQ_REMOVE(&wire->answering, rq, link);
	if (rq->is_pausing)
		TAILQ_REMOVE(&wire->pausing, rq, link);
	rq->is_answering = false;
	rq->is_pausing = false;
	pvr_timer_cancel(&wire->adapter->timers, &rq->page);
}

void pvr_eth_set_timer(struct pvr_eth_adapter *wire, struct pvr_timer *timer, uint32_t ns)
{
	if (!pvr_timer_is_set(timer))
		pvr_timer_set(&wire->adapter->timers, timer, pvr_now(wire->adapter->engine) + ns);
}

/* Its own list: a pause of one queue pair delays no other one. */
static void pause_answers(struct pvr_eth_rq *rq)
{
	struct pvr_eth_adapter *wire = rq->qp->adapter->wire;

	TAILQ_INSERT_TAIL(&wire->pausing, rq, link);
	rq->is_pausing = true;
	pvr_eth_set_timer(wire, &wire->pause, PVR_ETH_PAUSE_NS);
}

static void answer_in(struct pvr_eth_rq *rq, uint32_t ns)
{
	struct pvr_eth_adapter *wire = rq->qp->adapter->wire;

	TAILQ_INSERT_TAIL(&wire->answering, rq, link);
	rq->is_answering = true;
	pvr_eth_set_timer(wire, &wire->timer, ns);
}

/* The timer of a queue pair whose page is absent: others do not wait for it. */
static void page_expired(struct pvr_timer *timer)
{
	struct pvr_eth_rq *rq =
		(struct pvr_eth_rq *)((char *)timer - offsetof(struct pvr_eth_rq, page));

	if (rq->count && !rq->is_answering && !rq->is_pausing)
		answer_in(rq, 0);
}

int pvr_eth_answers_init(struct pvr_eth_rq *rq, struct pvr_qp *qp)
{
	return pvr_timer_init(&qp->adapter->timers, &rq->page, page_expired);
}

static void wait(struct pvr_eth_rq *rq, const struct pvr_eth_turn *turn)
{
	struct pvr_eth_adapter *wire = rq->qp->adapter->wire;

	if (rq->is_answering || rq->is_pausing)
		return;
	if (turn->page_ns) {
		pvr_eth_set_timer(wire, &rq->page, turn->page_ns);
		return;
	}
	pvr_timer_cancel(&wire->adapter->timers, &rq->page);
	if (rq->turn && !turn->is_full)
		pause_answers(rq);
	else
		answer_in(rq, turn->is_full ? PVR_ETH_FULL_NS : 0);
}

void pvr_eth_answer(struct pvr_eth_rq *rq)
{
	struct pvr_eth_turn turn = { .rq = rq };

	/* The peer asks again. */
	if (!may_answer(rq))
		rq->count = 0;
	turn.left = pvr_eth_turn(rq);
	while (rq->count && turn.left) {
		turn.answer = first(rq);
		if (!send_first(&turn))
			break;
		rq->first = (rq->first + 1) % rq->size;
		rq->count--;
	}
	if (!turn.is_full)
		pvr_eth_turn_done(rq);
	if (rq->count)
		wait(rq, &turn);
	else
		pvr_eth_ack_behind(rq);
}

/* Queue pairs in turns, one for each run of the timer. Frames that had no room are first. */
void pvr_eth_answer_timer(struct pvr_timer *timer)
{
	struct pvr_eth_adapter *wire =
		(struct pvr_eth_adapter *)((char *)timer - offsetof(struct pvr_eth_adapter, timer));
	struct pvr_eth_rq *rq = TAILQ_FIRST(&wire->answering);

	if (!pvr_eth_flush(wire) || !rq)
		return;
	pvr_eth_answer_stop(rq);
	pvr_eth_answer(rq);
	pvr_eth_flush(wire);
	pvr_publish(wire->adapter);
	if (!TAILQ_EMPTY(&wire->answering))
		pvr_eth_set_timer(wire, timer, 0);
}

void pvr_eth_pause_timer(struct pvr_timer *timer)
{
	struct pvr_eth_adapter *wire =
		(struct pvr_eth_adapter *)((char *)timer - offsetof(struct pvr_eth_adapter, pause));
	struct pvr_eth_rq *rq;
	unsigned int i;

	for (i = 0; i < PVR_ETH_PAUSES && (rq = TAILQ_FIRST(&wire->pausing)); i++) {
		pvr_eth_answer_stop(rq);
		answer_in(rq, 0);
	}
	if (!TAILQ_EMPTY(&wire->pausing))
		pvr_eth_set_timer(wire, timer, 0);
}
