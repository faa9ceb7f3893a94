// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* Work requests: WQEs written straight into the rings. */
#include "fg_wr.h"

#include <string.h>

#include "fg_gid.h"

static uint32_t space(const struct pvr_ring *ring, uint32_t tail, uint32_t wr)
{
	uint32_t head = __atomic_load_n(&ring->cons_head, __ATOMIC_ACQUIRE);

	return wr - ((tail - head) & (2 * wr - 1));
}

/* Publishes the element at *tail. Pairs with the device's load of prod_tail. */
static void publish(struct pvr_ring *ring, uint32_t *tail, uint32_t wr)
{
	*tail = (*tail + 1) & (2 * wr - 1);
	__atomic_store_n(&ring->prod_tail, *tail, __ATOMIC_RELEASE);
}

static void put_sges(void *to, const struct pvrdma_sge *sge, uint32_t num, uint32_t max)
{
	if (num > max)
		num = max;
	if (num)
		memcpy(to, sge, num * sizeof(*sge));
}

static void put_data(void *to, const void *data, uint32_t len, uint32_t max)
{
	memcpy(to, data, len < max ? len : max);
}

struct pvrdma_av fg_av(const struct fg_pd *pd, const uint8_t dgid[16], uint8_t sgid_index)
{
	struct pvrdma_av av = {
		.port_pd = pd->handle | 1u << 24,
		.src_path_bits = PVR_AV_GRH,
		.gid_index = sgid_index,
		.hop_limit = 64,
	};

	memcpy(av.dgid, dgid, sizeof(av.dgid));
	fg_mac_of_gid(av.dmac, dgid);
	return av;
}

uint32_t fg_sq_space(const struct fg_qp *qp)
{
	return space(&qp->ring->tx, qp->sq_tail, qp->sq_wr);
}

uint32_t fg_rq_space(const struct fg_qp *qp)
{
	return space(&qp->ring->rx, qp->rq_tail, qp->rq_wr);
}

struct pvrdma_sq_wqe_hdr *fg_sq_wqe(const struct fg_qp *qp, uint32_t index)
{
	return (void *)(qp->sq + (size_t)(index & (qp->sq_wr - 1)) * qp->sq_stride);
}

struct pvrdma_rq_wqe_hdr *fg_rq_wqe(const struct fg_qp *qp, uint32_t index)
{
	return (void *)(qp->rq + (size_t)(index & (qp->rq_wr - 1)) * qp->rq_stride);
}

static void put_ud(struct pvrdma_sq_wqe_hdr *wqe, const struct fg_wr *wr)
{
	wqe->wr.ud.remote_qpn = wr->remote_qpn;
	wqe->wr.ud.remote_qkey = wr->remote_qkey;
	if (wr->av)
		wqe->wr.ud.av = *wr->av;
}

static void put_rc(struct pvrdma_sq_wqe_hdr *wqe, const struct fg_wr *wr)
{
	switch (wr->opcode) {
	case PVRDMA_WR_ATOMIC_CMP_AND_SWP:
	case PVRDMA_WR_ATOMIC_FETCH_AND_ADD:
		wqe->wr.atomic.remote_addr = wr->remote_addr;
		wqe->wr.atomic.compare_add = wr->compare_add;
		wqe->wr.atomic.swap = wr->swap;
		wqe->wr.atomic.rkey = wr->rkey;
		break;
	default:
		wqe->wr.rdma.remote_addr = wr->remote_addr;
		wqe->wr.rdma.rkey = wr->rkey;
		break;
	}
}

bool fg_put_send(struct fg_qp *qp, const struct fg_wr *wr)
{
	struct pvrdma_sq_wqe_hdr *wqe = fg_sq_wqe(qp, qp->sq_tail);

	if (!fg_sq_space(qp))
		return false;
	wqe->wr_id = wr->wr_id;
	wqe->num_sge = wr->num_sge;
	wqe->total_len = wr->data_len;
	wqe->opcode = wr->opcode;
	wqe->send_flags = wr->flags;
	wqe->ex.imm_data = wr->imm;
	wqe->reserved = wr->srqn;
	if (qp->type == PVR_QPT_UD || qp->type == PVR_QPT_GSI)
		put_ud(wqe, wr);
	else
		put_rc(wqe, wr);
	if (wr->data)
		put_data(wqe + 1, wr->data, wr->data_len, qp->max_inline);
	else
		put_sges(wqe + 1, wr->sge, wr->num_sge, qp->sq_sge);
	publish(&qp->ring->tx, &qp->sq_tail, qp->sq_wr);
	return true;
}

static void put_recv(struct pvrdma_rq_wqe_hdr *wqe, uint64_t wr_id, const struct pvrdma_sge *sge,
		     uint32_t num_sge, uint32_t max_sge)
{
	wqe->wr_id = wr_id;
	wqe->num_sge = num_sge;
	wqe->total_len = 0;
	put_sges(wqe + 1, sge, num_sge, max_sge);
}

bool fg_put_recv(struct fg_qp *qp, uint64_t wr_id, const struct pvrdma_sge *sge, uint32_t num_sge)
{
	if (!fg_rq_space(qp))
		return false;
	put_recv(fg_rq_wqe(qp, qp->rq_tail), wr_id, sge, num_sge, qp->rq_sge);
	publish(&qp->ring->rx, &qp->rq_tail, qp->rq_wr);
	return true;
}

bool fg_put_srq_recv(struct fg_srq *srq, uint64_t wr_id, const struct pvrdma_sge *sge,
		     uint32_t num_sge)
{
	uint8_t *base = srq->buf.va + PVR_PAGE_SIZE;

	if (!space(srq->ring, srq->tail, srq->wr))
		return false;
	put_recv((void *)(base + (size_t)(srq->tail & (srq->wr - 1)) * srq->stride), wr_id, sge,
		 num_sge, srq->sge);
	publish(srq->ring, &srq->tail, srq->wr);
	return true;
}

void fg_ring_send(struct fg_qp *qp)
{
	fg_uar_write(qp->guest, qp->ctx->uar, PVRDMA_UAR_QP_OFFSET, PVR_DB_QP_SEND | qp->handle);
}

void fg_ring_recv(struct fg_qp *qp)
{
	fg_uar_write(qp->guest, qp->ctx->uar, PVRDMA_UAR_QP_OFFSET, PVR_DB_QP_RECV | qp->handle);
}

void fg_ring_srq(struct fg_srq *srq)
{
	fg_uar_write(srq->ctx->guest, srq->ctx->uar, PVRDMA_UAR_SRQ_OFFSET,
		     PVR_DB_SRQ_RECV | srq->handle);
}

struct pvr_db_suppress *fg_qp_db_suppress(const struct fg_qp *qp)
{
	return (void *)(qp->buf.va + PVR_DB_SUPPRESS_OFFSET);
}

struct pvr_db_suppress *fg_srq_db_suppress(const struct fg_srq *srq)
{
	return (void *)(srq->buf.va + PVR_DB_SUPPRESS_OFFSET);
}

/* Counts a doorbell, or one that is not needed. Return: @must. */
static bool count_doorbell(struct fg_guest *guest, bool must)
{
	guest->doorbells += must;
	guest->doorbells_spared += !must;
	return must;
}

/* Return: whether the device requests doorbells by @word; prod_tail has just been stored. */
static bool is_requested(const struct fg_guest *guest, const uint32_t *word)
{
	if (!(guest->features & PVR_EXT_DB_SUPPRESS))
		return true;
	/* Pairs with the device's, between its store to the word and its last look. */
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
	return !__atomic_load_n(word, __ATOMIC_ACQUIRE);
}

static bool must_ring(struct fg_guest *guest, const uint32_t *word)
{
	return count_doorbell(guest, is_requested(guest, word));
}

/*
 * The word is 0, but cons_head has not passed what the last doorbell was for: that is on its
 * way still, and the device will see all that is posted meanwhile (struct pvr_db_suppress).
 */
static bool is_rung(struct fg_qp *qp)
{
	uint32_t head = __atomic_load_n(&qp->ring->tx.cons_head, __ATOMIC_RELAXED);
	uint32_t ahead = (qp->sq_rung - head) & (2 * qp->sq_wr - 1);

	return qp->rang && ahead && ahead < qp->sq_wr;
}

static bool must_ring_send(struct fg_qp *qp)
{
	bool must = is_requested(qp->guest, &fg_qp_db_suppress(qp)->sq);

	if (!must)
		qp->rang = false;
	else if (qp->guest->features & PVR_EXT_DB_SUPPRESS && is_rung(qp))
		must = false;
	else
		qp->rang = true;
	if (must)
		qp->sq_rung = qp->sq_tail;
	return count_doorbell(qp->guest, must);
}

bool fg_post_send(struct fg_qp *qp, const struct fg_wr *wr)
{
	bool ok = fg_put_send(qp, wr);

	if (ok && must_ring_send(qp))
		fg_ring_send(qp);
	return ok;
}

bool fg_post_recv(struct fg_qp *qp, uint64_t wr_id, const struct pvrdma_sge *sge, uint32_t num_sge)
{
	bool ok = fg_put_recv(qp, wr_id, sge, num_sge);

	if (ok && must_ring(qp->guest, &fg_qp_db_suppress(qp)->rq))
		fg_ring_recv(qp);
	return ok;
}

bool fg_post_srq_recv(struct fg_srq *srq, uint64_t wr_id, const struct pvrdma_sge *sge,
		      uint32_t num_sge)
{
	bool ok = fg_put_srq_recv(srq, wr_id, sge, num_sge);

	if (ok && must_ring(srq->ctx->guest, &fg_srq_db_suppress(srq)->rq))
		fg_ring_srq(srq);
	return ok;
}
