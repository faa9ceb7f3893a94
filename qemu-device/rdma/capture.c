// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* Capture: the RoCE packets of an adapter, as a network would carry them. */
#include "rdma/capture.h"

#include <string.h>

#include "rdma/path.h"
#include "rdma/responder_state.h"
#include "rdma/ud.h"
#include "roce/frame.h"
#include "roce/opcode.h"

#define HOP_LIMIT 64 /* of address vectors with 0 */
#define GSI_QPN 1
#define MIGRATED true /* as NICs send it */
/* AETH */
#define NO_CREDITS 0x1f
#define SYNDROME_RNR 0x20
#define SYNDROME_INVALID_REQUEST 0x61
#define SYNDROME_ACCESS 0x62
#define SYNDROME_OPERATION 0x63
#define PRIORITY_SHIFT 13 /* of a VLAN tag */

static const char made_up[] = "made by pvrdmad: the path has no such packet, or no MSN";

/* Packets of one message. */
struct packets {
	const struct pvr_qp *qp; /* of the adapter with the capture */
	bool outgoing; /* sent by @qp */
	uint32_t psn; /* of the first packet */
	const struct pvr_sg *payload; /* NULL: not known here */
	uint64_t base; /* offset in the message of the first byte of @payload */
	struct pvr_roce_frame frame;
};

/* ------------------------------------------------------------------------ a packet */

/* Management datagrams have no data of programs. */
static bool may_read(const struct pvr_adapter *adapter, const struct pvr_roce_frame *frame)
{
	return adapter->capture->payload ||
	       (frame->dest_qpn == GSI_QPN && frame->src_qpn == GSI_QPN);
}

/* Return: false if the payload is not known. */
static bool read_payload(const struct pvr_sg *payload, uint64_t offset, uint8_t *to, uint32_t bytes)
{
	struct pvr_sg flat;

	if (!payload || offset + bytes > payload->total)
		return false;
	pvr_sg_build_flat(&flat, payload->adapter, to, bytes);
	return !pvr_sg_copy(&flat, 0, payload, offset, bytes);
}

/* @offset: of the packet's payload in @payload */
static void emit(const struct pvr_adapter *adapter, bool outgoing,
		 const struct pvr_roce_frame *frame, const struct pvr_sg *payload, uint64_t offset,
		 const char *comment)
{
	uint8_t buf[PVR_ROCE_HEADER_MAX + PVR_ROCE_PAYLOAD_MAX + PVR_ROCE_TRAILER_MAX];
	const struct pvr_capture *capture = adapter->capture;
	struct pvr_captured packet = { .data = buf, .outgoing = outgoing, .comment = comment };
	size_t headers = pvr_roce_build(buf, frame);
	uint32_t bytes = frame->payload_bytes;
	bool known = !bytes || (may_read(adapter, frame) &&
				read_payload(payload, offset, buf + headers, bytes));

	if (!known)
		memset(buf + headers, 0, bytes);
	packet.original = (uint32_t)pvr_roce_finish(buf, headers, frame);
	if (!known)
		memset(buf + packet.original - PVR_ROCE_ICRC_BYTES, 0, PVR_ROCE_ICRC_BYTES);
	packet.bytes = packet.original < capture->snaplen ? packet.original : capture->snaplen;
	capture->packet(capture->opaque, &packet);
}

void pvr_capture_frame(const struct pvr_adapter *adapter, bool outgoing, const uint8_t *data,
		       size_t bytes, const struct pvr_roce_frame *frame, size_t payload)
{
	uint8_t buf[PVR_ROCE_HEADER_MAX + PVR_ROCE_PAYLOAD_MAX + PVR_ROCE_TRAILER_MAX];
	const struct pvr_capture *capture = adapter->capture;
	struct pvr_captured packet = { .data = buf, .outgoing = outgoing };

	if (!capture || bytes > sizeof(buf))
		return;
	memcpy(buf, data, bytes);
	/* With padding and ICRC, which tell of it. */
	if (frame->payload_bytes && !may_read(adapter, frame))
		memset(buf + payload, 0, bytes - payload);
	packet.original = (uint32_t)bytes;
	packet.bytes = packet.original < capture->snaplen ? packet.original : capture->snaplen;
	capture->packet(capture->opaque, &packet);
}

static void set_vlan(struct pvr_roce_frame *frame, const struct pvr_gid_entry *sgid, uint8_t sl)
{
	if (sgid && sgid->vlan != PVR_VLAN_NONE)
		frame->vlan = (uint16_t)(sgid->vlan | (sl & 7u) << PRIORITY_SHIFT);
}

static uint8_t net_of(uint8_t gid_type, const uint8_t dgid[16])
{
	if (gid_type == PVR_GID_TYPE_ROCE_V1)
		return PVR_ROCE_V1;
	return pvr_gid_is_ipv4(dgid) ? PVR_ROCE_IPV4 : PVR_ROCE_IPV6;
}

static void swap_ends(struct pvr_roce_frame *frame)
{
	struct pvr_roce_frame before = *frame;

	memcpy(frame->dst_mac, before.src_mac, sizeof(frame->dst_mac));
	memcpy(frame->src_mac, before.dst_mac, sizeof(frame->src_mac));
	memcpy(frame->dst_gid, before.src_gid, sizeof(frame->dst_gid));
	memcpy(frame->src_gid, before.dst_gid, sizeof(frame->src_gid));
}

/* A packet of the connection, sent by @qp or by its peer. */
static struct pvr_roce_frame connection_frame(const struct pvr_qp *qp, bool outgoing)
{
	const struct pvr_ah_attr *ah = &qp->attr.ah_attr;
	const struct pvr_gid_entry *sgid = pvr_gid_get(qp->adapter, ah->sgid_index);
	struct pvr_roce_frame frame = {
		.net = net_of(qp->adapter->gid_type, ah->dgid),
		.traffic_class = ah->traffic_class,
		.hop_limit = ah->hop_limit ? ah->hop_limit : HOP_LIMIT,
		.flow_label = ah->flow_label & 0xfffff,
		.src_port =
			pvr_roce_src_port(ah->flow_label & 0xfffff, qp->qpn, qp->attr.dest_qp_num),
		.migrated = MIGRATED,
		.pkey = PVR_PKEY,
		.dest_qpn = outgoing ? qp->attr.dest_qp_num & 0xffffff : qp->qpn,
	};

	memcpy(frame.dst_mac, ah->dmac, sizeof(frame.dst_mac));
	memcpy(frame.src_mac, qp->adapter->mac, sizeof(frame.src_mac));
	memcpy(frame.dst_gid, ah->dgid, sizeof(frame.dst_gid));
	if (sgid)
		memcpy(frame.src_gid, sgid->gid, sizeof(frame.src_gid));
	set_vlan(&frame, sgid, ah->sl);
	if (!outgoing)
		swap_ends(&frame);
	return frame;
}

static struct packets packets_of(const struct pvr_qp *qp, bool outgoing,
				 const struct pvr_request *request)
{
	return (struct packets){
		.qp = qp,
		.outgoing = outgoing,
		.psn = request->from->psn,
		.payload = request->local,
		.frame = connection_frame(qp, outgoing),
	};
}

/* Capture packet @index of the message. */
static void emit_packet(struct packets *packets, enum pvr_roce_kind kind, bool begins, bool ends,
			uint16_t ext, uint32_t index, uint64_t offset, const char *comment)
{
	enum pvr_roce_transport transport = packets->qp->type == PVR_QPT_UC ? PVR_ROCE_UC
									    : PVR_ROCE_RC;
	int opcode = pvr_roce_opcode_of(transport, kind, begins, ends, ext);

	if (opcode < 0)
		return;
	packets->frame.opcode = (uint8_t)opcode;
	packets->frame.psn = (packets->psn + index) & 0xffffff;
	emit(packets->qp->adapter, packets->outgoing, &packets->frame, packets->payload,
	     offset - packets->base, comment);
}

/*
 * Capture the packets with the payload of a fragment.
 * @last_ext: header of the last packet of the message
 */
static void emit_payload(struct packets *packets, const struct pvr_request *request,
			 enum pvr_roce_kind kind, uint16_t last_ext, const char *comment)
{
	unsigned int shift = 7 + packets->qp->attr.path_mtu;
	uint64_t offset = request->offset, end = request->offset + request->chunk;

	do {
		uint64_t next = ((offset >> shift) + 1) << shift;
		bool ends;

		if (next > end)
			next = end;
		ends = request->last && next == end;
		packets->frame.payload_bytes = (uint32_t)(next - offset);
		packets->frame.ack_request = ends && packets->qp->type == PVR_QPT_RC &&
					     kind != PVR_ROCE_READ_RESPONSE;
		packets->frame.solicited = ends && kind != PVR_ROCE_READ_RESPONSE &&
					   request->wqe->hdr.send_flags & PVR_SEND_SOLICITED;
		emit_packet(packets, kind, !offset, ends, ends ? last_ext : 0,
			    (uint32_t)(offset >> shift), offset, comment);
		offset = next;
	} while (offset < end);
}

/* ------------------------------------------------------------------------ requests */

static void capture_atomic(struct packets *packets, const struct pvr_request *request)
{
	const struct pvrdma_sq_wqe_hdr *hdr = &request->wqe->hdr;
	bool swaps = hdr->opcode == PVRDMA_WR_ATOMIC_CMP_AND_SWP;
	struct pvr_roce_frame *frame = &packets->frame;

	frame->addr = hdr->wr.atomic.remote_addr;
	frame->rkey = hdr->wr.atomic.rkey;
	frame->swap_add = swaps ? hdr->wr.atomic.swap : hdr->wr.atomic.compare_add;
	frame->compare = swaps ? hdr->wr.atomic.compare_add : 0;
	frame->ack_request = true;
	emit_packet(packets, swaps ? PVR_ROCE_CMP_SWAP : PVR_ROCE_FETCH_ADD, true, true, 0, 0, 0,
		    NULL);
}

static void capture_atomic_write(const struct packets *packets, const struct pvr_request *request)
{
	struct packets own = *packets;
	struct pvr_wqe_atomic_write write;
	struct pvr_sg value;

	memcpy(&write, &request->wqe->hdr.wr, sizeof(write));
	pvr_sg_build_flat(&value, packets->qp->adapter, (uint8_t *)&write.value,
			  sizeof(write.value));
	own.payload = &value;
	own.frame.addr = write.addr;
	own.frame.rkey = write.rkey;
	own.frame.length = sizeof(write.value);
	own.frame.payload_bytes = sizeof(write.value);
	own.frame.ack_request = true;
	emit_packet(&own, PVR_ROCE_ATOMIC_WRITE, true, true, 0, 0, 0, NULL);
}

static void capture_flush(struct packets *packets, const struct pvr_request *request)
{
	struct pvr_wqe_flush flush;

	memcpy(&flush, &request->wqe->hdr.wr, sizeof(flush));
	packets->frame.flush = flush.placement | (uint32_t)flush.level << 4;
	packets->frame.addr = flush.addr;
	packets->frame.rkey = flush.rkey;
	packets->frame.length = (uint32_t)flush.length;
	packets->frame.ack_request = true;
	emit_packet(packets, PVR_ROCE_FLUSH, true, true, 0, 0, 0, NULL);
}

static void set_reth(struct packets *packets, const struct pvr_request *request)
{
	packets->frame.addr = request->wqe->hdr.wr.rdma.remote_addr;
	packets->frame.rkey = request->wqe->hdr.wr.rdma.rkey;
	packets->frame.length = (uint32_t)request->length;
}

static void capture_data(struct packets *packets, const struct pvr_request *request)
{
	const struct pvrdma_sq_wqe_hdr *hdr = &request->wqe->hdr;
	bool writes = request->op->kind == PVR_OP_WRITE;
	uint16_t last = 0;

	if (writes)
		set_reth(packets, request);
	if (request->op->imm) {
		last = PVR_ROCE_IMM;
		memcpy(packets->frame.imm, &hdr->ex.imm_data, sizeof(packets->frame.imm));
	} else if (hdr->opcode == PVRDMA_WR_SEND_WITH_INV) {
		last = PVR_ROCE_IETH;
		packets->frame.inv_rkey = hdr->ex.invalidate_rkey;
	}
	emit_payload(packets, request, writes ? PVR_ROCE_WRITE : PVR_ROCE_SEND, last, NULL);
}

static void capture_request(struct packets *packets, const struct pvr_request *request)
{
	switch (request->op->kind) {
	case PVR_OP_SEND:
	case PVR_OP_WRITE:
		capture_data(packets, request);
		break;
	case PVR_OP_READ:
		/* All fragments of the response are to one request. */
		set_reth(packets, request);
		packets->frame.ack_request = true;
		if (!request->offset)
			emit_packet(packets, PVR_ROCE_READ_REQUEST, true, true, 0, 0, 0, NULL);
		break;
	case PVR_OP_ATOMIC:
		capture_atomic(packets, request);
		break;
	case PVR_OP_ATOMIC_WRITE:
		capture_atomic_write(packets, request);
		break;
	case PVR_OP_FLUSH:
		capture_flush(packets, request);
		break;
	default:
		break;
	}
}

void pvr_capture_request(const struct pvr_qp *qp, bool is_requester,
			 const struct pvr_request *request)
{
	struct packets packets;

	if (!qp->adapter->capture)
		return;
	packets = packets_of(qp, is_requester, request);
	capture_request(&packets, request);
}

/* ----------------------------------------------------------------------- responses */

static uint8_t syndrome_of(const struct pvr_qp *qp, struct pvr_syndrome syndrome)
{
	if (syndrome.kind == PVR_SYN_ACK)
		return NO_CREDITS;
	if (syndrome.kind == PVR_SYN_RNR)
		return SYNDROME_RNR | (qp->attr.min_rnr_timer & 31);
	switch (syndrome.status) {
	case PVRDMA_WC_REM_ACCESS_ERR:
		return SYNDROME_ACCESS;
	case PVRDMA_WC_REM_OP_ERR:
		return SYNDROME_OPERATION;
	default:
		return SYNDROME_INVALID_REQUEST;
	}
}

static void capture_original(struct packets *packets, const struct pvr_request *request)
{
	uint64_t value = 0;
	struct pvr_sg flat;

	if (!request->local) {
		/* It is kept for a requester that asks again. */
		pvr_replay_find(packets->qp, request->from->psn, &value);
	} else {
		pvr_sg_build_flat(&flat, request->local->adapter, (uint8_t *)&value, sizeof(value));
		if (pvr_sg_copy(&flat, 0, request->local, 0, sizeof(value)))
			value = 0;
	}
	packets->frame.original = value;
	emit_packet(packets, PVR_ROCE_ATOMIC_ACK, true, true, 0, 0, 0, made_up);
}

/* The PSN of the packet that a response without data is about: the last, or a refused one. */
static uint32_t answered(const struct pvr_request *request, struct pvr_syndrome syndrome)
{
	bool first = syndrome.kind != PVR_SYN_ACK && request->op->kind != PVR_OP_WRITE;

	return first ? 0 : request->psns - 1;
}

static void capture_positive(struct packets *packets, const struct pvr_request *request,
			     struct pvr_syndrome syndrome)
{
	switch (request->op->kind) {
	case PVR_OP_READ:
		emit_payload(packets, request, PVR_ROCE_READ_RESPONSE, 0, made_up);
		break;
	case PVR_OP_ATOMIC:
		capture_original(packets, request);
		break;
	case PVR_OP_ATOMIC_WRITE:
	case PVR_OP_FLUSH:
		/* IBTA annex A19: without data */
		emit_packet(packets, PVR_ROCE_READ_RESPONSE, true, true, 0, 0, 0, made_up);
		break;
	default:
		if (request->last)
			emit_packet(packets, PVR_ROCE_ACK, true, true, 0,
				    answered(request, syndrome), 0, made_up);
		break;
	}
}

void pvr_capture_response(const struct pvr_qp *qp, bool is_requester,
			  const struct pvr_request *request, struct pvr_syndrome syndrome)
{
	struct packets packets;

	if (!qp->adapter->capture || qp->type == PVR_QPT_UC || syndrome.kind == PVR_SYN_NONE ||
	    syndrome.kind == PVR_SYN_PARTIAL || syndrome.kind == PVR_SYN_PAGE)
		return;
	packets = packets_of(qp, !is_requester, request);
	packets.frame.syndrome = syndrome_of(qp, syndrome);
	if (syndrome.kind == PVR_SYN_ACK)
		capture_positive(&packets, request, syndrome);
	else
		emit_packet(&packets, PVR_ROCE_ACK, true, true, 0, answered(request, syndrome), 0,
			    made_up);
}

void pvr_capture_exchange(const struct pvr_qp *from, const struct pvr_qp *to,
			  const struct pvr_request *request, struct pvr_syndrome syndrome)
{
	pvr_capture_request(from, true, request);
	pvr_capture_response(from, true, request, syndrome);
	if (!to || to->adapter == from->adapter)
		return;
	pvr_capture_request(to, false, request);
	pvr_capture_response(to, false, request, syndrome);
}

void pvr_capture_inbound(const struct pvr_qp *to, const struct pvr_request *request,
			 const struct pvr_sg *payload, struct pvr_syndrome syndrome)
{
	struct packets packets;

	if (!to->adapter->capture)
		return;
	packets = packets_of(to, false, request);
	packets.payload = payload;
	packets.base = request->offset;
	capture_request(&packets, request);
	pvr_capture_response(to, false, request, syndrome);
}

/* ----------------------------------------------------------------------- datagrams */

static void emit_datagram(const struct pvr_adapter *adapter, bool outgoing, uint32_t dst_qpn,
			  uint32_t psn, const struct pvr_datagram *dgram)
{
	uint32_t label = dgram->av->sl_tclass_flowlabel;
	struct pvr_roce_frame frame = {
		.net = net_of(dgram->gid_type, dgram->av->dgid),
		.traffic_class = (uint8_t)(label >> 20),
		.hop_limit = dgram->av->hop_limit ? dgram->av->hop_limit : HOP_LIMIT,
		.flow_label = label & 0xfffff,
		.src_port = pvr_roce_src_port(label & 0xfffff, dgram->src_qpn, dst_qpn),
		.opcode = (uint8_t)pvr_roce_opcode_of(PVR_ROCE_UD, PVR_ROCE_SEND, true, true,
						      dgram->has_imm ? PVR_ROCE_IMM : 0),
		.solicited = dgram->solicited,
		.migrated = MIGRATED,
		.pkey = PVR_PKEY,
		.dest_qpn = dst_qpn,
		.psn = psn,
		.qkey = dgram->qkey,
		.src_qpn = dgram->src_qpn,
		.payload_bytes = (uint32_t)dgram->payload->total,
	};

	memcpy(frame.dst_mac, dgram->av->dmac, sizeof(frame.dst_mac));
	if (outgoing)
		memcpy(frame.src_mac, adapter->mac, sizeof(frame.src_mac));
	memcpy(frame.dst_gid, dgram->av->dgid, sizeof(frame.dst_gid));
	memcpy(frame.src_gid, dgram->sgid, sizeof(frame.src_gid));
	memcpy(frame.imm, &dgram->imm, sizeof(frame.imm));
	if (outgoing)
		set_vlan(&frame, pvr_gid_get(adapter, dgram->av->gid_index), label >> 28 & 7);
	emit(adapter, outgoing, &frame, dgram->payload, 0,
	     outgoing ? NULL : "the source MAC and the PSN are not known here");
}

void pvr_capture_sent_datagram(const struct pvr_qp *from, uint32_t dst_qpn,
			       const struct pvr_datagram *dgram)
{
	if (from->adapter->capture)
		emit_datagram(from->adapter, true, dst_qpn, from->sq_psn, dgram);
}

void pvr_capture_received_datagram(const struct pvr_adapter *to, const struct pvr_qp *qp,
				   const struct pvr_datagram *dgram)
{
	if (to->capture)
		emit_datagram(to, false, dgram->multicast || !qp ? PVR_MULTICAST_QPN : qp->qpn, 0,
			      dgram);
}

/* ------------------------------------------------------------------------ an adapter */

void pvr_adapter_set_capture(struct pvr_adapter *adapter, const struct pvr_capture *capture)
{
	struct pvr_engine *engine = adapter->engine;
	const struct pvr_path_ops **path;

	engine->captures += !!capture - !!adapter->capture;
	adapter->capture = capture;
	for (path = engine->paths; *path; path++)
		if ((*path)->twin && (*path)->captures != !!engine->captures)
			*path = (*path)->twin;
}
