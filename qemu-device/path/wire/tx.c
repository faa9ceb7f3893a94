// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* Frames to the segment. */
#include "path/wire/internal.h"

#include <string.h>

#include "core/sg.h"
#include "rdma/capture.h"
#include "roce/crc.h"
#include "roce/gso.h"

#define HOP_LIMIT_DEFAULT 64
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
	pvr_eth_count(&port->stats.tx_frames, tx->added);
	tx->added = 0;
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

/* Copies @bytes of @sg from @offset on. @crc: or NULL. Return: false if guest memory was unplugged. */
static bool copy_payload(uint8_t *to, const struct pvr_sg *sg, uint64_t offset, uint64_t bytes,
			 uint32_t *crc)
{
	struct pvr_eth_span source PVR_UNINITIALIZED;
	const uint8_t *from, *next;
	uint64_t len;

	for (pvr_eth_span_init(&source, sg, offset); bytes; bytes -= len) {
		from = pvr_eth_span_take(&source, bytes, &len, &next);
		if (!from)
			return false;
		if (crc)
			*crc = pvr_roce_crc_copy(*crc, to, from, len, next);
		else
			memcpy(to, from, len);
		to += len;
	}
	return true;
}

/* The ICRC is that of the copy: the guest may write to its memory meanwhile. */
static bool fill(const struct pvr_eth_place *place, const struct pvr_roce_frame *frame,
		 const struct pvr_sg *sg, uint64_t offset, size_t *bytes)
{
	uint8_t *payload = place->at + place->headers - place->shared;
	size_t from_bth = place->headers - place->udp;
	bool is_small = frame->payload_bytes <= PVR_ROCE_SMALL;
	uint32_t crc = 0;

	if (!is_small)
		crc = pvr_roce_crc_headers(place->header, place->headers, frame);
	if (!copy_payload(payload, sg, offset, frame->payload_bytes, is_small ? NULL : &crc))
		return false;
	if (is_small)
		crc = pvr_roce_crc_small(place->header, payload - from_bth,
					 from_bth + frame->payload_bytes, frame);
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
	wire->tx.added++;
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

/* ------------------------------------------------------------------------------------ a run */

/* Return: the packets of @bytes of UDP payload that the last frame takes, at most @count. */
static unsigned int room_for(const struct pvr_eth_tx *tx, size_t bytes, unsigned int count)
{
	const struct pvr_port_frame *last;
	size_t most;

	if (!tx->packets || tx->used + FRAME_MAX > sizeof(tx->buf))
		return 0;
	last = &tx->frames[tx->count - 1];
	if (bytes != last->segment)
		return 0;
	most = (PVR_ROCE_GSO_MAX - last->bytes) / bytes;
	if (count > most)
		count = (unsigned int)most;
	most = (sizeof(tx->buf) - tx->used) / bytes;
	if (count > most)
		count = (unsigned int)most;
	return count < PVR_ROCE_GSO_SEGMENTS - tx->packets ? count
							   : PVR_ROCE_GSO_SEGMENTS - tx->packets;
}

/* Copies the payload of a packet, and sets *crc to its ICRC. Return: false if memory was unplugged. */
static bool copy_middle(struct pvr_eth_span *source, const struct pvr_roce_crc_head *head,
			uint16_t id, uint32_t psn, uint8_t *to, uint64_t bytes, uint32_t *crc)
{
	const uint8_t *from, *next;
	uint64_t len, done;

	from = pvr_eth_span_take(source, bytes, &len, &next);
	if (!from)
		return false;
	if (len == bytes) {
		*crc = pvr_roce_crc_packet_copy(head, id, psn, to, from, bytes, next);
		return true;
	}
	memcpy(to, from, len);
	for (done = len; done < bytes; done += len) {
		from = pvr_eth_span_take(source, bytes - done, &len, &next);
		if (!from)
			return false;
		memcpy(to + done, from, len);
	}
	*crc = pvr_roce_crc_packet(head, id, psn, to, bytes, NULL);
	return true;
}

/* Adds the packet with the last four bytes @psn of its BTH to the last frame. Return: likewise. */
static bool add_middle(struct pvr_eth_tx *tx, struct pvr_eth_span *source,
		       const struct pvr_roce_crc_head *head, uint32_t psn, uint32_t payload_bytes)
{
	const struct pvr_eth_place *like = &tx->place;
	uint8_t *p = tx->buf + tx->used, *payload = p + like->headers - like->udp;
	uint32_t crc;

	memcpy(p, like->header + like->udp, like->headers - like->udp);
	pvr_roce_bth_set_psn(p, psn);
	if (!copy_middle(source, head, (uint16_t)tx->packets, psn, payload, payload_bytes, &crc))
		return false;
	join(tx, like->headers - like->udp + pvr_roce_close(payload, crc, payload_bytes));
	return true;
}

unsigned int pvr_eth_send_run(struct pvr_adapter *adapter, struct pvr_roce_frame *frame,
			      const struct pvr_sg *sg, uint64_t offset, unsigned int count,
			      uint32_t ack_interval)
{
	struct pvr_eth_adapter *wire = adapter->wire;
	struct pvr_eth_tx *tx = &wire->tx;
	size_t bytes = pvr_roce_frame_bytes(tx->place.headers, frame) - tx->place.udp;
	struct pvr_roce_crc_head head PVR_UNINITIALIZED;
	struct pvr_eth_span source PVR_UNINITIALIZED;
	unsigned int n;
	uint32_t psn;

	count = room_for(tx, bytes, count);
	if (!count || !adapter->link_up || pvr_captures(adapter))
		return 0;
	pvr_roce_frame_head(&head, tx->place.header, frame);
	pvr_eth_span_init(&source, sg, offset);
	for (n = 0; n < count; n++) {
		psn = pvr_eth_psn_add(frame->psn, 1);
		if (ack_interval && psn % ack_interval == ack_interval - 1)
			psn |= PVR_ROCE_BTH_ACK;
		if (!add_middle(tx, &source, &head, psn, frame->payload_bytes))
			break;
		frame->psn = psn & PVR_ETH_PSN_MASK;
	}
	tx->added += n;
	return n;
}
