// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* Frames to the segment. */
#include "path/wire/internal.h"

#include <string.h>

#include "rdma/capture.h"

#define HOP_LIMIT_DEFAULT 64
#define PRIORITY_SHIFT 13 /* of a VLAN tag */
#define VLAN_ID 0xfffu

bool pvr_eth_address(struct pvr_roce_frame *frame, const struct pvr_qp *qp)
{
	const struct pvr_ah_attr *ah = &qp->attr.ah_attr;
	const struct pvr_gid_entry *entry = pvr_gid_get(qp->adapter, ah->sgid_index);

	if (!entry)
		return false;
	memcpy(frame->dst_mac, ah->dmac, sizeof(frame->dst_mac));
	memcpy(frame->src_gid, entry->gid, sizeof(frame->src_gid));
	memcpy(frame->dst_gid, ah->dgid, sizeof(frame->dst_gid));
	if (entry->vlan != PVR_VLAN_NONE)
		frame->vlan = (uint16_t)((ah->sl & 7) << PRIORITY_SHIFT | (entry->vlan & VLAN_ID));
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

/* The payload is copied before its ICRC is computed: the guest may write to it meanwhile. */
enum pvr_eth_sent pvr_eth_send(struct pvr_adapter *adapter, struct pvr_roce_frame *frame,
			       const struct pvr_sg *sg, uint64_t offset)
{
	uint8_t buf[PVR_ROCE_HEADER_MAX + PVR_ROCE_PAYLOAD_MAX + PVR_ROCE_TRAILER_MAX];
	struct pvr_port *port = adapter->wire->port;
	struct pvr_sg flat PVR_UNINITIALIZED;
	size_t headers, bytes;

	/* As on a cable that is not plugged in. */
	if (!adapter->link_up)
		return PVR_ETH_SENT;
	complete_header(frame, adapter);
	headers = pvr_roce_build(buf, frame);
	if (frame->payload_bytes) {
		pvr_sg_build_flat(&flat, adapter, buf + headers, frame->payload_bytes);
		if (pvr_sg_copy(&flat, 0, sg, offset, frame->payload_bytes))
			return PVR_ETH_FAULT;
	}
	bytes = pvr_roce_finish(buf, headers, frame);
	if (!port->ops->send(port->opaque, buf, bytes)) {
		pvr_eth_count(&port->stats.tx_full, 1);
		return PVR_ETH_FULL;
	}
	if (pvr_captures(adapter) && pvr_roce_transport(frame->opcode) != PVR_ROCE_UD)
		pvr_capture_frame(adapter, true, buf, bytes, frame, headers);
	pvr_eth_count(&port->stats.tx_frames, 1);
	return PVR_ETH_SENT;
}
