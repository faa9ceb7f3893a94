// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* Posting of work requests by kernel consumers. */
#include "pvrdma.h"
#include "wq.h"

static void *wqe_at(struct pvr_qp *qp, struct pvr_wq *wq)
{
	return pvr_pdir_at(&qp->pdir,
			   wq->offset + (size_t)pvr_ring_slot(wq->tail, wq->n) *
						wq->stride);
}

/* Properties of an opcode: required device features and QP types that may post it. */
struct wr_op {
	u8 opcode; /* enum pvrdma_wr_opcode */
	bool rc, uc, ud, gsi;
	u8 bmme; /* PVR_BMME_* that the device must have */
	void (*fill)(struct pvr_sq_wqe *wqe, const struct ib_send_wr *wr);
};

static void fill_imm(struct pvr_sq_wqe *wqe, const struct ib_send_wr *wr)
{
	wqe->ex.imm_data = wr->ex.imm_data;
}

static void fill_inv(struct pvr_sq_wqe *wqe, const struct ib_send_wr *wr)
{
	wqe->ex.invalidate_rkey = cpu_to_le32(wr->ex.invalidate_rkey);
}

static void fill_rdma(struct pvr_sq_wqe *wqe, const struct ib_send_wr *wr)
{
	wqe->wr.rdma.remote_addr = cpu_to_le64(rdma_wr(wr)->remote_addr);
	wqe->wr.rdma.rkey = cpu_to_le32(rdma_wr(wr)->rkey);
}

static void fill_rdma_imm(struct pvr_sq_wqe *wqe, const struct ib_send_wr *wr)
{
	fill_rdma(wqe, wr);
	fill_imm(wqe, wr);
}

static void fill_cas(struct pvr_sq_wqe *wqe, const struct ib_send_wr *wr)
{
	wqe->wr.atomic.remote_addr = cpu_to_le64(atomic_wr(wr)->remote_addr);
	wqe->wr.atomic.rkey = cpu_to_le32(atomic_wr(wr)->rkey);
	wqe->wr.atomic.compare_add = cpu_to_le64(atomic_wr(wr)->compare_add);
	wqe->wr.atomic.swap = cpu_to_le64(atomic_wr(wr)->swap);
}

static void fill_faa(struct pvr_sq_wqe *wqe, const struct ib_send_wr *wr)
{
	wqe->wr.atomic.remote_addr = cpu_to_le64(atomic_wr(wr)->remote_addr);
	wqe->wr.atomic.rkey = cpu_to_le32(atomic_wr(wr)->rkey);
	wqe->wr.atomic.compare_add = cpu_to_le64(atomic_wr(wr)->compare_add);
}

static void fill_reg(struct pvr_sq_wqe *wqe, const struct ib_send_wr *wr)
{
	struct pvr_mr *mr = to_pvr_mr(reg_wr(wr)->mr);

	wqe->wr.fast_reg.iova_start = cpu_to_le64(mr->ibmr.iova);
	wqe->wr.fast_reg.pl_pdir_dma = cpu_to_le64(mr->pdir.dir.dma);
	wqe->wr.fast_reg.page_shift = cpu_to_le32(PVR_PAGE_SHIFT);
	wqe->wr.fast_reg.page_list_len = cpu_to_le32(mr->npages);
	wqe->wr.fast_reg.length = cpu_to_le32(mr->ibmr.length);
	wqe->wr.fast_reg.access_flags = cpu_to_le32(reg_wr(wr)->access);
	wqe->wr.fast_reg.rkey = cpu_to_le32(reg_wr(wr)->key);
}

static const struct wr_op wr_ops[] = {
	[IB_WR_RDMA_WRITE] = { PVRDMA_WR_RDMA_WRITE, .rc = true, .uc = true,
			       .fill = fill_rdma },
	[IB_WR_RDMA_WRITE_WITH_IMM] = { PVRDMA_WR_RDMA_WRITE_WITH_IMM,
					.rc = true, .uc = true,
					.fill = fill_rdma_imm },
	[IB_WR_SEND] = { PVRDMA_WR_SEND, .rc = true, .uc = true, .ud = true,
			 .gsi = true },
	[IB_WR_SEND_WITH_IMM] = { PVRDMA_WR_SEND_WITH_IMM, .rc = true,
				  .uc = true, .ud = true, .fill = fill_imm },
	[IB_WR_RDMA_READ] = { PVRDMA_WR_RDMA_READ, .rc = true,
			      .fill = fill_rdma },
	[IB_WR_ATOMIC_CMP_AND_SWP] = { PVRDMA_WR_ATOMIC_CMP_AND_SWP, .rc = true,
				       .fill = fill_cas },
	[IB_WR_ATOMIC_FETCH_AND_ADD] = { PVRDMA_WR_ATOMIC_FETCH_AND_ADD,
					 .rc = true, .fill = fill_faa },
	[IB_WR_SEND_WITH_INV] = { PVRDMA_WR_SEND_WITH_INV, .rc = true,
				  .bmme = PVR_BMME_REMOTE_INV,
				  .fill = fill_inv },
	[IB_WR_LOCAL_INV] = { PVRDMA_WR_LOCAL_INV, .rc = true,
			      .bmme = PVR_BMME_LOCAL_INV, .fill = fill_inv },
	[IB_WR_REG_MR] = { PVRDMA_WR_FAST_REG_MR, .rc = true,
			   .bmme = PVR_BMME_FAST_REG_WR, .fill = fill_reg },
};

/*
 * Return: the row of @wr, or NULL if this QP or this device does not support it.
 */
static const struct wr_op *wr_op(struct pvr_qp *qp, const struct ib_send_wr *wr)
{
	u8 bmme = to_pvr_dev(qp->ibqp.device)->caps.bmme_flags;
	const struct wr_op *op;
	bool ok;

	if ((unsigned int)wr->opcode >= ARRAY_SIZE(wr_ops))
		return NULL;
	op = &wr_ops[wr->opcode];
	switch (qp->ibqp.qp_type) {
	case IB_QPT_RC:
		ok = op->rc;
		break;
	case IB_QPT_UC:
		ok = op->uc;
		break;
	case IB_QPT_UD:
		ok = op->ud;
		break;
	default:
		ok = op->gsi;
	}
	return ok && (bmme & op->bmme) == op->bmme ? op : NULL;
}

/* A qkey with the highest bit set selects the QP's own qkey. */
static void fill_ud(struct pvr_qp *qp, struct pvr_sq_wqe *wqe,
		    const struct ib_send_wr *wr)
{
	u32 qkey = ud_wr(wr)->remote_qkey;

	wqe->wr.ud.remote_qpn = cpu_to_le32(ud_wr(wr)->remote_qpn);
	wqe->wr.ud.remote_qkey =
		cpu_to_le32(qkey & BIT(31) ? READ_ONCE(qp->qkey) : qkey);
	wqe->wr.ud.av = to_pvr_ah(ud_wr(wr)->ah)->av;
}

static int check_send(struct pvr_qp *qp, const struct ib_send_wr *wr,
		      const struct wr_op *op)
{
	if (!op || wr->num_sge < 0 || wr->num_sge > qp->sq.max_sge)
		return -EINVAL;
	if (wr->send_flags & IB_SEND_INLINE) /* max_inline_data is 0 */
		return -EINVAL;
	if (pvr_qp_is_datagram(qp) && !ud_wr(wr)->ah)
		return -EINVAL;
	return 0;
}

#define SEND_FLAGS \
	(IB_SEND_FENCE | IB_SEND_SIGNALED | IB_SEND_SOLICITED | IB_SEND_IP_CSUM)

static int post_one_send_locked(struct pvr_qp *qp, const struct ib_send_wr *wr)
{
	const struct wr_op *op = wr_op(qp, wr);
	struct pvr_sq_wqe *wqe;
	u32 bytes = 0;
	int err;

	err = check_send(qp, wr, op);
	if (!err)
		err = pvr_wq_room(&qp->sq);
	if (err)
		return err;
	wqe = wqe_at(qp, &qp->sq);
	memset(wqe, 0, sizeof(*wqe));
	wqe->wr_id = cpu_to_le64(qp->sq.tail);
	wqe->opcode = cpu_to_le32(op->opcode);
	wqe->send_flags = cpu_to_le32(wr->send_flags & SEND_FLAGS);
	if (wr->opcode != IB_WR_REG_MR && wr->opcode != IB_WR_LOCAL_INV) {
		wqe->num_sge = cpu_to_le32(wr->num_sge);
		bytes = pvr_wqe_fill_sges((struct pvr_sge *)(wqe + 1),
					  wr->sg_list, wr->num_sge);
	}
	if (op->fill)
		op->fill(wqe, wr);
	if (pvr_qp_is_datagram(qp))
		fill_ud(qp, wqe, wr);
	pvr_wq_push(&qp->sq, wr->wr_id, bytes);
	return 0;
}

/*
 * The QPs of a dead device are in the error state. New requests are flushed, so that
 * consumers can drain their queues. For the same reason the consumer's requests are not
 * refused if the device writes an impossible index: the device is declared dead.
 * Return: whether the device needs a doorbell for the requests that were posted.
 */
static bool waits_locked(struct pvr_qp *qp, const struct pvr_wq *wq)
{
	struct pvr_dev *dev = to_pvr_dev(qp->ibqp.device);

	lockdep_assert_held(&wq->lock);
	if (unlikely(!pvr_wq_index_ok(wq)))
		pvr_dev_fail(dev, "it wrote an impossible index of a queue");
	if (unlikely(pvr_dev_dead(dev))) {
		schedule_work(&dev->flush_work);
		return false;
	}
	return pvr_ring_waits(wq->db_suppress_shm);
}

/*
 * A call rings at most once, after the lock is released: a trapped write takes
 * microseconds. The device finds all requests that were posted until then.
 */
static void ring(struct pvr_qp *qp, u32 what)
{
	pvr_doorbell(to_pvr_dev(qp->ibqp.device), PVRDMA_UAR_QP_OFFSET,
		     qp->handle | what);
}

/* The requests before a bad one stay posted and need a doorbell. */
int pvr_post_send(struct ib_qp *ibqp, const struct ib_send_wr *wr,
		  const struct ib_send_wr **bad_wr)
{
	struct pvr_qp *qp = to_pvr_qp(ibqp);
	unsigned long flags;
	bool posted = false, waits;
	int err;

	spin_lock_irqsave(&qp->sq.lock, flags);
	err = READ_ONCE(qp->state) < IB_QPS_RTS ? -EINVAL : 0;
	for (; wr && !err; wr = wr->next) {
		err = post_one_send_locked(qp, wr);
		if (err)
			break;
		posted = true;
	}
	waits = posted && waits_locked(qp, &qp->sq);
	spin_unlock_irqrestore(&qp->sq.lock, flags);
	if (waits)
		ring(qp, PVR_DB_QP_SEND);
	if (err)
		*bad_wr = wr;
	return err;
}

static int post_one_recv_locked(struct pvr_qp *qp, const struct ib_recv_wr *wr)
{
	struct pvr_rq_wqe *wqe;
	u32 bytes;
	int err;

	if (wr->num_sge < 0 || wr->num_sge > qp->rq.max_sge)
		return -EINVAL;
	err = pvr_wq_room(&qp->rq);
	if (err)
		return err;
	wqe = wqe_at(qp, &qp->rq);
	wqe->wr_id = cpu_to_le64(qp->rq.tail | PVR_WQ_RECV);
	wqe->num_sge = cpu_to_le32(wr->num_sge);
	wqe->total_len = 0;
	bytes = pvr_wqe_fill_sges((struct pvr_sge *)(wqe + 1), wr->sg_list,
				  wr->num_sge);
	pvr_wq_push(&qp->rq, wr->wr_id, bytes);
	return 0;
}

int pvr_post_recv(struct ib_qp *ibqp, const struct ib_recv_wr *wr,
		  const struct ib_recv_wr **bad_wr)
{
	struct pvr_qp *qp = to_pvr_qp(ibqp);
	unsigned long flags;
	bool posted = false, waits;
	int err;

	if (ibqp->srq) {
		*bad_wr = wr;
		return -EINVAL;
	}
	spin_lock_irqsave(&qp->rq.lock, flags);
	err = READ_ONCE(qp->state) == IB_QPS_RESET ? -EINVAL : 0;
	for (; wr && !err; wr = wr->next) {
		err = post_one_recv_locked(qp, wr);
		if (err)
			break;
		posted = true;
	}
	waits = posted && waits_locked(qp, &qp->rq);
	spin_unlock_irqrestore(&qp->rq.lock, flags);
	if (waits)
		ring(qp, PVR_DB_QP_RECV);
	if (err)
		*bad_wr = wr;
	return err;
}
