// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* Receiving of unreliable datagrams, from this process and from other hosts. */
#include "rdma/ud.h"

#include <string.h>

#include "rdma/capture.h"
#include "rdma/cq.h"
#include "rdma/grh.h"
#include "rdma/page_fault.h"
#include "rdma/rq.h"
#include "rdma/qp.h"

/* The VLAN of a GID of the adapter; PVR_VLAN_NONE if one of its entries has no VLAN. */
static uint16_t gid_vlan(const struct pvr_adapter *adapter, const uint8_t gid[16])
{
	uint16_t vlan = PVR_VLAN_NONE;
	uint32_t i;

	for (i = 0; i < PVR_GID_TABLE_LEN; i++) {
		const struct pvr_gid_entry *entry = &adapter->gids[i];

		if (!entry->bound || memcmp(entry->gid, gid, sizeof(entry->gid)))
			continue;
		if (entry->vlan == PVR_VLAN_NONE)
			return PVR_VLAN_NONE;
		vlan = entry->vlan;
	}
	return vlan;
}

static bool can_receive(const struct pvr_qp *qp, uint32_t qkey)
{
	if (qp->type != PVR_QPT_UD && qp->type != PVR_QPT_GSI)
		return false;
	if (!pvr_qp_can_respond(qp))
		return false;
	if (!qp->adapter->link_up || !pvr_adapter_dma_ok(qp->adapter))
		return false;
	return qp->attr.qkey == qkey;
}

/* The guest's kernel searches the GID of a MAD only among GIDs of the CQE's VLAN. */
static void set_vlan(struct pvrdma_cqe *cqe, const struct pvr_adapter *adapter,
		     const uint8_t gid[16])
{
	uint16_t vlan = gid_vlan(adapter, gid);

	if (vlan == PVR_VLAN_NONE)
		return;
	memcpy(cqe->reserved2 + PVR_CQE_VLAN, &vlan, sizeof(vlan));
	cqe->wc_flags |= PVRDMA_WC_WITH_VLAN;
}

static void complete(struct pvr_qp *to, const struct pvr_datagram *dgram,
		     const struct pvr_recv_wqe *recv, enum pvrdma_wc_status status)
{
	struct pvrdma_cqe cqe = {
		.wr_id = recv->hdr.wr_id,
		.opcode = PVRDMA_WC_RECV,
		.status = status,
		.byte_len = dgram->payload->total + PVR_GRH_SIZE,
		.src_qp = dgram->src_qpn,
		.wc_flags = PVRDMA_WC_GRH,
		.port_num = 1,
		.network_hdr_type = pvr_grh_network_type(dgram->gid_type, dgram->av->dgid),
	};

	if (dgram->has_imm) {
		cqe.imm_data = dgram->imm;
		cqe.wc_flags |= PVRDMA_WC_WITH_IMM;
	}
	/*
	 * In user space this flag has another value, and stock providers do not convert
	 * it.
	 */
	if (to->recv_cq->uc == &to->adapter->kernel_uc)
		cqe.wc_flags |= PVRDMA_WC_WITH_NETWORK_HDR_TYPE;
	if (to->type == PVR_QPT_GSI)
		set_vlan(&cqe, to->adapter, dgram->av->dgid);
	pvr_recv_complete(to, &cqe, dgram->solicited);
}

static int scatter(const struct pvr_datagram *dgram, const struct pvr_sg *sg)
{
	uint8_t grh[PVR_GRH_SIZE];

	pvr_grh_build(grh, dgram->gid_type, dgram->av, dgram->sgid, dgram->payload->total,
		      dgram->has_imm);
	if (pvr_sg_write(sg, grh, sizeof(grh)))
		return -1;
	return pvr_sg_copy(sg, sizeof(grh), dgram->payload, 0, dgram->payload->total);
}

/* Return: false if the datagram was dropped. */
static bool receive(struct pvr_qp *to, const struct pvr_datagram *dgram)
{
	uint32_t max_sge = to->srq ? to->srq->wq.max_sge : to->rq.max_sge;
	uint32_t wait_ns = PVR_PAGE_WAIT_MIN_NS;
	struct pvr_recv_wqe recv PVR_UNINITIALIZED;
	struct pvr_sg sg PVR_UNINITIALIZED;

	if (pvr_recv_get(to, &recv))
		return false;
	if (recv.hdr.num_sge > max_sge || pvr_sg_build(&sg, to, pvr_recv_pd(to), recv.sge,
						       recv.hdr.num_sge, PVR_ACCESS_LOCAL_WRITE)) {
		complete(to, dgram, &recv, PVRDMA_WC_LOC_PROT_ERR);
		pvr_qp_fail(to, PVR_EVENT_NUM, "receive SGE outside its lkey's range or rights");
		return false;
	}
	/* The receive request stays for a datagram that fits. */
	if (sg.total < dgram->payload->total + PVR_GRH_SIZE)
		return false;
	if (scatter(dgram, &sg)) {
		/* If a page is absent, the next datagram may find it. */
		(void)pvr_page_fault(&sg, 0, dgram->payload->total + PVR_GRH_SIZE, &wait_ns);
		return false;
	}
	complete(to, dgram, &recv, PVRDMA_WC_SUCCESS);
	return true;
}

/* As for a receive request with a bad SGE. */
void pvr_ud_fail_receive(struct pvr_qp *to, const struct pvr_datagram *dgram)
{
	struct pvr_recv_wqe recv PVR_UNINITIALIZED;

	pvr_count(to, PVR_STAT_UD_DROPPED, 1);
	if (!can_receive(to, dgram->qkey) || pvr_recv_get(to, &recv))
		return;
	complete(to, dgram, &recv, (enum pvrdma_wc_status)dgram->recv_status);
	pvr_qp_fail(to, PVR_EVENT_NUM, "a fault of the operator (pvrdmactl fault)");
	pvr_publish(to->adapter);
}

/* While there are captures or faults. Return: whether the datagram can be received. */
static pvr_noinline bool observe(struct pvr_adapter *to, struct pvr_qp *qp,
				 const struct pvr_datagram *dgram)
{
	if (pvr_captures(to))
		pvr_capture_received_datagram(to, qp, dgram);
	if (!qp || !dgram->recv_status)
		return true;
	pvr_ud_fail_receive(qp, dgram);
	return false;
}

bool pvr_ud_receive(struct pvr_adapter *to, struct pvr_qp *qp, const struct pvr_datagram *dgram)
{
	bool taken;

	if (to->engine->observed && !observe(to, qp, dgram))
		return false;
	if (!qp) {
		to->stat[PVR_STAT_UD_DROPPED]++;
		return false;
	}
	taken = can_receive(qp, dgram->qkey) && receive(qp, dgram);
	pvr_publish(to);
	if (!taken) {
		pvr_count(qp, PVR_STAT_UD_DROPPED, 1);
		return false;
	}
	pvr_count(qp, PVR_STAT_RX_MSGS, 1);
	pvr_count(qp, PVR_STAT_RX_BYTES, dgram->payload->total);
	pvr_count(qp, PVR_STAT_RX_MCAST, dgram->multicast);
	return true;
}
