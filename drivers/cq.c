// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* Completion queues. */
#include "cq_buf.h"
#include "pvrdma.h"
#include "srq_wq.h"
#include "wq.h"

static void remove_cq(struct pvr_dev *dev, struct pvr_cq *cq)
{
	if (pvr_cmd_destroy(dev, PVR_CMD_DESTROY_CQ, cq->handle))
		pvr_keep(dev, &cq->buf.pdir, &cq->buf.umem);
}

static int create_cq(struct pvr_dev *dev, struct pvr_cq *cq, u32 ctx)
{
	union pvr_cmd_req req = {};
	union pvr_cmd_resp resp;
	int err;

	req.hdr.cmd = cpu_to_le32(PVR_CMD_CREATE_CQ);
	req.create_cq.pdir_dma = cpu_to_le64(cq->buf.pdir.dir.dma);
	req.create_cq.ctx_handle = cpu_to_le32(ctx);
	req.create_cq.cqe = cpu_to_le32(cq->buf.n);
	req.create_cq.nchunks = cpu_to_le32(cq->buf.pdir.npages);
	req.create_cq.comp_vector = cpu_to_le32(cq->vector);
	req.create_cq.flags = cpu_to_le32(cq->flags);
	err = pvr_cmd(dev, &req, &resp);
	if (err)
		return err;
	pvr_pdir_was_read(dev, &cq->buf.pdir);
	cq->handle = le32_to_cpu(resp.create_cq.cq_handle);
	if (le32_to_cpu(resp.create_cq.cqe) != cq->buf.n) {
		pvr_dev_fail(dev, "it changed the size of a CQ");
		return -EIO;
	}
	err = pvr_handle_insert(dev, &dev->cqs, cq->handle, cq);
	if (err)
		remove_cq(dev, cq);
	return err;
}

/* After the erase no new event handler starts. The drain waits for running ones. */
static void destroy_cq(struct pvr_dev *dev, struct pvr_cq *cq)
{
	xa_erase_irq(&dev->cqs, cq->handle);
	remove_cq(dev, cq);
	pvr_ref_drain(&cq->ref);
}

static int reply(struct pvr_cq *cq, struct ib_udata *udata)
{
	struct pvrdma_create_cq_resp resp = { .cqn = cq->handle };

	return udata ? pvr_udata_out(udata, &resp, sizeof(resp)) : 0;
}

/* Providers read timestamps; completions of kernel CQs have none in struct ib_wc. */
static bool take_flags(struct pvr_cq *cq, u32 flags, struct ib_udata *udata)
{
	if (!flags)
		return true;
	if (flags != IB_UVERBS_CQ_FLAGS_TIMESTAMP_COMPLETION || !udata ||
	    !(pvr_udata_features(udata) & PVR_EXT_CQ_TIMESTAMP))
		return false;
	cq->flags = PVR_CQ_TIMESTAMP;
	return true;
}

int pvr_create_cq(struct ib_cq *ibcq, const struct ib_cq_init_attr *attr,
		  PVR_CREATE_CQ_ARG *arg)
{
	struct pvr_dev *dev = to_pvr_dev(ibcq->device);
	struct ib_udata *udata = pvr_cq_udata(arg);
	struct pvr_cq *cq = to_pvr_cq(ibcq);
	int err;

	if (!take_flags(cq, attr->flags, udata))
		return -EOPNOTSUPP;
	if (attr->comp_vector >= dev->num_vectors)
		return -EINVAL;
	err = pvr_cq_buf_init(dev, &cq->buf, attr->cqe, udata);
	if (err)
		return err;
	ibcq->cqe = cq->buf.n;
	cq->vector = attr->comp_vector;
	spin_lock_init(&cq->lock);
	mutex_init(&cq->resize_lock);
	xa_init_flags(&cq->qps, XA_FLAGS_LOCK_IRQ);
	pvr_ref_init(&cq->ref);

	err = create_cq(dev, cq, pvr_udata_ctx(udata));
	if (err)
		goto err_buf;
	err = reply(cq, udata);
	if (err)
		goto err_cq;
	return 0;

err_cq:
	destroy_cq(dev, cq);
err_buf:
	mutex_destroy(&cq->resize_lock);
	pvr_cq_buf_exit(&cq->buf);
	return err;
}

int pvr_destroy_cq(struct ib_cq *ibcq, struct ib_udata *udata)
{
	struct pvr_cq *cq = to_pvr_cq(ibcq);

	destroy_cq(to_pvr_dev(ibcq->device), cq);
	mutex_destroy(&cq->resize_lock);
	pvr_cq_buf_exit(&cq->buf);
	return 0;
}

int pvr_modify_cq(struct ib_cq *ibcq, u16 count, u16 period)
{
	union pvr_cmd_req req = {};

	req.hdr.cmd = cpu_to_le32(PVR_CMD_MODIFY_CQ);
	req.modify_cq.cq_handle = cpu_to_le32(to_pvr_cq(ibcq)->handle);
	req.modify_cq.count = cpu_to_le16(count);
	req.modify_cq.period_us = cpu_to_le16(period);
	return pvr_cmd(to_pvr_dev(ibcq->device), &req, NULL);
}

static struct pvr_cqe *cqe_at(struct pvr_cq *cq, u32 idx)
{
	size_t slot = pvr_ring_slot(idx, cq->buf.n);

	return pvr_pdir_at(&cq->buf.pdir,
			   PVR_PAGE_SIZE + slot * sizeof(struct pvr_cqe));
}

static u32 cqe_qp(const struct pvr_cqe *cqe)
{
	return le64_to_cpu(cqe->qp) & 0xffff;
}

/*
 * Return: the number of unread completions; 0 while the CQ is being resized.
 *
 * An impossible index means that completions are lost, and consumers would wait for them
 * forever. So the device is declared dead.
 */
static u32 cq_used_locked(struct pvr_cq *cq)
{
	struct pvr_dev *dev = to_pvr_dev(cq->ibcq.device);
	u32 tail = le32_to_cpu(READ_ONCE(cq->buf.ring_shm->prod_tail));
	u32 used = pvr_ring_used(tail, cq->head, cq->buf.n);

	lockdep_assert_held(&cq->lock);
	if (unlikely(cq->frozen)) {
		cq->missed = true;
		return 0;
	}
	if (likely(used <= cq->buf.n))
		return used;
	if (!pvr_dev_dead(dev))
		ibdev_err(
			&dev->ibdev,
			"cq %u: device wrote prod_tail %#x, cons_head is %#x, expected at most %u apart\n",
			cq->handle, tail, cq->head, cq->buf.n);
	pvr_dev_fail(dev, "it wrote an impossible CQ index");
	return 0;
}

/* Replaces an opcode that the queue cannot have by the opcode of a plain request. */
static enum ib_wc_opcode recv_opcode(u32 opcode)
{
	return opcode == PVRDMA_WC_RECV_RDMA_WITH_IMM ? IB_WC_RECV_RDMA_WITH_IMM
						      : IB_WC_RECV;
}

static enum ib_wc_opcode send_opcode(u32 opcode)
{
	switch (opcode) {
	case PVRDMA_WC_RDMA_WRITE:
		return IB_WC_RDMA_WRITE;
	case PVRDMA_WC_RDMA_READ:
		return IB_WC_RDMA_READ;
	case PVRDMA_WC_COMP_SWAP:
		return IB_WC_COMP_SWAP;
	case PVRDMA_WC_FETCH_ADD:
		return IB_WC_FETCH_ADD;
	case PVRDMA_WC_LOCAL_INV:
		return IB_WC_LOCAL_INV;
	case PVRDMA_WC_FAST_REG_MR:
		return IB_WC_REG_MR;
	case PVRDMA_WC_MASKED_COMP_SWAP:
		return IB_WC_MASKED_COMP_SWAP;
	case PVRDMA_WC_MASKED_FETCH_ADD:
		return IB_WC_MASKED_FETCH_ADD;
	default:
		return IB_WC_SEND;
	}
}

static u8 wc_network_type(u8 type)
{
	switch (type) {
	case PVRDMA_NETWORK_ROCE_V1:
		return RDMA_NETWORK_ROCE_V1;
	case PVRDMA_NETWORK_IPV4:
		return RDMA_NETWORK_IPV4;
	default:
		return RDMA_NETWORK_IPV6;
	}
}

/* Only flags whose fields fill_wc() sets; the values are those of ib_core. */
#define WC_FLAGS                                                          \
	(PVRDMA_WC_GRH | PVRDMA_WC_WITH_IMM | PVRDMA_WC_WITH_INVALIDATE | \
	 PVRDMA_WC_IP_CSUM_OK | PVRDMA_WC_WITH_NETWORK_HDR_TYPE)

static void fill_vlan(struct ib_wc *wc, const struct pvr_cqe *cqe,
		      const struct pvr_dev *dev)
{
	__le16 vlan;

	if (!(dev->features & PVR_EXT_VLAN) ||
	    !(le32_to_cpu(cqe->wc_flags) & PVRDMA_WC_WITH_VLAN))
		return;
	memcpy(&vlan, cqe->reserved2 + PVR_CQE_VLAN, sizeof(vlan));
	wc->vlan_id = le16_to_cpu(vlan);
	wc->wc_flags |= IB_WC_WITH_VLAN;
}

#define MSG_BYTES_MAX BIT(31)

/*
 * Consumers read as many bytes of their buffers. An RDMA WRITE with immediate data has none
 * of them: its bytes are where its sender put them. Consumers subtract the GRH of a datagram.
 */
static u32 wc_bytes(const struct pvr_cqe *cqe, enum ib_wc_opcode opcode,
		    const struct pvr_qp *qp, u32 posted)
{
	u32 max = opcode == IB_WC_RECV_RDMA_WITH_IMM ? MSG_BYTES_MAX : posted;
	u32 min = opcode == IB_WC_RECV && pvr_qp_is_datagram(qp)
			  ? min_t(u32, sizeof(struct ib_grh), posted)
			  : 0;

	return clamp_t(u32, le32_to_cpu(cqe->byte_len), min, max);
}

static void fill_wc(struct ib_wc *wc, const struct pvr_cqe *cqe,
		    struct pvr_qp *qp, const struct pvr_done *done)
{
	bool recv = le64_to_cpu(cqe->wr_id) & PVR_WQ_RECV;
	u32 opcode = le32_to_cpu(cqe->opcode);
	u32 status = le32_to_cpu(cqe->status);

	wc->qp = &qp->ibqp;
	wc->status = status <= PVRDMA_WC_GENERAL_ERR ? status
						     : IB_WC_GENERAL_ERR;
	wc->wr_id = done->wr_id;
	wc->opcode = recv ? recv_opcode(opcode) : send_opcode(opcode);
	wc->vendor_err = le32_to_cpu(cqe->vendor_err);
	wc->byte_len = wc_bytes(cqe, wc->opcode, qp, done->bytes);
	wc->wc_flags = le32_to_cpu(cqe->wc_flags) & WC_FLAGS;
	if (wc->wc_flags & IB_WC_WITH_INVALIDATE)
		wc->ex.invalidate_rkey = le32_to_cpu(cqe->invalidated_rkey);
	else
		wc->ex.imm_data = cqe->imm_data;
	wc->src_qp = le32_to_cpu(cqe->src_qp);
	wc->slid = le16_to_cpu(cqe->slid);
	wc->sl = cqe->sl;
	wc->dlid_path_bits = cqe->dlid_path_bits;
	wc->port_num = 1;
	wc->pkey_index = le16_to_cpu(cqe->pkey_index);
	wc->network_hdr_type = wc_network_type(cqe->network_hdr_type);
	fill_vlan(wc, cqe, to_pvr_dev(qp->ibqp.device));
}

/*
 * End the request that the device names as @id, in its queue.
 * Return: whether that request was outstanding.
 */
static bool end_request(struct pvr_cq *cq, u64 id, struct pvr_qp *qp,
			struct pvr_done *done)
{
	u32 idx = lower_32_bits(id);

	if (!(id & PVR_WQ_RECV))
		return qp->ibqp.send_cq == &cq->ibcq &&
		       pvr_wq_complete(&qp->sq, idx, done);
	if (qp->ibqp.recv_cq != &cq->ibcq)
		return false;
	if (qp->ibqp.srq)
		return pvr_srq_wq_complete(&to_pvr_srq(qp->ibqp.srq)->wq, idx,
					   done);
	return pvr_wq_complete(&qp->rq, idx, done);
}

/*
 * Take the next completion. A completion of an unknown QP or request is skipped, because
 * it would block the CQ. A QP found here stays valid while the lock is held, see
 * pvr_cq_detach().
 * Return: whether @wc was filled.
 */
static bool take_cqe_locked(struct pvr_cq *cq, struct ib_wc *wc)
{
	struct pvr_done done;
	struct pvr_cqe cqe;
	struct pvr_qp *qp;
	u32 handle;
	u64 id;

	memcpy(&cqe, cqe_at(cq, cq->head), sizeof(cqe));
	cq->head = pvr_ring_next(cq->head, cq->buf.n);
	handle = cqe_qp(&cqe);
	id = le64_to_cpu(cqe.wr_id);
	qp = xa_load(&cq->qps, handle);
	if (!qp || !end_request(cq, id, qp, &done)) {
		ibdev_dbg(cq->ibcq.device,
			  "cq %u: skipped completion of qp %u, request %#llx\n",
			  cq->handle, handle, id);
		return false;
	}
	fill_wc(wc, &cqe, qp, &done);
	return true;
}

static bool flush_one(struct pvr_qp *qp, bool recv, u64 *wr_id)
{
	if (recv && qp->ibqp.srq)
		return pvr_srq_wq_flush(&to_pvr_srq(qp->ibqp.srq)->wq, wr_id);
	return pvr_wq_flush(recv ? &qp->rq : &qp->sq, wr_id);
}

static int flush_wq_locked(struct pvr_qp *qp, bool recv, int num,
			   struct ib_wc *wc)
{
	int n = 0;

	for (; n < num && flush_one(qp, recv, &wc[n].wr_id); n++) {
		wc[n].qp = &qp->ibqp;
		wc[n].status = IB_WC_WR_FLUSH_ERR;
		wc[n].opcode = recv ? IB_WC_RECV : IB_WC_SEND;
		wc[n].vendor_err = 0;
		wc[n].wc_flags = 0;
	}
	return n;
}

/* A dead device writes no completions, so flush the outstanding requests here. */
static int flush_cq_locked(struct pvr_cq *cq, int num, struct ib_wc *wc)
{
	unsigned long handle;
	struct pvr_qp *qp;
	int n = 0;

	xa_for_each(&cq->qps, handle, qp) {
		if (n == num)
			break;
		if (qp->ibqp.send_cq == &cq->ibcq)
			n += flush_wq_locked(qp, false, num - n, wc + n);
		if (qp->ibqp.recv_cq == &cq->ibcq)
			n += flush_wq_locked(qp, true, num - n, wc + n);
	}
	return n;
}

/*
 * A device without PVR_EXT_NO_POLL_DB may write completions only after a poll doorbell.
 */
static u32 cq_used_or_nudge_locked(struct pvr_dev *dev, struct pvr_cq *cq)
{
	u32 used = cq_used_locked(cq);

	if (used || (dev->features & PVR_EXT_NO_POLL_DB))
		return used;
	pvr_doorbell(dev, PVRDMA_UAR_CQ_OFFSET, cq->handle | PVR_DB_CQ_POLL);
	return cq_used_locked(cq);
}

int pvr_poll_cq(struct ib_cq *ibcq, int num, struct ib_wc *wc)
{
	struct pvr_dev *dev = to_pvr_dev(ibcq->device);
	struct pvr_cq *cq = to_pvr_cq(ibcq);
	unsigned long flags;
	int polled = 0;
	u32 used;

	if (num < 1)
		return 0;
	spin_lock_irqsave(&cq->lock, flags);
	used = cq_used_or_nudge_locked(dev, cq);
	dma_rmb(); /* completions after the index that announces them */
	for (; used && polled < num; used--)
		if (take_cqe_locked(cq, &wc[polled]))
			polled++;
	pvr_ring_release(cq->buf.ring_shm, cq->head);
	if (!used && unlikely(pvr_dev_dead(dev)))
		polled += flush_cq_locked(cq, num - polled, wc + polled);
	spin_unlock_irqrestore(&cq->lock, flags);
	return polled;
}

/*
 * Arm the CQ by its arm record, if possible.
 *
 * The record stays armed for any completion if the new request is for solicited ones
 * only: the device may not have read it yet. During a resize it is undefined which ring's
 * record the device reads. In both cases the doorbell arms.
 * Return: whether the arm record armed the CQ.
 */
static bool arm_locked(struct pvr_cq *cq, u32 kind)
{
	struct pvr_cq_buf *buf = &cq->buf;

	lockdep_assert_held(&cq->lock);
	if (!buf->arm_dbrec || cq->frozen)
		return false;
	if (kind == PVR_CQ_ARM_SOLICITED &&
	    (buf->arm & PVR_CQ_ARM_KIND) == PVR_CQ_ARM_ANY)
		return false;
	buf->arm = ((buf->arm & ~PVR_CQ_ARM_KIND) + PVR_CQ_ARM_STEP) | kind;
	WRITE_ONCE(buf->arm_dbrec->arm, cpu_to_le32(buf->arm));
	/*
	 * Pairs with the device's barrier between its store to prod_tail and its load of
	 * the arm record: the caller sees each completion that the device did not
	 * announce. Not virt_mb(), see ring.h.
	 */
	mb();
	return true;
}

static void ring_arm(struct pvr_cq *cq, bool solicited)
{
	pvr_doorbell(to_pvr_dev(cq->ibcq.device), PVRDMA_UAR_CQ_OFFSET,
		     cq->handle |
			     (solicited ? PVR_DB_CQ_ARM_SOL : PVR_DB_CQ_ARM));
}

/*
 * Return: whether there is a completion that the device may not have announced. Call
 * after arming.
 */
static bool has_news_locked(struct pvr_cq *cq)
{
	if (!cq_used_locked(cq))
		return false;
	/* The device clears told before it stores prod_tail. */
	virt_rmb();
	return !READ_ONCE(cq->buf.arm_dbrec->notified);
}

/*
 * Completions already in the ring may not have been announced. With REPORT_MISSED_EVENTS
 * the return value makes the consumer poll again. Otherwise the doorbell makes the device
 * decide.
 */
int pvr_req_notify_cq(struct ib_cq *ibcq, enum ib_cq_notify_flags flags)
{
	bool solicited = (flags & IB_CQ_SOLICITED_MASK) == IB_CQ_SOLICITED;
	struct pvr_cq *cq = to_pvr_cq(ibcq);
	unsigned long irq_flags;
	bool in_memory;
	int missed = 0;

	spin_lock_irqsave(&cq->lock, irq_flags);
	in_memory = arm_locked(cq, solicited ? PVR_CQ_ARM_SOLICITED
					     : PVR_CQ_ARM_ANY);
	if (!in_memory)
		ring_arm(cq, solicited);
	if ((flags & IB_CQ_REPORT_MISSED_EVENTS) || cq->frozen)
		missed = cq_used_locked(cq) > 0;
	else if (in_memory && has_news_locked(cq))
		ring_arm(cq, solicited);
	spin_unlock_irqrestore(&cq->lock, irq_flags);
	return missed;
}

/*
 * The SRQ outlives the QP. End the purged request, or its number would never become free.
 */
static void end_purged(struct pvr_cq *cq, u64 id, struct pvr_qp *qp)
{
	struct pvr_done done;

	if (qp->ibqp.srq)
		end_request(cq, id, qp, &done);
}

/*
 * Walk from the newest completion to the oldest and move the others towards the newest.
 * The device never reads completions back.
 */
void pvr_cq_purge(struct pvr_cq *cq, struct pvr_qp *qp)
{
	u32 i, idx, used, mask, gone = 0;
	struct pvr_cqe *cqe;
	unsigned long flags;

	mutex_lock(&cq->resize_lock);
	mask = 2 * cq->buf.n - 1;
	spin_lock_irqsave(&cq->lock, flags);
	used = cq_used_locked(cq);
	dma_rmb(); /* completions after the index that announces them */
	for (i = used; i-- > 0;) {
		idx = (cq->head + i) & mask;
		cqe = cqe_at(cq, idx);
		if (cqe_qp(cqe) == qp->handle) {
			end_purged(cq, le64_to_cpu(READ_ONCE(cqe->wr_id)), qp);
			gone++;
		} else if (gone) {
			memcpy(cqe_at(cq, (idx + gone) & mask), cqe,
			       sizeof(*cqe));
		}
	}
	cq->head = (cq->head + gone) & mask;
	pvr_ring_release(cq->buf.ring_shm, cq->head);
	spin_unlock_irqrestore(&cq->lock, flags);
	mutex_unlock(&cq->resize_lock);
}

int pvr_cq_attach(struct pvr_cq *cq, struct pvr_qp *qp)
{
	return xa_insert_irq(&cq->qps, qp->handle, qp, GFP_KERNEL);
}

/* A poller that found the QP before the erase holds cq->lock, which the purge takes. */
void pvr_cq_detach(struct pvr_cq *cq, struct pvr_qp *qp)
{
	xa_erase_irq(&cq->qps, qp->handle);
	pvr_cq_purge(cq, qp);
}
