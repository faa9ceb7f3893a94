// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Packets of the wire path's requester.
 *
 * Most packets are like the one before them: the middle of a message, or the same request once more.
 * Such a packet is built from the headers of that one.
 */
#include "path/wire/internal.h"

#include <string.h>

/* Ask for an ACK at least once in so many packets. */
#define ACK_INTERVAL 16u

static uint16_t last_ext(const struct pvr_eth_message *message)
{
	if (message->op->imm)
		return PVR_ROCE_IMM;
	return message->wqe->hdr.opcode == PVRDMA_WR_SEND_WITH_INV ? PVR_ROCE_IETH : 0;
}

static void fill_rdma(struct pvr_roce_frame *frame, const struct pvr_eth_message *message)
{
	frame->addr = message->wqe->hdr.wr.rdma.remote_addr;
	frame->rkey = message->wqe->hdr.wr.rdma.rkey;
	frame->length = (uint32_t)message->sg->total;
}

void pvr_eth_fill_packet(struct pvr_roce_frame *frame, const struct pvr_qp *qp,
			 const struct pvr_eth_message *message, uint32_t i)
{
	bool write = message->op->kind == PVR_OP_WRITE, ends = i + 1 == message->psns;
	uint64_t offset = (uint64_t)i * pvr_eth_mtu(qp);
	const struct pvrdma_sq_wqe_hdr *hdr = &message->wqe->hdr;

	frame->opcode = (uint8_t)pvr_roce_opcode_of(
		qp->type == PVR_QPT_UC ? PVR_ROCE_UC : PVR_ROCE_RC,
		write ? PVR_ROCE_WRITE : PVR_ROCE_SEND, !i, ends, ends ? last_ext(message) : 0);
	frame->payload_bytes = ends ? (uint32_t)(message->sg->total - offset) : pvr_eth_mtu(qp);
	frame->solicited = ends && (hdr->send_flags & PVR_SEND_SOLICITED);
	frame->inv_rkey = hdr->ex.invalidate_rkey;
	memcpy(frame->imm, &hdr->ex.imm_data, sizeof(frame->imm));
	if (write && !i)
		fill_rdma(frame, message);
}

static void fill_atomic(struct pvr_roce_frame *frame, const struct pvr_eth_message *message)
{
	const struct pvrdma_sq_wqe_hdr *hdr = &message->wqe->hdr;
	bool swap = hdr->opcode == PVRDMA_WR_ATOMIC_CMP_AND_SWP;

	frame->opcode = (uint8_t)pvr_roce_opcode_of(
		PVR_ROCE_RC, swap ? PVR_ROCE_CMP_SWAP : PVR_ROCE_FETCH_ADD, true, true, 0);
	frame->addr = hdr->wr.atomic.remote_addr;
	frame->rkey = hdr->wr.atomic.rkey;
	frame->swap_add = swap ? hdr->wr.atomic.swap : hdr->wr.atomic.compare_add;
	frame->compare = swap ? hdr->wr.atomic.compare_add : 0;
}

/* A part of a READ from packet @i on, of @packets. */
static void fill_read(struct pvr_roce_frame *frame, const struct pvr_qp *qp,
		      const struct pvr_eth_message *message, uint32_t i, uint32_t packets)
{
	uint64_t offset = (uint64_t)i * pvr_eth_mtu(qp);
	uint64_t part = (uint64_t)packets * pvr_eth_mtu(qp), left = message->sg->total - offset;

	frame->opcode = PVR_ROCE_OP_READ_REQUEST;
	fill_rdma(frame, message);
	frame->addr += offset;
	frame->length = (uint32_t)(left < part ? left : part);
}

uint32_t pvr_eth_room(const struct pvr_eth_sq *sq)
{
	uint32_t used = pvr_eth_distance(sq->una, sq->next);

	return used < sq->window ? sq->window - used : 0;
}

/*
 * The packet @ahead of @next asks for an answer. Measure one at a time, and no repeated packet, whose
 * answer is ambiguous.
 */
static void measure(struct pvr_eth_sq *sq, uint32_t ahead)
{
	if (sq->timed_at || sq->next != sq->high)
		return;
	sq->timed_psn = pvr_eth_psn_add(sq->next, ahead);
	sq->timed_at = pvr_now(sq->qp->adapter->engine);
}

/*
 * Set the frame to packet @i of a SEND or WRITE, of which @left are not sent. Return: whether it
 * differs from the last one only by what pvr_eth_send_next() changes.
 */
static bool fill_next(struct pvr_eth_last *last, const struct pvr_qp *qp,
		      const struct pvr_eth_message *message, uint32_t i, uint32_t left)
{
	struct pvr_roce_frame *frame = &last->frame;
	uint32_t payload_bytes = frame->payload_bytes;
	bool is_middle = i && left > 1, was_middle = last->is_middle;
	bool was_solicited = frame->solicited;
	uint8_t opcode = frame->opcode;

	last->is_middle = is_middle;
	if (!is_middle || !was_middle)
		pvr_eth_fill_packet(frame, qp, message, i);
	return last->is_sent && frame->opcode == opcode && frame->payload_bytes == payload_bytes &&
	       frame->solicited == was_solicited;
}

static enum pvr_eth_sent send_data(struct pvr_eth_sq *sq, const struct pvr_eth_message *message,
				   uint32_t i, uint32_t left, bool ask, struct pvr_eth_last *last)
{
	bool is_alike = fill_next(last, sq->qp, message, i, left);
	uint64_t offset = (uint64_t)i * pvr_eth_mtu(sq->qp);
	struct pvr_adapter *adapter = sq->qp->adapter;
	struct pvr_roce_frame *frame = &last->frame;
	enum pvr_eth_sent sent;

	frame->psn = sq->next;
	frame->ack_request = ask || left == 1 || pvr_eth_room(sq) == 1 ||
			     sq->next % ACK_INTERVAL == ACK_INTERVAL - 1;
	if (frame->ack_request)
		measure(sq, 0);
	if (is_alike)
		return pvr_eth_send_next(adapter, frame, message->sg, offset);
	if (!pvr_eth_address(frame, sq->qp))
		return PVR_ETH_SENT; /* its source GID is gone: as if lost */
	sent = pvr_eth_send(adapter, frame, message->sg, offset);
	last->is_sent = sent == PVR_ETH_SENT;
	return sent;
}

/* A part of a READ from packet @i on, or an atomic. */
static enum pvr_eth_sent send_request(struct pvr_eth_sq *sq, const struct pvr_eth_message *message,
				      uint32_t i, uint32_t psns)
{
	struct pvr_roce_frame frame = { .psn = sq->next, .ack_request = true };

	if (message->op->kind == PVR_OP_READ)
		fill_read(&frame, sq->qp, message, i, psns);
	else
		fill_atomic(&frame, message);
	measure(sq, 0);
	if (!pvr_eth_address(&frame, sq->qp))
		return PVR_ETH_SENT; /* its source GID is gone: as if lost */
	return pvr_eth_send(sq->qp->adapter, &frame, NULL, 0);
}

enum pvr_eth_sent pvr_eth_send_one(struct pvr_eth_sq *sq, const struct pvr_eth_message *message,
				   bool ask, uint32_t *psns, struct pvr_eth_last *last)
{
	uint32_t i = pvr_eth_distance(message->psn, sq->next), left = message->psns - i;

	*psns = 1;
	if (message->op->kind == PVR_OP_READ) {
		*psns = PVR_ETH_READ_PACKETS - i % PVR_ETH_READ_PACKETS;
		*psns = left < *psns ? left : *psns;
	} else if (message->op->kind != PVR_OP_ATOMIC) {
		return send_data(sq, message, i, left, ask, last);
	}
	last->is_sent = false;
	last->is_middle = false;
	return send_request(sq, message, i, *psns);
}

uint32_t pvr_eth_send_middles(struct pvr_eth_sq *sq, const struct pvr_eth_message *message,
			      struct pvr_eth_last *last)
{
	uint32_t i = pvr_eth_distance(message->psn, sq->next), left = message->psns - i;
	uint32_t room = pvr_eth_room(sq), count = left < room ? left : room, asks;

	/* The last packet of the message or the window asks for an ACK. */
	if (!i || !last->is_sent || !last->is_middle || count < 2)
		return 0;
	count = pvr_eth_send_run(sq->qp->adapter, &last->frame, message->sg,
				 (uint64_t)i * pvr_eth_mtu(sq->qp), count - 1, ACK_INTERVAL);
	asks = ACK_INTERVAL - 1 - sq->next % ACK_INTERVAL;
	if (asks < count)
		measure(sq, asks);
	return count;
}
