// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* Datagrams to and from other hosts. */
#include "path/pipe/fault.h"
#include "path/pipe/internal.h"

#include <endian.h>

#include "rdma/worker.h"
#include "gid/dest.h"
#include "gid/fabric.h"
#include "gid/mcast_group.h"

#define FLOW_LABEL 0xfffffu
#define TRAFFIC_CLASS_SHIFT 20

/* ---------------------------------------------------------------------- sending */

static void fill_frame(union pvr_any_frame *any, uint32_t dst_qpn, const struct pvr_datagram *dgram)
{
	any->datagram = (struct pvr_frame_datagram){
		.frame = { .type = PVR_FRAME_DATAGRAM,
			   .flags = dgram->solicited ? PVR_REQUEST_F_SOLICITED : 0 },
		.has_imm = dgram->has_imm,
		.gid_type = dgram->gid_type,
		.traffic_class = (uint8_t)(dgram->av->sl_tclass_flowlabel >> TRAFFIC_CLASS_SHIFT),
		.hop_limit = dgram->av->hop_limit,
		.flow_label = htole32(dgram->av->sl_tclass_flowlabel & FLOW_LABEL),
		.src_qpn = htole32(dgram->src_qpn),
		.dst_qpn = htole32(dst_qpn),
		.qkey = htole32(dgram->qkey),
	};
	if (dgram->has_imm)
		memcpy(any->datagram.imm, &dgram->imm, sizeof(any->datagram.imm));
	memcpy(any->datagram.sgid, dgram->sgid, sizeof(any->datagram.sgid));
	memcpy(any->datagram.dgid, dgram->av->dgid, sizeof(any->datagram.dgid));
}

/* The FAULT frame of a datagram with recv_status, whose frame is @any. */
static void fill_fault(union pvr_any_frame *any, const struct pvr_datagram *dgram)
{
	struct pvr_frame_request frame = {
		.op = dgram->has_imm ? PVR_FRAME_OP_SEND_IMM : PVR_FRAME_OP_SEND,
		.gid_type = any->datagram.gid_type,
		.src_qpn = any->datagram.src_qpn,
		.dst_qpn = any->datagram.dst_qpn,
		.psns = htole32(1),
	};

	memcpy(frame.sgid, any->datagram.sgid, sizeof(frame.sgid));
	memcpy(frame.dgid, any->datagram.dgid, sizeof(frame.dgid));
	pvr_pipe_fault_fill(&frame, dgram->recv_status);
	frame.frame.flags = PVR_REQUEST_F_UD;
	frame.rkey = any->datagram.qkey;
	any->request = frame;
}

/* Sends without gathering. @fails: it has recv_status. Return: false if no connection is up. */
static pvr_always_inline bool send_to(struct pvr_host *host, struct pvr_adapter *from,
				      uint32_t dst_qpn, const struct pvr_datagram *dgram,
				      bool fails)
{
	union pvr_any_frame any;
	struct pvr_route route;

	fill_frame(&any, dst_qpn, dgram);
	if (!pvr_link_route(host, dgram->src_qpn, pvr_dscp_of(any.datagram.traffic_class), &route))
		return false;
	if (fails && route.has_fault) {
		fill_fault(&any, dgram);
		if (pvr_link_send(&route, from->fabric, &any, sizeof(any.request), NULL, NULL, 0,
				  0) == PVR_SENT)
			pvr_link_flush(&route);
		return true;
	}
	if (pvr_link_send(&route, from->fabric, &any, sizeof(any.datagram), NULL, dgram->payload, 0,
			  (uint32_t)dgram->payload->total) == PVR_SENT)
		pvr_link_flush(&route);
	return true;
}

static pvr_always_inline enum pvr_ud_result send_unicast(struct pvr_adapter *from, uint32_t dst_qpn,
							 const struct pvr_datagram *dgram,
							 bool fails)
{
	struct pvr_host *host;
	bool sent = true;

	switch (pvr_gid_resolve(from, dgram->av->dgid, NULL, &host)) {
	case PVR_GID_AT_HOST:
		sent = send_to(host, from, dst_qpn, dgram, fails);
		break;
	case PVR_GID_UNKNOWN:
		sent = false;
		break;
	default:
		return PVR_UD_RESULT_ABSENT;
	}
	return sent ? PVR_UD_RESULT_SENT : PVR_UD_RESULT_PENDING;
}

enum pvr_ud_result pvr_pipe_ud_send(struct pvr_adapter *from, uint32_t dst_qpn,
				    const struct pvr_datagram *dgram)
{
	return send_unicast(from, dst_qpn, dgram, false);
}

bool pvr_pipe_ud_find_group(struct pvr_adapter *from, const struct pvr_datagram *dgram,
			    struct pvr_host_group *group)
{
	uint8_t tclass = (uint8_t)(dgram->av->sl_tclass_flowlabel >> TRAFFIC_CLASS_SHIFT);
	struct pvr_route route;
	bool ready;
	uint32_t i;

	ready = pvr_mcast_hosts_find(from, dgram->av->dgid, group) != PVR_GID_UNKNOWN;
	/*
	 * Request routes to all hosts at once: each lookup requests a missing connection.
	 */
	for (i = 0; i < group->count; i++)
		ready &= pvr_link_route(group->hosts[i], dgram->src_qpn, pvr_dscp_of(tclass),
					&route);
	return ready;
}

void pvr_pipe_ud_send_group(struct pvr_adapter *from, const struct pvr_datagram *dgram,
			    const struct pvr_host_group *group)
{
	uint32_t i;

	for (i = 0; i < group->count; i++)
		send_to(group->hosts[i], from, PVR_MULTICAST_QPN, dgram, false);
}

enum pvr_ud_result pvr_pipe_ud_fail(struct pvr_adapter *from, uint32_t dst_qpn,
				    const struct pvr_datagram *dgram,
				    const struct pvr_host_group *group)
{
	uint32_t i;

	if (!group)
		return send_unicast(from, dst_qpn, dgram, true);
	for (i = 0; i < group->count; i++)
		send_to(group->hosts[i], from, PVR_MULTICAST_QPN, dgram, true);
	return PVR_UD_RESULT_SENT;
}

/* -------------------------------------------------------------------- receiving */

/* A received frame and its payload. */
struct arrival {
	struct pvr_engine *engine;
	const char *fabric;
	const struct pvr_frame_datagram *frame;
	uint8_t *payload;
};

static struct pvrdma_av av_of(const struct pvr_frame_datagram *frame)
{
	struct pvrdma_av av = {
		.sl_tclass_flowlabel = le32toh(frame->flow_label) | (uint32_t)frame->traffic_class
									    << TRAFFIC_CLASS_SHIFT,
		.hop_limit = frame->hop_limit,
	};

	memcpy(av.dgid, frame->dgid, sizeof(av.dgid));
	return av;
}

/*
 * The functions below are compiled twice. @recv_status: of a FAULT; 0: of a DATAGRAM.
 *
 * @qp: of @adapter, which is held; or NULL.
 */
static pvr_always_inline void offer(const struct arrival *arrival, struct pvr_adapter *adapter,
				    struct pvr_qp *qp, bool multicast, uint16_t recv_status)
{
	const struct pvr_frame_datagram *frame = arrival->frame;
	const struct pvrdma_av av = av_of(frame);
	struct pvr_datagram dgram = {
		.av = &av,
		.sgid = frame->sgid,
		.gid_type = frame->gid_type,
		.src_qpn = le32toh(frame->src_qpn),
		.qkey = le32toh(frame->qkey),
		.has_imm = frame->has_imm,
		.solicited = frame->frame.flags & PVR_REQUEST_F_SOLICITED,
		.multicast = multicast,
		.recv_status = recv_status,
	};
	struct pvr_sg sg PVR_UNINITIALIZED;

	memcpy(&dgram.imm, frame->imm, sizeof(dgram.imm));
	pvr_sg_build_flat(&sg, adapter, arrival->payload,
			  le32toh(frame->frame.size) - (uint32_t)sizeof(*frame));
	dgram.payload = &sg;
	if (!recv_status)
		pvr_ud_receive(adapter, qp, &dgram);
	else if (qp)
		pvr_ud_fail_receive(qp, &dgram);
}

static pvr_always_inline void deliver(const struct arrival *arrival, uint16_t recv_status)
{
	const struct pvr_frame_datagram *frame = arrival->frame;
	struct pvr_adapter *adapter =
		pvr_fabric_look_up(arrival->engine, arrival->fabric, frame->dgid, frame->gid_type);

	if (!adapter)
		return;
	pvr_adapter_lock(adapter);
	/* The GID may have moved before the adapter was locked. */
	if (pvr_dest_get(adapter, frame->dgid)->adapter == adapter)
		offer(arrival, adapter, pvr_qp_find(adapter, le32toh(frame->dst_qpn)), false,
		      recv_status);
	pvr_adapter_unlock(adapter);
}

/* The adapter is held. */
static pvr_always_inline void offer_to_mcast_adapter(const struct arrival *arrival,
						     const struct pvr_mcast_iter *iter,
						     uint16_t recv_status)
{
	uint32_t left = iter->share;
	struct pvr_mcast_qp *mcast_qp;

	for (mcast_qp = iter->first; mcast_qp && left--;
	     mcast_qp = TAILQ_NEXT(mcast_qp, of_mcast_adapter))
		offer(arrival, iter->adapter, mcast_qp->qp, true, recv_status);
}

/* Delivers to members on this host only: the sender sends a copy to each host. */
static pvr_always_inline void deliver_to_group(const struct arrival *arrival, uint16_t recv_status)
{
	const struct pvr_group_name name = {
		.fabric = arrival->fabric,
		.mgid = arrival->frame->dgid,
		.gid_type = arrival->frame->gid_type,
	};
	struct pvr_mcast_iter iter = { 0 };

	while (pvr_group_next_of(arrival->engine, &name, iter.number, &iter)) {
		pvr_adapter_lock(iter.adapter);
		if (pvr_group_at(iter.adapter, name.mgid, &iter))
			offer_to_mcast_adapter(arrival, &iter, recv_status);
		pvr_adapter_unlock(iter.adapter);
	}
}

static pvr_always_inline enum pvr_handled datagram(struct pvr_rsp_conn *in, const char *fabric,
						   const struct pvr_frame_datagram *frame,
						   uint8_t *payload, uint16_t recv_status)
{
	struct pvr_host *host = pvr_rsp_conn_host(in);
	const struct arrival arrival = {
		.engine = pvr_host_engine(host),
		.fabric = fabric,
		.frame = frame,
		.payload = payload,
	};

	switch (pvr_rsp_conn_check_sender(in, fabric, frame->sgid, frame->gid_type, frame->dgid)) {
	case PVR_GID_AT_HOST:
		break;
	case PVR_GID_UNKNOWN:
		return pvr_rsp_conn_may_stall(in) ? PVR_HANDLED_STALLED : PVR_HANDLED;
	default:
		/* If its host has it since a short time, the directory finds it there. */
		pvr_rsp_conn_replaces_sender(in, fabric, frame->sgid);
		return PVR_HANDLED;
	}
	if (le32toh(frame->dst_qpn) != PVR_MULTICAST_QPN)
		deliver(&arrival, recv_status);
	else if (pvr_gid_is_multicast(frame->dgid))
		deliver_to_group(&arrival, recv_status);
	return PVR_HANDLED;
}

enum pvr_handled pvr_pipe_datagram(struct pvr_rsp_conn *in, const char *fabric,
				   const struct pvr_frame_datagram *frame, uint8_t *payload)
{
	return datagram(in, fabric, frame, payload, 0);
}

enum pvr_handled pvr_pipe_datagram_fault(struct pvr_rsp_conn *in, const char *fabric,
					 const struct pvr_frame_request *frame)
{
	struct pvr_frame_datagram dgram = {
		.frame.size = htole32(sizeof(dgram)),
		.gid_type = frame->gid_type,
		.src_qpn = frame->src_qpn,
		.dst_qpn = frame->dst_qpn,
		.qkey = frame->rkey,
	};

	memcpy(dgram.sgid, frame->sgid, sizeof(dgram.sgid));
	memcpy(dgram.dgid, frame->dgid, sizeof(dgram.dgid));
	return datagram(in, fabric, &dgram, NULL, pvr_pipe_fault_status(frame));
}
