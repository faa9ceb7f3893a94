// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* Frames to the segment. */
#include "path/wire/internal.h"

#include <string.h>

#include "core/sg.h"
#include "rdma/capture.h"
#include "roce/crc.h"
#include "roce/gso.h"

#define HOP_LIMIT_DEFAULT 64
/* Runs of guest memory that are looked up at once; a packet of scattered pages has two. */
#define RUNS 4
#define FRAME_MAX (PVR_ROCE_HEADER_MAX + PVR_ROCE_PAYLOAD_MAX + PVR_ROCE_TRAILER_MAX)

bool pvr_eth_address(struct pvr_roce_frame *frame, const struct pvr_qp *qp)
{
	const struct pvr_ah_attr *ah = &qp->attr.ah_attr;
	const struct pvr_gid_entry *entry = pvr_gid_get(qp->adapter, ah->sgid_index);

	if (!entry)
		return false;
	memcpy(frame->dst_mac, ah->dmac, sizeof(frame->dst_mac));
	memcpy(frame->src_gid, entry->gid, sizeof(frame->src_gid));
	memcpy(frame->dst_gid, ah->dgid, sizeof(frame->dst_gid));
	frame->vlan = pvr_eth_vlan_tag(entry, ah->sl);
	frame->traffic_class = (uint8_t)(ah->traffic_class & ~PVR_ROCE_ECN);
	frame->hop_limit = ah->hop_limit;
	frame->flow_label = ah->flow_label & 0xfffff;
	frame->src_port = pvr_roce_src_port(frame->flow_label, qp->qpn, qp->attr.dest_qp_num);
	frame->dest_qpn = qp->attr.dest_qp_num & PVR_ETH_PSN_MASK;
	return true;
}

static void complete_header(struct pvr_roce_frame *frame, const struct pvr_adapter *adapter)
{
	memcpy(frame->src_mac, adapter->mac, sizeof(frame->src_mac));
	frame->net = pvr_gid_is_ipv4(frame->dst_gid) ? PVR_ROCE_IPV4 : PVR_ROCE_IPV6;
	frame->pkey = PVR_PKEY;
	frame->migrated = frame->opcode != PVR_ROCE_OP_CNP;
	/* Peers answer no marked datagram. */
	if (adapter->wire->ecn && frame->payload_bytes &&
	    pvr_roce_transport(frame->opcode) != PVR_ROCE_UD)
		frame->traffic_class |= PVR_ROCE_ECT0;
	if (!frame->hop_limit)
		frame->hop_limit = HOP_LIMIT_DEFAULT;
}

/* ------------------------------------------------------------------------------- a batch */

/* The last frame takes no more packets. */
static void close_last(struct pvr_eth_tx *tx)
{
	struct pvr_port_frame *last;

	if (!tx->packets)
		return;
	last = &tx->frames[tx->count - 1];
	if (tx->packets > 1)
		pvr_roce_gso_close(last->data, last->headers, last->bytes);
	else
		last->segment = 0;
	tx->packets = 0;
}

bool pvr_eth_flush(struct pvr_eth_adapter *wire)
{
	struct pvr_port *port = wire->port;
	struct pvr_eth_tx *tx = &wire->tx;

	if (!tx->count)
		return true;
	close_last(tx);
	tx->first += port->ops->send(port->opaque, tx->frames + tx->first, tx->count - tx->first);
	if (tx->first < tx->count) {
		pvr_eth_count(&port->stats.tx_full, 1);
		pvr_eth_set_timer(wire, &wire->timer, PVR_ETH_FULL_NS);
		return false;
	}
	tx->first = 0;
	tx->count = 0;
	tx->used = 0;
	return true;
}

static bool has_room(const struct pvr_eth_tx *tx)
{
	return tx->count < PVR_ETH_TX_FRAMES && tx->used + FRAME_MAX <= sizeof(tx->buf);
}

/* Whether a packet with @bytes of UDP payload may be one more of the last frame. */
static bool may_join(const struct pvr_eth_tx *tx, size_t bytes)
{
	const struct pvr_port_frame *last;

	if (!tx->packets || tx->packets == PVR_ROCE_GSO_SEGMENTS)
		return false;
	last = &tx->frames[tx->count - 1];
	return bytes <= last->segment && last->bytes + bytes <= PVR_ROCE_GSO_MAX;
}

/* Adds a packet to the last frame. Its UDP payload is at its end. */
static void join(struct pvr_eth_tx *tx, size_t bytes)
{
	struct pvr_port_frame *last = &tx->frames[tx->count - 1];

	last->bytes += (uint32_t)bytes;
	tx->used += bytes;
	tx->packets++;
	if (bytes < last->segment)
		close_last(tx);
}

/* Begins a frame with a packet at the end of the buffer. */
static void begin(struct pvr_eth_tx *tx, size_t headers, size_t bytes, bool gso)
{
	close_last(tx);
	tx->frames[tx->count++] = (struct pvr_port_frame){
		.data = tx->buf + tx->used,
		.bytes = (uint32_t)bytes,
		.headers = (uint16_t)headers,
		.segment = gso ? (uint16_t)(bytes - headers) : 0,
	};
	tx->packets = gso;
	tx->used += bytes;
}

/* ------------------------------------------------------------------------------ a packet */

/* Whether the packet of @place is one more of the last gathered frame. */
static bool is_shared(const struct pvr_eth_tx *tx, const struct pvr_eth_place *place, size_t bytes)
{
	return may_join(tx, bytes) &&
	       pvr_roce_gso_is_same_flow(tx->frames[tx->count - 1].data, place->header, place->udp);
}

static void put_headers(struct pvr_eth_tx *tx, size_t shared)
{
	struct pvr_eth_place *place = &tx->place;

	place->at = tx->buf + tx->used;
	place->shared = shared;
	memcpy(place->at, place->header + shared, place->headers - shared);
}

/* Builds the headers of @frame: as one more packet of the last gathered frame, or behind it. */
static void place(struct pvr_eth_tx *tx, struct pvr_roce_frame *frame)
{
	struct pvr_eth_place *place = &tx->place;
	size_t shared = 0;

	frame->ip_id = (uint16_t)tx->packets;
	place->headers = pvr_roce_build(place->header, frame);
	place->udp = pvr_roce_gso_headers(place->header, place->headers);
	if (is_shared(tx, place, pvr_roce_frame_bytes(place->headers, frame) - place->udp)) {
		shared = place->udp;
	} else if (frame->ip_id) {
		frame->ip_id = 0;
		pvr_roce_build(place->header, frame);
	}
	put_headers(tx, shared);
}

/* The same for pvr_eth_send_next(). Only the first packet of a frame needs IPv4's checksum. */
static void place_next(struct pvr_eth_tx *tx, struct pvr_roce_frame *frame)
{
	const struct pvr_eth_place *last = &tx->place;
	bool joins = may_join(tx, pvr_roce_frame_bytes(last->headers, frame) - last->udp);

	if (!joins && frame->ip_id) {
		place(tx, frame);
		return;
	}
	if (joins)
		frame->ip_id = (uint16_t)tx->packets;
	pvr_roce_build_next(tx->place.header, frame);
	put_headers(tx, joins ? last->udp : 0);
}

/* Copies @bytes of @sg from @offset on. Return: false if guest memory was unplugged. */
static bool copy_payload(uint8_t *to, const struct pvr_sg *sg, uint64_t offset, uint64_t bytes,
			 uint32_t *crc)
{
	struct iovec runs[RUNS] PVR_UNINITIALIZED;
	int n, i;

	if (bytes && sg->flat) {
		*crc = pvr_roce_crc_copy(*crc, to, sg->flat + offset, bytes);
		return true;
	}
	while (bytes) {
		n = pvr_sg_iov(sg, offset, bytes, runs, RUNS);
		if (n <= 0)
			return false;
		for (i = 0; i < n; i++) {
			*crc = pvr_roce_crc_copy(*crc, to, runs[i].iov_base, runs[i].iov_len);
			to += runs[i].iov_len;
			offset += runs[i].iov_len;
			bytes -= runs[i].iov_len;
		}
	}
	return true;
}

/* The ICRC is that of the copy: the guest may write to its memory meanwhile. */
static bool fill(const struct pvr_eth_place *place, const struct pvr_roce_frame *frame,
		 const struct pvr_sg *sg, uint64_t offset, size_t *bytes)
{
	uint32_t crc = pvr_roce_crc_headers(place->header, place->headers, frame);
	uint8_t *payload = place->at + place->headers - place->shared;

	if (!copy_payload(payload, sg, offset, frame->payload_bytes, &crc))
		return false;
	*bytes =
		place->headers - place->shared + pvr_roce_close(payload, crc, frame->payload_bytes);
	return true;
}

/* Return: PVR_ETH_SENT if there is room for a packet. */
static enum pvr_eth_sent make_room(struct pvr_eth_adapter *wire)
{
	return has_room(&wire->tx) || pvr_eth_flush(wire) ? PVR_ETH_SENT : PVR_ETH_FULL;
}

/* Adds the payload of the packet whose headers are placed. */
static enum pvr_eth_sent add(struct pvr_adapter *adapter, const struct pvr_roce_frame *frame,
			     const struct pvr_sg *sg, uint64_t offset)
{
	struct pvr_eth_adapter *wire = adapter->wire;
	const struct pvr_eth_place *to = &wire->tx.place;
	bool captures = pvr_captures(adapter);
	size_t bytes;

	if (!fill(to, frame, sg, offset, &bytes))
		return PVR_ETH_FAULT;
	/* A capture has each packet by itself. */
	if (captures && pvr_roce_transport(frame->opcode) != PVR_ROCE_UD)
		pvr_capture_frame(adapter, true, to->at, bytes, frame, to->headers);
	if (to->shared)
		join(&wire->tx, bytes);
	else
		begin(&wire->tx, to->udp, bytes,
		      !captures && __atomic_load_n(&wire->port->gso, __ATOMIC_RELAXED));
	pvr_eth_count(&wire->port->stats.tx_frames, 1);
	return PVR_ETH_SENT;
}

enum pvr_eth_sent pvr_eth_send(struct pvr_adapter *adapter, struct pvr_roce_frame *frame,
			       const struct pvr_sg *sg, uint64_t offset)
{
	struct pvr_eth_adapter *wire = adapter->wire;

	/* As on a cable that is not plugged in. */
	if (!adapter->link_up)
		return PVR_ETH_SENT;
	if (make_room(wire) != PVR_ETH_SENT)
		return PVR_ETH_FULL;
	complete_header(frame, adapter);
	if (pvr_captures(adapter))
		close_last(&wire->tx);
	place(&wire->tx, frame);
	return add(adapter, frame, sg, offset);
}

enum pvr_eth_sent pvr_eth_send_next(struct pvr_adapter *adapter, struct pvr_roce_frame *frame,
				    const struct pvr_sg *sg, uint64_t offset)
{
	struct pvr_eth_adapter *wire = adapter->wire;

	if (!adapter->link_up || pvr_captures(adapter))
		return pvr_eth_send(adapter, frame, sg, offset);
	if (make_room(wire) != PVR_ETH_SENT)
		return PVR_ETH_FULL;
	place_next(&wire->tx, frame);
	return add(adapter, frame, sg, offset);
}
