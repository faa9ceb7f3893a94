// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Ports: input from the segment.
 *
 * DOC: silent drops
 *
 * A frame is dropped without an answer if a header is malformed, if no adapter of the port
 * has its MAC, if no queue pair is for it or the queue pair has another peer, or if its
 * source GID is here or at another pvrdmad. The ICRC is checked last, because it takes the
 * most time. So a frame from an unknown source gets no answer that could be directed at
 * another machine.
 */
#include "path/wire/internal.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/sg.h"
#include "gid/dest.h"
#include "rdma/capture.h"
#include "rdma/cq.h"
#include "rdma/worker.h"
#include "roce/crc.h"
#include "roce/gso.h"

struct pvr_port *pvr_port_create(struct pvr_engine *engine, const char *name, uint32_t mtu,
				 const struct pvr_port_ops *ops, void *opaque)
{
	struct pvr_port *port = calloc(1, sizeof(*port));

	if (!port)
		return NULL;
	port->engine = engine;
	snprintf(port->name, sizeof(port->name), "%s", name);
	port->mtu = mtu;
	port->ops = ops;
	port->opaque = opaque;
	LIST_INIT(&port->adapters);
	return port;
}

void pvr_port_destroy(struct pvr_port *port)
{
	free(port);
}

void pvr_port_set_gso(struct pvr_port *port, bool on)
{
	__atomic_store_n(&port->gso, on, __ATOMIC_RELAXED);
}

void pvr_port_lost(struct pvr_port *port, uint64_t count)
{
	pvr_eth_count(&port->stats.rx_lost, count);
}

void pvr_port_get_stats(const struct pvr_port *port, struct pvr_port_stats *stats)
{
	const struct pvr_port_stats *from = &port->stats;

	*stats = (struct pvr_port_stats){
		.tx_frames = pvr_stat_get(&from->tx_frames),
		.rx_frames = pvr_stat_get(&from->rx_frames),
		.rx_other = pvr_stat_get(&from->rx_other),
		.rx_malformed = pvr_stat_get(&from->rx_malformed),
		.rx_icrc = pvr_stat_get(&from->rx_icrc),
		.rx_unknown = pvr_stat_get(&from->rx_unknown),
		.rx_lost = pvr_stat_get(&from->rx_lost),
		.tx_full = pvr_stat_get(&from->tx_full),
		.retransmits = pvr_stat_get(&from->retransmits),
		.tx_cnps = pvr_stat_get(&from->tx_cnps),
		.rx_cnps = pvr_stat_get(&from->rx_cnps),
	};
}

const struct pvr_port *pvr_adapter_port(const struct pvr_adapter *adapter)
{
	return adapter->port;
}

/* ------------------------------------------------------------------------------- checks */

static enum pvr_gid_state find(struct pvr_adapter *adapter, const uint8_t gid[16],
			       struct pvr_gid_quota *quota)
{
	struct pvr_host *host;

	if (pvr_dest_get(adapter, gid)->adapter)
		return PVR_GID_AT_HOST;
	return pvr_gid_resolve(adapter, gid, quota, &host);
}

enum pvr_gid_state pvr_eth_find(struct pvr_adapter *adapter, const uint8_t gid[16])
{
	return find(adapter, gid, NULL);
}

enum pvr_gid_state pvr_eth_find_source(struct pvr_eth_adapter *wire, const uint8_t gid[16])
{
	return find(wire->adapter, gid, &wire->lookups);
}

bool pvr_eth_is_mac_ok(const uint8_t mac[6])
{
	static const uint8_t zero[6];

	return !(mac[0] & 1) && memcmp(mac, zero, sizeof(zero));
}

static bool is_type_ok(const struct pvr_qp *qp, const struct pvr_roce_frame *frame)
{
	switch (pvr_roce_transport(frame->opcode)) {
	case PVR_ROCE_RC:
		return qp->type == PVR_QPT_RC;
	case PVR_ROCE_UC:
		return qp->type == PVR_QPT_UC;
	case PVR_ROCE_CNP:
		return qp->type == PVR_QPT_RC || qp->type == PVR_QPT_UC;
	default:
		return false;
	}
}

/* The queue pair that a packet of RC or UC, or a CNP, is for: connected to its sender. */
static struct pvr_qp *find_qp(struct pvr_adapter *adapter, const struct pvr_roce_frame *frame)
{
	struct pvr_qp *qp = pvr_qp_find(adapter, frame->dest_qpn);
	const struct pvr_gid_entry *entry;

	if (!qp || !is_type_ok(qp, frame) || qp->xrc_role || qp->state < PVR_QPS_RTR)
		return NULL;
	entry = pvr_gid_get(adapter, qp->attr.ah_attr.sgid_index);
	if (!entry || memcmp(entry->gid, frame->dst_gid, sizeof(entry->gid)) ||
	    !pvr_eth_is_on_vlan(entry, frame->vlan) ||
	    memcmp(qp->attr.ah_attr.dgid, frame->src_gid, sizeof(frame->src_gid)))
		return NULL;
	return qp;
}

static bool is_response(const struct pvr_roce_opcode *op)
{
	return op->kind == PVR_ROCE_READ_RESPONSE || op->kind == PVR_ROCE_ACK ||
	       op->kind == PVR_ROCE_ATOMIC_ACK;
}

/* -------------------------------------------------------------------------------- input */

enum verdict { TAKEN, UNKNOWN, BAD_ICRC };

static struct pvr_eth_adapter *adapter_of(struct pvr_port *port, const uint8_t mac[6])
{
	struct pvr_eth_adapter *wire;

	LIST_FOREACH(wire, &port->adapters, link)
		if (!memcmp(wire->adapter->mac, mac, sizeof(wire->adapter->mac)))
			return wire;
	return NULL;
}

static void end_batch(struct pvr_eth_batch *batch)
{
	struct pvr_eth_adapter *wire = batch->wire;

	if (!wire)
		return;
	if (!pvr_eth_hold_ack(batch)) {
		pvr_eth_send_held(wire);
		pvr_eth_flush_ack(batch);
	}
	pvr_eth_flush(wire);
	pvr_publish(wire->adapter);
	pvr_adapter_unlock(wire->adapter);
	batch->wire = NULL;
}

static void enter(struct pvr_eth_batch *batch, struct pvr_eth_adapter *wire)
{
	if (batch->wire == wire)
		return;
	end_batch(batch);
	pvr_adapter_lock(wire->adapter);
	batch->wire = wire;
}

/* The adapter is locked. Return: false if the frame is not for it, or its ICRC is bad. */
static bool is_acceptable(struct pvr_eth_adapter *wire, const struct pvr_roce_frame *frame,
			  struct pvr_qp **qp)
{
	struct pvr_adapter *adapter = wire->adapter;

	*qp = NULL;
	if (!adapter->link_up || !pvr_adapter_dma_ok(adapter))
		return false;
	if (pvr_roce_transport(frame->opcode) != PVR_ROCE_UD) {
		*qp = find_qp(adapter, frame);
		if (!*qp)
			return false;
	}
	switch (pvr_eth_find_source(wire, frame->src_gid)) {
	case PVR_GID_ABSENT:
		return true;
	case PVR_GID_AT_HOST:
		pvr_log_guest(
			adapter,
			"%s: dropped a RoCE frame whose source GID an adapter here or another pvrdmad has: check the address of the machine that sends it",
			wire->port->name);
		return false;
	default:
		return false;
	}
}

/* Return: whether the frame is to a group, to which no member of it may answer. */
static bool is_to_group(const struct pvr_roce_frame *frame)
{
	uint8_t mac[6];

	pvr_eth_group_mac(mac, frame->dst_gid);
	return pvr_roce_transport(frame->opcode) == PVR_ROCE_UD &&
	       frame->dest_qpn == PVR_MULTICAST_QPN && pvr_gid_is_multicast(frame->dst_gid) &&
	       !memcmp(mac, frame->dst_mac, sizeof(mac));
}

/*
 * Members of adapters here and at other pvrdmads get datagrams of each other by other paths:
 * those copies are dropped here.
 */
static bool is_for_member(struct pvr_eth_adapter *wire, const struct pvr_roce_frame *frame)
{
	return wire->adapter->link_up && pvr_adapter_dma_ok(wire->adapter) &&
	       pvr_eth_is_member(wire->adapter, frame) &&
	       pvr_eth_find_source(wire, frame->src_gid) == PVR_GID_ABSENT;
}

static enum verdict input_to_group(struct pvr_port *port, struct pvr_eth_batch *batch,
				   const struct pvr_eth_packet *packet, const uint8_t *data,
				   size_t end)
{
	struct pvr_eth_adapter *wire;
	bool found = false;

	if (!is_to_group(packet->frame))
		return UNKNOWN;
	/* The rest of a frame of several packets. */
	if (batch->copied >= PVR_ETH_GROUP_BYTES) {
		pvr_eth_count(&port->stats.rx_lost, 1);
		return TAKEN;
	}
	LIST_FOREACH(wire, &port->adapters, link) {
		enter(batch, wire);
		if (!is_for_member(wire, packet->frame))
			continue;
		if (!found && pvr_roce_check_icrc(data, end) != PVR_ROCE_OK)
			return BAD_ICRC;
		found = true;
		if (!pvr_eth_is_copy(wire, packet->frame))
			batch->copied += pvr_eth_group_datagram(wire->adapter, packet);
	}
	return found ? TAKEN : UNKNOWN;
}

/* One packet, or a run that fits. */
static void deliver_one(struct pvr_eth_batch *batch, struct pvr_qp *qp,
			const struct pvr_eth_packet *packet)
{
	if ((packet->frame->traffic_class & PVR_ROCE_ECN) == PVR_ROCE_CE &&
	    packet->op->kind != PVR_ROCE_CONGESTION)
		pvr_eth_marked(qp);
	if (packet->op->kind == PVR_ROCE_CONGESTION)
		pvr_eth_congested(qp);
	else if (is_response(packet->op))
		pvr_eth_response(qp, packet);
	else
		pvr_eth_request(batch, qp, packet);
}

static void deliver_each(struct pvr_eth_batch *batch, struct pvr_qp *qp,
			 const struct pvr_eth_packet *run)
{
	struct pvr_roce_frame frame = *run->frame;
	struct pvr_eth_packet packet = *run;
	unsigned int i;

	packet.frame = &frame;
	packet.count = 1;
	for (i = 0; i < run->count; i++) {
		deliver_one(batch, qp, &packet);
		frame.psn = pvr_eth_psn_add(frame.psn, 1);
		packet.payload += run->stride;
	}
}

static bool is_run_ok(const struct pvr_qp *qp, const struct pvr_eth_packet *run)
{
	return is_response(run->op) ? pvr_eth_responses_fit(qp, run)
				    : pvr_eth_requests_fit(qp, run);
}

/* @qp: not that of a datagram */
static void deliver(struct pvr_eth_batch *batch, struct pvr_qp *qp,
		    const struct pvr_eth_packet *packet)
{
	if (packet->count > 1 && !is_run_ok(qp, packet))
		deliver_each(batch, qp, packet);
	else
		deliver_one(batch, qp, packet);
}

/* The last packet of a frame: the next one may have the same headers. */
struct cut_packet {
	struct pvr_roce_frame frame;
	const struct pvr_roce_opcode *op;
	struct pvr_qp *qp; /* it was delivered to; NULL: none */
	uint8_t bth[PVR_ROCE_BTH_COMMON];
	size_t bytes, payload; /* of the UDP payload; offset of the payload in the packet */
	bool has_head;
	struct pvr_roce_crc_head head;
};

static enum verdict input_to_adapter(struct pvr_port *port, struct pvr_eth_batch *batch,
				     const struct pvr_eth_packet *packet, const uint8_t *data,
				     size_t end, struct pvr_qp **qp)
{
	const struct pvr_roce_frame *frame = packet->frame;
	struct pvr_eth_adapter *wire = adapter_of(port, frame->dst_mac);

	if (!wire)
		return UNKNOWN;
	enter(batch, wire);
	if (!is_acceptable(wire, frame, qp))
		return UNKNOWN;
	if (pvr_roce_check_icrc(data, end) != PVR_ROCE_OK)
		return BAD_ICRC;
	if (*qp && pvr_captures(wire->adapter))
		pvr_capture_frame(wire->adapter, false, data, end + PVR_ROCE_ICRC_BYTES, frame,
				  (size_t)(packet->payload - data));
	if (*qp)
		deliver(batch, *qp, packet);
	else
		pvr_eth_datagram(wire->adapter, packet);
	return TAKEN;
}

static void count_verdict(struct pvr_port *port, enum verdict verdict)
{
	if (verdict == UNKNOWN)
		pvr_eth_count(&port->stats.rx_unknown, 1);
	else if (verdict == BAD_ICRC)
		pvr_eth_count(&port->stats.rx_icrc, 1);
}

/* @last: set to the packet, but for bth and bytes */
static void input_one(struct pvr_port *port, struct pvr_eth_batch *batch, uint8_t *data,
		      size_t bytes, struct cut_packet *last)
{
	struct pvr_roce_frame *frame = &last->frame;
	struct pvr_eth_packet packet = { .frame = frame, .count = 1 };
	struct pvr_qp *qp = NULL;
	enum pvr_roce_drop drop;
	enum verdict verdict;
	size_t payload, end;

	last->qp = NULL;
	last->has_head = false;
	batch->frames++;
	drop = pvr_roce_parse(data, bytes, frame, &payload, &end);
	if (drop == PVR_ROCE_DROP_TYPE || (drop == PVR_ROCE_OK && frame->net == PVR_ROCE_V1)) {
		pvr_eth_count(&port->stats.rx_other, 1);
		return;
	}
	if (drop != PVR_ROCE_OK || frame->payload_bytes > PVR_ROCE_PAYLOAD_MAX) {
		pvr_eth_count(&port->stats.rx_malformed, 1);
		return;
	}
	packet.op = last->op = pvr_roce_opcode(frame->opcode);
	packet.payload = data + payload;
	last->payload = payload;
	if (frame->dst_mac[0] & 1)
		verdict = input_to_group(port, batch, &packet, data, end);
	else
		verdict = input_to_adapter(port, batch, &packet, data, end, &qp);
	if (verdict == TAKEN)
		last->qp = qp;
	count_verdict(port, verdict);
}

/* --------------------------------------------------------------- frames of several packets */

static bool has_headers_of(const struct cut_packet *last, const uint8_t *bth, size_t bytes)
{
	return bytes == last->bytes && !memcmp(bth, last->bth, sizeof(last->bth));
}

/*
 * Whether the next packet has the headers of the last one. Then the findings for that one hold:
 * the adapter has been locked since.
 */
static bool is_alike(const struct cut_packet *last, const uint8_t *bth, size_t bytes)
{
	const struct pvr_adapter *adapter = last->qp ? last->qp->adapter : NULL;

	return adapter && has_headers_of(last, bth, bytes) && adapter->link_up &&
	       pvr_adapter_dma_ok(adapter) && !pvr_captures(adapter);
}

/* Takes the next packets, as far as they are a run with a right ICRC each. Return: their number. */
static unsigned int take_run(const struct pvr_eth_adapter *wire, struct pvr_roce_cut *cut,
			     struct cut_packet *last)
{
	unsigned int max = PVR_ETH_RUN_BYTES / last->frame.payload_bytes, count;
	bool ack_request = false;
	const uint8_t *bth;
	size_t bytes;

	for (count = 0; count < PVR_ETH_RUN && count < max; count++) {
		bth = pvr_roce_cut_peek(cut, &bytes);
		if (!bth || !has_headers_of(last, bth, bytes) ||
		    pvr_roce_bth_psn(bth) != pvr_eth_psn_add(last->frame.psn, count))
			break;
		if (!pvr_roce_cut_is_middle_ok(cut, &last->head, wire->expected[count]))
			break;
		ack_request |= pvr_roce_bth_ack_request(bth);
		pvr_roce_cut_skip(cut);
	}
	last->frame.ack_request = ack_request;
	return count;
}

/* The next packet is the middle of a message. So may be those behind it. */
static void input_middle(struct pvr_port *port, struct pvr_eth_batch *batch,
			 struct pvr_roce_cut *cut, struct cut_packet *last)
{
	struct pvr_eth_packet packet = {
		.frame = &last->frame,
		.op = last->op,
		.payload = cut->at - cut->headers + last->payload,
		.stride = last->bytes,
	};

	if (!last->has_head)
		pvr_roce_cut_head(cut, &last->head);
	last->has_head = true;
	last->frame.psn = pvr_roce_bth_psn(cut->at);
	packet.count = take_run(batch->wire, cut, last);
	if (packet.count) {
		batch->frames += packet.count;
		deliver(batch, last->qp, &packet);
		return;
	}
	batch->frames++;
	count_verdict(port, BAD_ICRC);
	pvr_roce_cut_skip(cut);
}

static void input_alike(struct pvr_port *port, struct pvr_eth_batch *batch,
			struct pvr_roce_cut *cut, struct cut_packet *last)
{
	const struct pvr_eth_packet packet = {
		.frame = &last->frame,
		.op = last->op,
		.payload = cut->at - cut->headers + last->payload,
		.count = 1,
	};
	enum verdict verdict = BAD_ICRC;

	if (pvr_roce_is_middle(last->op) && last->frame.payload_bytes) {
		input_middle(port, batch, cut, last);
		return;
	}
	batch->frames++;
	pvr_roce_parse_next(cut->at, &last->frame);
	if (pvr_roce_cut_is_icrc_ok(cut)) {
		deliver(batch, last->qp, &packet);
		verdict = TAKEN;
	}
	count_verdict(port, verdict);
	pvr_roce_cut_skip(cut);
}

static void input_cut(struct pvr_port *port, struct pvr_eth_batch *batch, struct pvr_roce_cut *cut)
{
	struct cut_packet last PVR_UNINITIALIZED;
	uint8_t *packet, bth[PVR_ROCE_BTH_COMMON];
	const uint8_t *next;
	size_t bytes, whole;

	last.qp = NULL;
	last.has_head = false;
	while ((next = pvr_roce_cut_peek(cut, &bytes))) {
		if (is_alike(&last, next, bytes)) {
			input_alike(port, batch, cut, &last);
			continue;
		}
		/* A short packet is overwritten by the headers of the next one. */
		memcpy(bth, next, bytes < sizeof(bth) ? bytes : sizeof(bth));
		packet = pvr_roce_cut_next(cut, &whole);
		input_one(port, batch, packet, whole, &last);
		memcpy(last.bth, bth, sizeof(bth));
		last.bytes = bytes;
	}
}

/* A frame of several packets is cut, in its own memory. */
static void input_frame(struct pvr_port *port, struct pvr_eth_batch *batch,
			const struct pvr_port_frame *frame)
{
	struct cut_packet last PVR_UNINITIALIZED;
	struct pvr_roce_cut cut;

	if (frame->segment && pvr_roce_cut_begin(&cut, frame->data, frame->bytes, frame->segment))
		input_cut(port, batch, &cut);
	else
		input_one(port, batch, frame->data, frame->bytes, &last);
}

/* In a long batch the peer gets an ACK now and then: it sends more while the rest is handled. */
static void ack_early(struct pvr_eth_batch *batch, uint32_t bytes)
{
	batch->unacked += bytes;
	if (batch->unacked < PVR_ETH_ACK_BYTES || !batch->acks)
		return;
	batch->unacked = 0;
	pvr_eth_flush_ack(batch);
	pvr_eth_flush(batch->wire);
}

unsigned int pvr_port_input(struct pvr_port *port, const struct pvr_port_frame *frames,
			    unsigned int count)
{
	struct pvr_eth_batch batch = { 0 };
	unsigned int i;

	for (i = 0; i < count && batch.copied < PVR_ETH_GROUP_BYTES; i++) {
		input_frame(port, &batch, &frames[i]);
		ack_early(&batch, frames[i].bytes);
	}
	end_batch(&batch);
	pvr_eth_count(&port->stats.rx_frames, batch.frames);
	return i;
}
