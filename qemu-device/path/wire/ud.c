// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* Datagrams to and from the segment. */
#include "path/wire/internal.h"

#include <string.h>

#include "gid/mcast_group.h"

#define FLOW_LABEL 0xfffffu
#define TRAFFIC_CLASS_SHIFT 20
#define SERVICE_LEVEL_SHIFT 28

/* A NIC and its VLANs may have the same address. */
static bool has_gid(const struct pvr_adapter *adapter, const uint8_t gid[16], uint16_t vlan)
{
	uint32_t i;

	for (i = 0; i < PVR_GID_TABLE_LEN; i++)
		if (adapter->gids[i].bound &&
		    !memcmp(adapter->gids[i].gid, gid, sizeof(adapter->gids[i].gid)) &&
		    pvr_eth_is_on_vlan(&adapter->gids[i], vlan))
			return true;
	return false;
}

static struct pvr_roce_frame frame_of(const struct pvr_adapter *from, uint32_t dst_qpn,
				      const struct pvr_datagram *dgram)
{
	const struct pvr_gid_entry *entry = pvr_gid_get(from, dgram->av->gid_index);
	uint32_t flow = dgram->av->sl_tclass_flowlabel;
	struct pvr_roce_frame frame = {
		.traffic_class = (uint8_t)(flow >> TRAFFIC_CLASS_SHIFT),
		.flow_label = flow & FLOW_LABEL,
		.hop_limit = dgram->av->hop_limit,
		.src_port = pvr_roce_src_port(flow & FLOW_LABEL, dgram->src_qpn, dst_qpn),
		.vlan = entry ? pvr_eth_vlan_tag(entry, flow >> SERVICE_LEVEL_SHIFT) : 0,
		.opcode = (uint8_t)pvr_roce_opcode_of(PVR_ROCE_UD, PVR_ROCE_SEND, true, true,
						      dgram->has_imm ? PVR_ROCE_IMM : 0),
		.solicited = dgram->solicited,
		.dest_qpn = dst_qpn,
		.psn = dgram->psn & PVR_ETH_PSN_MASK,
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

static bool is_on_wire(const struct pvr_adapter *from)
{
	return from->wire && from->gid_type == PVR_GID_TYPE_ROCE_V2;
}

/* A datagram that the segment has no room for, or that is too long for it, is lost. */
static void send_frame(struct pvr_adapter *from, struct pvr_roce_frame *frame,
		       const struct pvr_datagram *dgram)
{
	struct pvr_eth_peer *peer;

	if (dgram->payload->total + PVR_PORT_OVERHEAD > from->wire->port->mtu ||
	    pvr_eth_send(from, frame, dgram->payload, 0) != PVR_ETH_SENT)
		return;
	peer = pvr_eth_peer_of(from->wire, dgram->av->dgid);
	pvr_stat_add(&peer->messages, 1);
	pvr_stat_add(&peer->bytes, dgram->payload->total);
	pvr_eth_flush(from->wire);
}

enum pvr_ud_result pvr_eth_ud_send(struct pvr_adapter *from, uint32_t dst_qpn,
				   const struct pvr_datagram *dgram)
{
	struct pvr_roce_frame frame;

	if (!is_on_wire(from) || !pvr_eth_is_mac_ok(dgram->av->dmac))
		return PVR_UD_RESULT_ABSENT;
	frame = frame_of(from, dst_qpn, dgram);
	send_frame(from, &frame, dgram);
	return PVR_UD_RESULT_SENT;
}

/* -------------------------------------------------------------------------- multicast */

void pvr_eth_group_mac(uint8_t mac[6], const uint8_t mgid[16])
{
	static const uint8_t ipv4[] = { 0x01, 0x00, 0x5e }, ipv6[] = { 0x33, 0x33 };

	memcpy(mac + 2, mgid + 12, 4);
	if (!pvr_gid_is_ipv4(mgid)) {
		memcpy(mac, ipv6, sizeof(ipv6));
		return;
	}
	memcpy(mac, ipv4, sizeof(ipv4));
	mac[3] &= 0x7f;
}

/* Adapters here and those of other pvrdmads get their copies by their own paths. */
void pvr_eth_mcast_send(struct pvr_adapter *from, const struct pvr_datagram *dgram,
			const struct pvr_host_group *to)
{
	struct pvr_roce_frame frame;

	(void)to;
	if (!is_on_wire(from))
		return;
	frame = frame_of(from, PVR_MULTICAST_QPN, dgram);
	pvr_eth_group_mac(frame.dst_mac, dgram->av->dgid);
	send_frame(from, &frame, dgram);
}

bool pvr_eth_is_member(const struct pvr_adapter *adapter, const struct pvr_roce_frame *frame)
{
	struct pvr_mcast_iter iter;
	uint32_t i;

	if (adapter->gid_type != PVR_GID_TYPE_ROCE_V2)
		return false;
	for (i = 0; i < PVR_GID_TABLE_LEN; i++)
		if (adapter->gids[i].bound && pvr_eth_is_on_vlan(&adapter->gids[i], frame->vlan))
			return pvr_group_member(adapter, frame->dst_gid, &iter);
	return false;
}

static bool is_same(const struct pvr_eth_copy *copy, const struct pvr_roce_frame *frame)
{
	return copy->psn == frame->psn && copy->src_qpn == frame->src_qpn &&
	       !memcmp(copy->src_gid, frame->src_gid, sizeof(copy->src_gid)) &&
	       !memcmp(copy->dst_gid, frame->dst_gid, sizeof(copy->dst_gid));
}

/* A bridge passes a frame to its own stack, and once more by the rule at the VM's tap. */
bool pvr_eth_is_copy(struct pvr_eth_adapter *wire, const struct pvr_roce_frame *frame)
{
	uint32_t num = wire->copies_seen < PVR_ETH_COPIES ? wire->copies_seen : PVR_ETH_COPIES, i;
	struct pvr_eth_copy *copy;

	for (i = 0; i < num; i++)
		if (is_same(&wire->copies[i], frame))
			return true;
	copy = &wire->copies[wire->copies_seen++ % PVR_ETH_COPIES];
	memcpy(copy->src_gid, frame->src_gid, sizeof(copy->src_gid));
	memcpy(copy->dst_gid, frame->dst_gid, sizeof(copy->dst_gid));
	copy->src_qpn = frame->src_qpn;
	copy->psn = frame->psn;
	return false;
}

/* ----------------------------------------------------------------------------- arrival */

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

/* A received datagram. */
struct pvr_eth_arrival {
	struct pvrdma_av av;
	struct pvr_sg payload;
	struct pvr_datagram dgram; /* refers to the members above */
};

static void arrival_init(struct pvr_eth_arrival *arrival, struct pvr_adapter *adapter,
			 const struct pvr_eth_packet *packet)
{
	const struct pvr_roce_frame *frame = packet->frame;

	arrival->av = av_of(frame);
	pvr_sg_build_flat(&arrival->payload, adapter, packet->payload, frame->payload_bytes);
	arrival->dgram = (struct pvr_datagram){
		.av = &arrival->av,
		.sgid = frame->src_gid,
		.gid_type = PVR_GID_TYPE_ROCE_V2,
		.src_qpn = frame->src_qpn,
		.qkey = frame->qkey,
		.has_imm = packet->op->ext & PVR_ROCE_IMM,
		.solicited = frame->solicited,
		.payload = &arrival->payload,
	};
	memcpy(&arrival->dgram.imm, frame->imm, sizeof(frame->imm));
}

/* The queue pair checks the Q_Key. */
void pvr_eth_datagram(struct pvr_adapter *adapter, const struct pvr_eth_packet *packet)
{
	const struct pvr_roce_frame *frame = packet->frame;
	struct pvr_eth_arrival arrival PVR_UNINITIALIZED;

	if (!has_gid(adapter, frame->dst_gid, frame->vlan)) {
		pvr_eth_count(&adapter->wire->port->stats.rx_unknown, 1);
		return;
	}
	arrival_init(&arrival, adapter, packet);
	pvr_ud_receive(adapter, pvr_qp_find(adapter, frame->dest_qpn), &arrival.dgram);
}

size_t pvr_eth_group_datagram(struct pvr_adapter *adapter, const struct pvr_eth_packet *packet)
{
	struct pvr_eth_arrival arrival PVR_UNINITIALIZED;
	struct pvr_mcast_qp *mcast_qp;
	struct pvr_mcast_iter iter;
	uint32_t copies = 0;

	if (!pvr_group_member(adapter, packet->frame->dst_gid, &iter))
		return 0;
	arrival_init(&arrival, adapter, packet);
	arrival.dgram.multicast = true;
	for (mcast_qp = iter.first; mcast_qp && copies < iter.share;
	     mcast_qp = TAILQ_NEXT(mcast_qp, of_mcast_adapter), copies++)
		pvr_ud_receive(adapter, mcast_qp->qp, &arrival.dgram);
	return (size_t)copies * (packet->frame->payload_bytes + PVR_ETH_GROUP_COPY);
}
