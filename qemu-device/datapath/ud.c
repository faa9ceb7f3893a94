/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/* Unreliable datagrams, those of the GSI included. */
#include "datapath/ud.h"

#include "datapath/complete.h"
#include "datapath/gather.h"
#include "datapath/grh.h"
#include "datapath/hold.h"
#include "datapath/memory.h"
#include "datapath/receive.h"

#define MULTICAST_QPN 0xffffffu
/* A copy to one more queue pair of a group is at least so much work, in bytes. */
#define COPY_WORK 1024u
#define QKEY_OF_QP (1u << 31) /* IBTA vol. 1, 10.2.5: take the QP's own Q_Key */

struct datagram {
	struct pvr_qp *from;
	const struct pvr_send_wqe *wqe;
	const struct pvr_sg *payload;
	const struct pvr_gid_entry *sgid;
	uint32_t qkey;
	bool multicast;
	uint32_t tries, taken; /* queue pairs that it was offered to, that took it */
};

static bool can_receive(const struct pvr_qp *qp, uint32_t qkey)
{
	if (qp->type != PVR_QPT_UD && qp->type != PVR_QPT_GSI)
		return false;
	if (qp->state < PVR_QPS_RTR || qp->state > PVR_QPS_SQE)
		return false;
	if (!qp->adapter->link_up || !pvr_adapter_dma_ok(qp->adapter))
		return false;
	return qp->attr.qkey == qkey;
}

static void complete(struct pvr_qp *to, const struct datagram *dgram,
		     const struct pvr_recv_wqe *recv, enum pvrdma_wc_status status)
{
	const struct pvrdma_sq_wqe_hdr *hdr = &dgram->wqe->hdr;
	struct pvrdma_cqe cqe = {
		.wr_id = recv->hdr.wr_id,
		.opcode = PVRDMA_WC_RECV,
		.status = status,
		.byte_len = dgram->payload->total + PVR_GRH_SIZE,
		.src_qp = dgram->from->qpn,
		.wc_flags = PVRDMA_WC_GRH,
		.port_num = 1,
		.network_hdr_type = pvr_grh_network_type(dgram->sgid->type, hdr->wr.ud.av.dgid),
	};

	if (hdr->opcode == PVRDMA_WR_SEND_WITH_IMM) {
		cqe.imm_data = hdr->ex.imm_data;
		cqe.wc_flags |= PVRDMA_WC_WITH_IMM;
	}
	/* User space numbers this flag differently, and stock providers pass it on. */
	if (to->recv_cq->uc == &to->adapter->kernel_uc)
		cqe.wc_flags |= PVRDMA_WC_WITH_NETWORK_HDR_TYPE;
	pvr_recv_complete(to, &cqe, hdr->send_flags & PVR_SEND_SOLICITED);
}

static int scatter(const struct datagram *dgram, const struct pvr_sg *sg)
{
	const struct pvrdma_av *av = &dgram->wqe->hdr.wr.ud.av;
	uint8_t grh[PVR_GRH_SIZE];

	pvr_grh_build(grh, dgram->sgid->type, av, dgram->sgid->gid, dgram->payload->total,
		      dgram->wqe->hdr.opcode == PVRDMA_WR_SEND_WITH_IMM);
	if (pvr_sg_write(sg, grh, sizeof(grh)))
		return -1;
	return pvr_sg_copy(sg, sizeof(grh), dgram->payload, 0, dgram->payload->total);
}

/* Return: false if it was dropped. */
static bool receive(struct pvr_qp *to, const struct datagram *dgram)
{
	uint32_t max_sge = to->srq ? to->srq->wq.max_sge : to->rq.max_sge;
	struct pvr_recv_wqe recv;
	struct pvr_sg sg;

	if (pvr_recv_get(to, &recv))
		return false;
	if (recv.hdr.num_sge > max_sge ||
	    pvr_sg_build(&sg, to, pvr_recv_pd(to), recv.sge, recv.hdr.num_sge,
			 PVR_ACCESS_LOCAL_WRITE)) {
		complete(to, dgram, &recv, PVRDMA_WC_LOC_PROT_ERR);
		pvr_qp_fail(to, PVR_EVENT_NUM, "receive into forbidden memory");
		return false;
	}
	/* The request stays for a datagram that fits. */
	if (sg.total < dgram->payload->total + PVR_GRH_SIZE)
		return false;
	if (scatter(dgram, &sg))
		return false;
	complete(to, dgram, &recv, PVRDMA_WC_SUCCESS);
	return true;
}

/* @qp: of @to, which is held, or NULL if it has none of the number. */
static void offer(struct datagram *dgram, struct pvr_adapter *to, struct pvr_qp *qp)
{
	struct pvr_path *path;
	bool taken;

	dgram->tries++;
	if (!qp) {
		to->stat[PVR_STAT_UD_DROPPED]++;
		return;
	}
	taken = can_receive(qp, dgram->qkey) && receive(qp, dgram);
	pvr_publish(to);
	if (!taken) {
		pvr_count(qp, PVR_STAT_UD_DROPPED, 1);
		return;
	}
	dgram->taken++;
	pvr_count(qp, PVR_STAT_RX_MSGS, 1);
	pvr_count(qp, PVR_STAT_RX_BYTES, dgram->payload->total);
	pvr_count(qp, PVR_STAT_RX_MCAST, dgram->multicast);
	path = pvr_fabric_path(dgram->from->adapter, to);
	if (!path)
		return;
	pvr_stat_add(&path->messages, 1);
	pvr_stat_add(&path->bytes, dgram->payload->total);
}

static bool is_multicast(const struct datagram *dgram)
{
	return (dgram->from->adapter->features & PVR_EXT_MCAST) &&
	       (dgram->wqe->hdr.wr.ud.remote_qpn & 0xffffff) == MULTICAST_QPN &&
	       pvr_gid_is_multicast(dgram->wqe->hdr.wr.ud.av.dgid);
}

/* The adapter is held, so its queue pairs in the group are those that they are. */
static void offer_to_party(struct datagram *dgram, const struct pvr_group_step *step)
{
	uint32_t left = step->share;
	struct pvr_member *member;

	for (member = step->first; member && left--; member = TAILQ_NEXT(member, of_party))
		offer(dgram, step->adapter, member->qp);
}

/*
 * To all of the group, the sender included if it is attached: consumers filter. What is
 * done when an adapter turns out to be busy is not done again in the next turn.
 */
static bool deliver_to_group(struct datagram *dgram)
{
	const uint8_t *mgid = dgram->wqe->hdr.wr.ud.av.dgid;
	struct pvr_qp *from = dgram->from;
	struct pvr_group_step step;

	while (pvr_group_next(from->adapter, mgid, from->mcast_next, &step)) {
		if (!pvr_hold(from->adapter, step.adapter))
			return false;
		from->mcast_next = step.number;
		/* Its queue pairs may have left before it was held, and it with them. */
		if (!pvr_group_at(from->adapter, mgid, &step))
			continue;
		offer_to_party(dgram, &step);
		from->mcast_taken |= dgram->taken != 0;
	}
	return true;
}

/* Return: false if an adapter was busy. */
static bool deliver(struct datagram *dgram)
{
	const struct pvrdma_sq_wqe_hdr *hdr = &dgram->wqe->hdr;
	struct pvr_adapter *from = dgram->from->adapter, *to;

	if (!from->link_up)
		return true;
	if (dgram->multicast)
		return deliver_to_group(dgram);
	to = pvr_fabric_find(from, hdr->wr.ud.av.dgid);
	if (!to)
		return true;
	if (!pvr_hold(from, to))
		return false;
	offer(dgram, to, pvr_qp_find(to, hdr->wr.ud.remote_qpn & 0xffffff));
	return true;
}

static void count_sent(struct pvr_qp *qp, const struct datagram *dgram)
{
	pvr_count(qp, PVR_STAT_TX_MSGS, 1);
	pvr_count(qp, PVR_STAT_TX_BYTES, dgram->payload->total);
	pvr_count(qp, PVR_STAT_TX_MCAST, dgram->multicast);
	if (dgram->taken)
		pvr_count(qp, PVR_STAT_LOCAL_BYTES, dgram->payload->total);
}

/* Return: false if an adapter was busy: then this is not all of it. */
static bool send(struct datagram *dgram, uint64_t *work)
{
	const struct pvrdma_sq_wqe_hdr *hdr = &dgram->wqe->hdr;
	uint64_t total = dgram->payload->total;
	struct pvr_qp *qp = dgram->from;
	bool done = true;

	dgram->sgid = pvr_gid_get(qp->adapter, hdr->wr.ud.av.gid_index);
	dgram->qkey = hdr->wr.ud.remote_qkey & QKEY_OF_QP ? qp->attr.qkey :
							    hdr->wr.ud.remote_qkey;
	dgram->multicast = is_multicast(dgram);
	/* What no wire would carry gets lost on it. */
	if (dgram->sgid && total <= 128u << PVR_MAX_MTU)
		done = deliver(dgram);
	*work = total;
	if (dgram->tries > 1)
		*work += (uint64_t)(dgram->tries - 1) * (total + COPY_WORK);
	return done;
}

/* The request completes, and is forgotten. */
static void finish(struct datagram *dgram)
{
	struct pvr_qp *qp = dgram->from;

	dgram->taken |= qp->mcast_taken;
	qp->mcast_next = 0;
	qp->mcast_taken = false;
	qp->sq_psn = (qp->sq_psn + 1) & 0xffffff;
	count_sent(qp, dgram);
}

bool pvr_ud_send(struct pvr_qp *qp, struct pvr_send_wqe *wqe, enum pvrdma_wc_status *status,
		 uint64_t *length, uint64_t *work)
{
	const struct pvrdma_sq_wqe_hdr *hdr = &wqe->hdr;
	struct datagram dgram = { .from = qp, .wqe = wqe };
	struct pvr_sg sg;

	*status = PVRDMA_WC_LOC_QP_OP_ERR;
	if ((hdr->opcode != PVRDMA_WR_SEND && hdr->opcode != PVRDMA_WR_SEND_WITH_IMM) ||
	    (hdr->wr.ud.av.port_pd & PVR_AV_PD_MASK) != qp->pd->handle)
		return true;
	*status = pvr_gather(&sg, qp, wqe, 0);
	if (*status != PVRDMA_WC_SUCCESS)
		return true;
	dgram.payload = &sg;
	*length = sg.total;
	if (!send(&dgram, work))
		return false;
	finish(&dgram);
	return true;
}
