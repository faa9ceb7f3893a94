// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* Datagrams to and from the segment. */
#include "path/wire/internal.h"

#include <string.h>

#define FLOW_LABEL 0xfffffu
#define TRAFFIC_CLASS_SHIFT 20
#define SERVICE_LEVEL_SHIFT 28

static const struct pvr_gid_entry *entry_of(const struct pvr_adapter *adapter,
					    const uint8_t gid[16])
{
	uint32_t i;

	for (i = 0; i < PVR_GID_TABLE_LEN; i++)
		if (adapter->gids[i].bound &&
		    !memcmp(adapter->gids[i].gid, gid, sizeof(adapter->gids[i].gid)))
			return &adapter->gids[i];
	return NULL;
}

static uint16_t vlan_tag(const struct pvr_gid_entry *entry, uint32_t service_level)
{
	if (!entry || entry->vlan == PVR_VLAN_NONE)
		return 0;
	return (uint16_t)((service_level & 7) << 13 | (entry->vlan & 0xfff));
}

static struct pvr_roce_frame frame_of(const struct pvr_adapter *from, uint32_t dst_qpn,
				      const struct pvr_datagram *dgram)
{
	uint32_t flow = dgram->av->sl_tclass_flowlabel;
	struct pvr_roce_frame frame = {
		.traffic_class = (uint8_t)(flow >> TRAFFIC_CLASS_SHIFT),
		.flow_label = flow & FLOW_LABEL,
		.hop_limit = dgram->av->hop_limit,
		.src_port = pvr_roce_src_port(flow & FLOW_LABEL, dgram->src_qpn, dst_qpn),
		.vlan = vlan_tag(entry_of(from, dgram->sgid), flow >> SERVICE_LEVEL_SHIFT),
		.opcode = (uint8_t)pvr_roce_opcode_of(PVR_ROCE_UD, PVR_ROCE_SEND, true, true,
						      dgram->has_imm ? PVR_ROCE_IMM : 0),
		.solicited = dgram->solicited,
		.dest_qpn = dst_qpn,
		.qkey = dgram->qkey,
		.src_qpn = dgram->src_qpn,
		.payload_bytes = (uint32_t)dgram->payload->total,
	};

	memcpy(frame.dst_mac, dgram->av->dmac, sizeof(frame.dst_mac));
	memcpy(frame.src_gid, dgram->sgid, sizeof(frame.src_gid));
	memcpy(frame.dst_gid, dgram->av->dgid, sizeof(frame.dst_gid));
	if (dgram->has_imm)
		memcpy(frame.imm, &dgram->imm, sizeof(frame.imm));
	return frame;
}

/* A datagram that the segment has no room for, or that is too long for it, is lost. */
enum pvr_ud_result pvr_eth_ud_send(struct pvr_adapter *from, uint32_t dst_qpn,
				   const struct pvr_datagram *dgram)
{
	struct pvr_roce_frame frame;

	if (!from->wire || from->gid_type != PVR_GID_TYPE_ROCE_V2 ||
	    !pvr_eth_is_mac_ok(dgram->av->dmac))
		return PVR_UD_RESULT_ABSENT;
	if (dgram->payload->total + PVR_PORT_OVERHEAD > from->wire->port->mtu)
		return PVR_UD_RESULT_SENT;
	frame = frame_of(from, dst_qpn, dgram);
	if (pvr_eth_send(from, &frame, dgram->payload, 0) == PVR_ETH_SENT) {
		pvr_eth_count(&from->wire->messages, 1);
		pvr_eth_count(&from->wire->bytes, dgram->payload->total);
	}
	return PVR_UD_RESULT_SENT;
}

static struct pvrdma_av av_of(const struct pvr_roce_frame *frame)
{
	struct pvrdma_av av = {
		.sl_tclass_flowlabel = frame->flow_label | (uint32_t)frame->traffic_class
								   << TRAFFIC_CLASS_SHIFT,
		.hop_limit = frame->hop_limit,
	};

	memcpy(av.dgid, frame->dst_gid, sizeof(av.dgid));
	return av;
}

/* The queue pair checks the Q_Key. */
void pvr_eth_datagram(struct pvr_adapter *adapter, const struct pvr_eth_packet *packet)
{
	const struct pvr_roce_frame *frame = packet->frame;
	const struct pvr_gid_entry *entry = entry_of(adapter, frame->dst_gid);
	const struct pvrdma_av av = av_of(frame);
	struct pvr_sg sg PVR_UNINITIALIZED;
	struct pvr_datagram dgram = {
		.av = &av,
		.sgid = frame->src_gid,
		.gid_type = PVR_GID_TYPE_ROCE_V2,
		.src_qpn = frame->src_qpn,
		.qkey = frame->qkey,
		.has_imm = packet->op->ext & PVR_ROCE_IMM,
		.solicited = frame->solicited,
		.payload = &sg,
	};
	struct pvr_qp *qp = pvr_qp_find(adapter, frame->dest_qpn);

	if (!entry || (frame->vlan & 0xfff) != (vlan_tag(entry, 0) & 0xfff)) {
		pvr_eth_count(&adapter->wire->port->stats.rx_unknown, 1);
		return;
	}
	memcpy(&dgram.imm, frame->imm, sizeof(dgram.imm));
	pvr_sg_build_flat(&sg, adapter, packet->payload, frame->payload_bytes);
	pvr_ud_receive(adapter, qp, &dgram);
}
