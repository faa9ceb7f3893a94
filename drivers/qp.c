// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* Queue pairs: creation and destruction. */
#include <rdma/ib_umem.h>

#include "pvrdma.h"
#include "wq.h"

#define MAX_CHUNKS U16_MAX /* the command has 16 bits for page counts */

/* Inline data use the space of scatter/gather entries. */
static u32 sq_stride(const struct ib_qp_cap *cap)
{
	u32 payload = max_t(u32, cap->max_inline_data,
			    cap->max_send_sge * sizeof(struct pvr_sge));

	return max_t(u32, PVR_SQ_STRIDE_MIN,
		     roundup_pow_of_two(sizeof(struct pvr_sq_wqe) + payload));
}

static u32 rq_stride(u32 max_sge)
{
	return max_t(u32, PVR_RQ_STRIDE_MIN,
		     roundup_pow_of_two(sizeof(struct pvr_rq_wqe) +
					max_sge * sizeof(struct pvr_sge)));
}

static u32 wq_pages(u32 n, u32 stride)
{
	return DIV_ROUND_UP((u64)n * stride, PVR_PAGE_SIZE);
}

static bool type_ok(const struct pvr_dev *dev,
		    const struct ib_qp_init_attr *init, struct ib_udata *udata)
{
	switch (init->qp_type) {
	case IB_QPT_RC:
	case IB_QPT_UD:
		return true;
	case IB_QPT_UC:
		/* A stock provider creates UC QPs, but cannot post to them. */
		return (udata ? pvr_udata_features(udata) : dev->features) &
		       PVR_EXT_UC;
	case IB_QPT_XRC_INI:
		return udata && (pvr_udata_features(udata) & PVR_EXT_XRC);
	case IB_QPT_XRC_TGT:
		/* ib_core creates it without udata, as it belongs to no process. */
		return dev->features & PVR_EXT_XRC;
	case IB_QPT_GSI:
		return !udata && init->port_num <= 1;
	default:
		return false;
	}
}

/* ib_core requires both CQs of programs only. An XRC initiator has no receive CQ. */
static bool cqs_ok(const struct ib_qp_init_attr *init)
{
	if (init->qp_type == IB_QPT_XRC_TGT)
		return true;
	return init->send_cq &&
	       (init->recv_cq || init->qp_type == IB_QPT_XRC_INI);
}

/* Sizes are rounded up to powers of two. So the limits are, too. */
static bool caps_ok(const struct pvr_dev_caps *caps,
		    const struct ib_qp_cap *cap)
{
	u32 max_wr = roundup_pow_of_two(caps->max_qp_wr);
	u32 max_sge = roundup_pow_of_two(caps->max_sge);

	return cap->max_send_wr <= max_wr && cap->max_recv_wr <= max_wr &&
	       cap->max_send_sge <= max_sge && cap->max_recv_sge <= max_sge &&
	       cap->max_inline_data <= PVR_MAX_INLINE;
}

static int check_init(struct pvr_dev *dev, const struct ib_qp_init_attr *init,
		      struct ib_udata *udata)
{
	if (init->create_flags || !type_ok(dev, init, udata))
		return -EOPNOTSUPP;
	if (!cqs_ok(init))
		return -EINVAL;
	if (init->srq && !!udata != !!to_pvr_srq(init->srq)->mem.umem)
		return -EINVAL;
	if (!caps_ok(&dev->caps, &init->cap)) {
		ibdev_dbg(
			&dev->ibdev,
			"QP has %u+%u WRs of %u+%u SGEs, %u bytes inline, expected at most %u of %u, %d\n",
			init->cap.max_send_wr, init->cap.max_recv_wr,
			init->cap.max_send_sge, init->cap.max_recv_sge,
			init->cap.max_inline_data, dev->caps.max_qp_wr,
			dev->caps.max_sge, PVR_MAX_INLINE);
		return -EINVAL;
	}
	return 0;
}

/* Round the sizes of a kernel QP up to powers of two; the consumer gets the result. */
static void round_cap(struct ib_qp_cap *cap, bool has_srq)
{
	cap->max_send_wr = roundup_pow_of_two(max(cap->max_send_wr, 1U));
	cap->max_send_sge = roundup_pow_of_two(max(cap->max_send_sge, 1U));
	if (has_srq) {
		cap->max_recv_wr = 0;
		cap->max_recv_sge = 0;
		return;
	}
	cap->max_recv_wr = roundup_pow_of_two(max(cap->max_recv_wr, 1U));
	cap->max_recv_sge = roundup_pow_of_two(max(cap->max_recv_sge, 1U));
}

static void set_db_suppressed(struct pvr_dev *dev, struct pvr_qp *qp)
{
	const struct pvr_db_suppress *db_suppress_shm;

	if (!(dev->features & PVR_EXT_DB_SUPPRESS))
		return;
	db_suppress_shm = pvr_ring_db_suppress(pvr_pdir_at(&qp->pdir, 0));
	qp->sq.db_suppress_shm = &db_suppress_shm->sq;
	qp->rq.db_suppress_shm = &db_suppress_shm->rq;
}

/*
 * Allocate a header page, the send queue and the receive queue. On failure the caller
 * calls pages_free().
 */
static int kernel_pages(struct pvr_dev *dev, struct pvr_qp *qp,
			struct ib_qp_cap *cap, struct pvr_cmd_create_qp *cmd)
{
	struct pvr_ring_state *state_shm;
	u32 sq_pages, rq_pages;
	int err;

	round_cap(cap, qp->ibqp.srq);
	sq_pages = wq_pages(cap->max_send_wr, sq_stride(cap));
	rq_pages = wq_pages(cap->max_recv_wr, rq_stride(cap->max_recv_sge));
	if (1 + sq_pages + rq_pages > MAX_CHUNKS)
		return -EINVAL;
	err = pvr_pdir_init(&qp->pdir, &dev->dir_pages, 1 + sq_pages + rq_pages,
			    true);
	if (err)
		return err;
	state_shm = pvr_pdir_at(&qp->pdir, 0);
	set_db_suppressed(dev, qp);
	cmd->send_chunks = cpu_to_le16(sq_pages);
	err = pvr_wq_init(&qp->sq, &state_shm->tx, cap->max_send_wr,
			  cap->max_send_sge, sq_stride(cap), PVR_PAGE_SIZE);
	if (err || qp->ibqp.srq)
		return err;
	return pvr_wq_init(&qp->rq, &state_shm->rx, cap->max_recv_wr,
			   cap->max_recv_sge, rq_stride(cap->max_recv_sge),
			   (size_t)(1 + sq_pages) * PVR_PAGE_SIZE);
}

static bool has_rq(const struct pvr_qp *qp)
{
	return !qp->ibqp.srq && qp->ibqp.qp_type != IB_QPT_XRC_INI;
}

/* The provider lays out its queues, so its sizes must be exact. */
static int check_user_cap(const struct pvr_qp *qp, const struct ib_qp_cap *cap)
{
	if (!is_power_of_2(cap->max_send_wr))
		return -EINVAL;
	return !has_rq(qp) || is_power_of_2(cap->max_recv_wr) ? 0 : -EINVAL;
}

/*
 * Our provider has both queues in one piece of memory. To pin it once is cheaper.
 * Return: bytes of both queues, or 0 if they are not in one piece.
 */
static u32 joint_size(const struct pvr_qp *qp,
		      const struct pvrdma_create_qp *ucmd)
{
	u64 size = (u64)ucmd->sbuf_size + ucmd->rbuf_size;

	if (!has_rq(qp) || !ucmd->rbuf_size || size > U32_MAX ||
	    ucmd->sbuf_size % PVR_PAGE_SIZE ||
	    ucmd->rbuf_addr != ucmd->sbuf_addr + ucmd->sbuf_size)
		return 0;
	return size;
}

/* Pin the memory of the QP, and count the pages of the first of two buffers. */
static int user_bufs(struct pvr_dev *dev, struct pvr_qp *qp,
		     const struct ib_qp_cap *cap,
		     const struct pvrdma_create_qp *ucmd, size_t *sbuf_pages)
{
	u64 sq_bytes = (u64)cap->max_send_wr * sq_stride(cap) + PVR_PAGE_SIZE;
	u64 rq_bytes = (u64)cap->max_recv_wr * rq_stride(cap->max_recv_sge);
	u32 joint = joint_size(qp, ucmd);
	struct ib_umem *umem;

	if (joint && (ucmd->sbuf_size < sq_bytes || ucmd->rbuf_size < rq_bytes))
		return -EINVAL;
	umem = pvr_umem_get(dev, ucmd->sbuf_addr, joint ?: ucmd->sbuf_size,
			    sq_bytes);
	if (IS_ERR(umem))
		return PTR_ERR(umem);
	qp->sbuf = umem;
	*sbuf_pages = joint ? ucmd->sbuf_size / PVR_PAGE_SIZE
			    : ib_umem_num_dma_blocks(umem, PVR_PAGE_SIZE);
	if (joint || !has_rq(qp))
		return 0;
	umem = pvr_umem_get(dev, ucmd->rbuf_addr, ucmd->rbuf_size, rq_bytes);
	if (IS_ERR(umem))
		return PTR_ERR(umem);
	qp->rbuf = umem;
	return 0;
}

/* On failure the caller calls pages_free(). */
static int user_pages(struct pvr_dev *dev, struct pvr_qp *qp,
		      struct ib_qp_cap *cap, struct ib_udata *udata,
		      struct pvr_cmd_create_qp *cmd)
{
	struct pvrdma_create_qp ucmd;
	size_t sbuf, rbuf = 0, send;
	int err;

	err = pvr_udata_in(udata, &ucmd, sizeof(ucmd));
	if (!err)
		err = check_user_cap(qp, cap);
	if (!err)
		err = user_bufs(dev, qp, cap, &ucmd, &send);
	if (err)
		return err;
	sbuf = ib_umem_num_dma_blocks(qp->sbuf, PVR_PAGE_SIZE);
	if (qp->rbuf)
		rbuf = ib_umem_num_dma_blocks(qp->rbuf, PVR_PAGE_SIZE);
	if (sbuf + rbuf > MAX_CHUNKS)
		return -EINVAL;
	err = pvr_pdir_init(&qp->pdir, &dev->dir_pages, sbuf + rbuf, false);
	if (err)
		return err;
	pvr_pdir_set_umem(&qp->pdir, 0, qp->sbuf, PVR_PAGE_SIZE);
	if (qp->rbuf)
		pvr_pdir_set_umem(&qp->pdir, sbuf, qp->rbuf, PVR_PAGE_SIZE);
	cmd->send_chunks = cpu_to_le16(send - 1);
	return 0;
}

/* A target has a header page only. */
static int target_pages(struct pvr_dev *dev, struct pvr_qp *qp)
{
	return pvr_pdir_init(&qp->pdir, &dev->dir_pages, 1, true);
}

static void pages_free(struct pvr_qp *qp)
{
	pvr_wq_exit(&qp->rq);
	pvr_wq_exit(&qp->sq);
	pvr_pdir_exit(&qp->pdir);
	ib_umem_release(qp->rbuf);
	ib_umem_release(qp->sbuf);
	qp->rbuf = NULL;
	qp->sbuf = NULL;
}

/* @type has passed type_ok(). */
static enum pvr_qp_type qp_type(enum ib_qp_type type)
{
	switch (type) {
	case IB_QPT_GSI:
		return PVR_QPT_GSI;
	case IB_QPT_UC:
		return PVR_QPT_UC;
	case IB_QPT_UD:
		return PVR_QPT_UD;
	case IB_QPT_XRC_INI:
		return PVR_QPT_XRC_INI;
	case IB_QPT_XRC_TGT:
		return PVR_QPT_XRC_TGT;
	default:
		return PVR_QPT_RC;
	}
}

static void fill_cmd(struct pvr_qp *qp, const struct ib_qp_init_attr *init,
		     u32 features, struct pvr_cmd_create_qp *cmd)
{
	/* An XRC initiator has no receive CQ. */
	struct ib_cq *recv_cq = init->recv_cq ?: init->send_cq;

	cmd->hdr.cmd = cpu_to_le32(PVR_CMD_CREATE_QP);
	cmd->pdir_dma = cpu_to_le64(qp->pdir.dir.dma);
	cmd->total_chunks = cpu_to_le16(qp->pdir.npages);
	cmd->qp_type = qp_type(init->qp_type);
	if (pvr_qp_is_target(qp)) {
		cmd->xrcd_handle = cpu_to_le32(to_pvr_xrcd(init->xrcd)->handle);
		return;
	}
	cmd->pd_handle = cpu_to_le32(to_pvr_pd(qp->ibqp.pd)->handle);
	cmd->send_cq_handle = cpu_to_le32(to_pvr_cq(init->send_cq)->handle);
	cmd->recv_cq_handle = cpu_to_le32(to_pvr_cq(recv_cq)->handle);
	cmd->max_send_wr = cpu_to_le32(init->cap.max_send_wr);
	cmd->max_send_sge = cpu_to_le32(init->cap.max_send_sge);
	cmd->max_inline_data = cpu_to_le32(init->cap.max_inline_data);
	if (init->srq) {
		cmd->is_srq = 1;
		cmd->srq_handle = cpu_to_le32(to_pvr_srq(init->srq)->handle);
	} else if (has_rq(qp)) {
		cmd->max_recv_wr = cpu_to_le32(init->cap.max_recv_wr);
		cmd->max_recv_sge = cpu_to_le32(init->cap.max_recv_sge);
	}
	cmd->access_flags = cpu_to_le32(PVR_ACCESS_LOCAL_WRITE);
	cmd->sq_sig_all = init->sq_sig_type == IB_SIGNAL_ALL_WR;
	if (features & PVR_EXT_USER_OPS)
		cmd->flags = PVR_QP_USER_OPS;
}

/* QP numbers 0 and 1 are reserved for SMI and GSI; handles index tables. */
static bool numbers_ok(struct pvr_dev *dev, struct pvr_qp *qp)
{
	u32 qpn = qp->ibqp.qp_num;

	if (qp->handle >= dev->caps.max_qp || qpn > 0xffffff)
		return false;
	return qp->ibqp.qp_type == IB_QPT_GSI ? qpn == 1 : qpn > 1;
}

/* The provider keeps the QPs of user CQs. */
static int attach_cqs(struct pvr_qp *qp)
{
	struct pvr_cq *send_cq, *recv_cq;
	int err;

	if (!pvr_qp_is_kernel(qp))
		return 0;
	send_cq = to_pvr_cq(qp->ibqp.send_cq);
	recv_cq = to_pvr_cq(qp->ibqp.recv_cq);
	err = pvr_cq_attach(send_cq, qp);
	if (err || recv_cq == send_cq)
		return err;
	err = pvr_cq_attach(recv_cq, qp);
	if (err)
		pvr_cq_detach(send_cq, qp);
	return err;
}

static void detach_cqs(struct pvr_qp *qp)
{
	struct pvr_cq *send_cq, *recv_cq;

	if (!pvr_qp_is_kernel(qp))
		return;
	send_cq = to_pvr_cq(qp->ibqp.send_cq);
	recv_cq = to_pvr_cq(qp->ibqp.recv_cq);
	pvr_cq_detach(send_cq, qp);
	if (recv_cq != send_cq)
		pvr_cq_detach(recv_cq, qp);
}

/* The device refused to destroy the QP. User QPs have up to two buffers. */
static void keep_pages(struct pvr_dev *dev, struct pvr_qp *qp)
{
	struct pvr_pdir none = {};

	pvr_keep(dev, &qp->pdir, &qp->sbuf);
	if (qp->rbuf)
		pvr_keep(dev, &none, &qp->rbuf);
}

/* The device has created the QP. Enter it into the driver's tables, or destroy it. */
static int list_qp_locked(struct pvr_dev *dev, struct pvr_qp *qp)
{
	int err;

	err = pvr_handle_insert(dev, &dev->qps, qp->handle, qp);
	if (err)
		goto err_destroy;
	err = attach_cqs(qp);
	if (err)
		goto err_erase;
	return 0;

err_erase:
	xa_erase_irq(&dev->qps, qp->handle);
err_destroy:
	if (pvr_cmd_destroy(dev, PVR_CMD_DESTROY_QP, qp->handle))
		keep_pages(dev, qp);
	return err;
}

static int create_qp_locked(struct pvr_dev *dev, struct pvr_qp *qp,
			    union pvr_cmd_req *req)
{
	union pvr_cmd_resp resp;
	int err;

	lockdep_assert_held(&dev->qp_lock);
	err = pvr_cmd(dev, req, &resp);
	if (err)
		return err;
	if (dev->version >= PVR_VERSION_QPHANDLE) {
		qp->ibqp.qp_num = le32_to_cpu(resp.create_qp.qpn);
		qp->handle = le32_to_cpu(resp.create_qp.qp_handle);
	} else {
		qp->ibqp.qp_num = le32_to_cpu(resp.create_qp_v1.qpn);
		qp->handle = le32_to_cpu(resp.create_qp_v1.qpn);
	}
	if (!numbers_ok(dev, qp)) {
		dev_err(&dev->pdev->dev,
			"device gave QP number %u, handle %u; expected 24 bits (1 for the GSI), and below %u\n",
			qp->ibqp.qp_num, qp->handle, dev->caps.max_qp);
		pvr_dev_fail(dev, "it gave out a bad QP number");
		return -EIO;
	}
	return list_qp_locked(dev, qp);
}

static int create_qp(struct pvr_dev *dev, struct pvr_qp *qp,
		     union pvr_cmd_req *req)
{
	int err;

	mutex_lock(&dev->qp_lock);
	err = create_qp_locked(dev, qp, req);
	mutex_unlock(&dev->qp_lock);
	if (!err)
		pvr_pdir_was_read(dev, &qp->pdir);
	return err;
}

/*
 * Erase the QP first: pvr_poll_cq() then skips its later completions. Purge before
 * qp_lock is released: after that the device may use the handle for another QP on the
 * same CQs.
 */
static void destroy_qp(struct pvr_dev *dev, struct pvr_qp *qp)
{
	int err;

	mutex_lock(&dev->qp_lock);
	xa_erase_irq(&dev->qps, qp->handle);
	err = pvr_cmd_destroy(dev, PVR_CMD_DESTROY_QP, qp->handle);
	detach_cqs(qp);
	mutex_unlock(&dev->qp_lock);
	if (err)
		keep_pages(dev, qp);
	pvr_ref_drain(&qp->ref);
}

/* Count the QPs of kernel consumers. */
static void count(struct pvr_dev *dev, const struct pvr_qp *qp, int by)
{
	if (pvr_qp_is_kernel(qp) && qp->ibqp.qp_type != IB_QPT_GSI)
		atomic_add(by, &dev->kernel_qps);
}

/* A stock provider interprets a handle of 0 as equal to the QP number. */
static int reply(struct pvr_dev *dev, struct pvr_qp *qp, struct ib_udata *udata)
{
	struct pvrdma_create_qp_resp resp = {
		.qpn = qp->ibqp.qp_num,
		.qp_handle = qp->handle,
	};

	if (!udata)
		return 0;
	if (dev->version >= PVR_VERSION_QPHANDLE &&
	    udata->outlen < sizeof(resp))
		return -EOPNOTSUPP;
	return pvr_udata_out(udata, &resp, sizeof(resp));
}

int pvr_create_qp(struct ib_qp *ibqp, struct ib_qp_init_attr *init,
		  struct ib_udata *udata)
{
	struct pvr_dev *dev = to_pvr_dev(ibqp->device);
	struct pvr_qp *qp = to_pvr_qp(ibqp);
	union pvr_cmd_req req = {};
	int err;

	/* Inline data need a provider with PVR_EXT_INLINE: others use another layout. */
	if (!(pvr_udata_features(udata) & PVR_EXT_INLINE))
		init->cap.max_inline_data = 0;
	err = check_init(dev, init, udata);
	if (err)
		return err;
	qp->max_inline = init->cap.max_inline_data;
	mutex_init(&qp->lock);
	mutex_init(&qp->groups_lock);
	INIT_LIST_HEAD(&qp->groups);
	pvr_ref_init(&qp->ref);
	qp->state = IB_QPS_RESET;
	if (pvr_qp_is_target(qp))
		err = target_pages(dev, qp);
	else if (udata)
		err = user_pages(dev, qp, &init->cap, udata, &req.create_qp);
	else
		err = kernel_pages(dev, qp, &init->cap, &req.create_qp);
	if (err)
		goto err_pages;
	fill_cmd(qp, init, pvr_udata_features(udata), &req.create_qp);
	err = create_qp(dev, qp, &req);
	if (err)
		goto err_pages;
	err = reply(dev, qp, udata);
	if (err)
		goto err_qp;
	count(dev, qp, 1);
	return 0;

err_qp:
	destroy_qp(dev, qp);
err_pages:
	pages_free(qp);
	return err;
}

int pvr_destroy_qp(struct ib_qp *ibqp, struct ib_udata *udata)
{
	struct pvr_dev *dev = to_pvr_dev(ibqp->device);
	struct pvr_qp *qp = to_pvr_qp(ibqp);

	pvr_qp_end_srq_request(qp);
	count(dev, qp, -1);
	destroy_qp(dev, qp);
	pages_free(qp);
	mutex_destroy(&qp->groups_lock);
	mutex_destroy(&qp->lock);
	return 0;
}
