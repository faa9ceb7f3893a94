// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* Shared receive queues: creation, modification, destruction. */
#include <rdma/ib_umem.h>

#include "pvrdma.h"
#include "srq_wq.h"

/* The provider lays out the queues of user SRQs, so their sizes must be exact. */
static bool max_wr_ok(struct pvr_dev *dev, u32 max_wr, bool user)
{
	if (!max_wr || max_wr > roundup_pow_of_two(dev->caps.max_srq_wr))
		return false;
	return !user || is_power_of_2(max_wr);
}

/* Consumers of the kernel use no XRC. */
static bool type_ok(const struct ib_srq_init_attr *init, struct ib_udata *udata)
{
	if (init->srq_type == IB_SRQT_XRC)
		return udata && (pvr_udata_features(udata) & PVR_EXT_XRC);
	return init->srq_type == IB_SRQT_BASIC;
}

static int check_srq(struct pvr_dev *dev, const struct ib_srq_init_attr *init,
		     struct ib_udata *udata)
{
	const struct pvr_dev_caps *caps = &dev->caps;

	if (!type_ok(init, udata))
		return -EOPNOTSUPP;
	if (!max_wr_ok(dev, init->attr.max_wr, udata) ||
	    init->attr.max_sge > caps->max_srq_sge ||
	    init->attr.srq_limit > init->attr.max_wr) {
		ibdev_dbg(
			&dev->ibdev,
			"SRQ has %u WRs of %u SGEs, limit %u; expected a power of two up to %u of %u\n",
			init->attr.max_wr, init->attr.max_sge,
			init->attr.srq_limit, caps->max_srq_wr,
			caps->max_srq_sge);
		return -EINVAL;
	}
	return 0;
}

/* Round the sizes of a kernel SRQ up to powers of two; the consumer gets the result. */
static void round_attr(struct ib_srq_attr *attr)
{
	attr->max_wr = roundup_pow_of_two(attr->max_wr);
	attr->max_sge = roundup_pow_of_two(max(attr->max_sge, 1U));
}

static u32 srq_stride(u32 max_sge)
{
	return max_t(u32, PVR_RQ_STRIDE_MIN,
		     roundup_pow_of_two(sizeof(struct pvr_rq_wqe) +
					max_sge * sizeof(struct pvr_sge)));
}

/* Bytes of a header page and the elements. */
static u64 srq_bytes(u32 max_wr, u32 max_sge)
{
	return PVR_PAGE_SIZE + (u64)max_wr * srq_stride(max_sge);
}

/* On failure the caller calls mem_put(). */
static int user_mem(struct pvr_dev *dev, struct pvr_srq_mem *mem, u64 bytes,
		    struct ib_udata *udata)
{
	struct pvrdma_create_srq cmd;
	struct ib_umem *umem;
	int err;

	err = pvr_udata_in(udata, &cmd, sizeof(cmd));
	if (err)
		return err;
	umem = pvr_umem_get(dev, cmd.buf_addr, cmd.buf_size, bytes);
	if (IS_ERR(umem))
		return PTR_ERR(umem);
	mem->umem = umem;
	err = pvr_pdir_init(&mem->pdir, &dev->dir_pages,
			    ib_umem_num_dma_blocks(umem, PVR_PAGE_SIZE), false);
	if (!err)
		pvr_pdir_set_umem(&mem->pdir, 0, umem, PVR_PAGE_SIZE);
	return err;
}

static int mem_get(struct pvr_dev *dev, struct pvr_srq_mem *mem, u64 bytes,
		   struct ib_udata *udata)
{
	if (udata)
		return user_mem(dev, mem, bytes, udata);
	return pvr_pdir_init(&mem->pdir, &dev->dir_pages,
			     DIV_ROUND_UP_ULL(bytes, PVR_PAGE_SIZE), true);
}

static void mem_put(struct pvr_srq_mem *mem)
{
	pvr_pdir_exit(&mem->pdir);
	ib_umem_release(mem->umem);
	mem->umem = NULL;
}

/* The indices of a kernel SRQ's ring. */
static struct pvr_ring *mem_ring(struct pvr_srq_mem *mem)
{
	struct pvr_ring_state *state_shm = pvr_pdir_at(&mem->pdir, 0);

	return &state_shm->rx;
}

static const __le32 *mem_db_suppressed(struct pvr_dev *dev,
				       struct pvr_srq_mem *mem)
{
	if (!(dev->features & PVR_EXT_DB_SUPPRESS))
		return NULL;
	return &pvr_ring_db_suppress(pvr_pdir_at(&mem->pdir, 0))->rq;
}

/* On failure the caller calls pages_free(). */
static int pages_init(struct pvr_dev *dev, struct pvr_srq *srq,
		      const struct ib_srq_attr *attr, struct ib_udata *udata)
{
	int err;

	srq->max_sge = attr->max_sge;
	err = mem_get(dev, &srq->mem, srq_bytes(attr->max_wr, attr->max_sge),
		      udata);
	if (err || udata)
		return err;
	srq->wq.db_suppress_shm = mem_db_suppressed(dev, &srq->mem);
	return pvr_srq_wq_init(&srq->wq, mem_ring(&srq->mem), attr->max_wr,
			       attr->max_sge, srq_stride(attr->max_sge));
}

static void pages_free(struct pvr_srq *srq)
{
	pvr_srq_wq_exit(&srq->wq);
	mem_put(&srq->mem);
}

static void remove_srq(struct pvr_dev *dev, struct pvr_srq *srq)
{
	if (pvr_cmd_destroy(dev, PVR_CMD_DESTROY_SRQ, srq->handle))
		pvr_keep(dev, &srq->mem.pdir, &srq->mem.umem);
}

static void fill_xrc(const struct ib_srq_init_attr *init,
		     struct pvr_cmd_create_srq *cmd)
{
	struct pvr_xrcd *xrcd = to_pvr_xrcd(init->ext.xrc.xrcd);

	cmd->srq_type = PVR_SRQT_XRC;
	cmd->xrcd_handle = cpu_to_le32(xrcd->handle);
	cmd->cq_handle = cpu_to_le32(to_pvr_cq(init->ext.cq)->handle);
}

static int create_srq(struct pvr_dev *dev, struct pvr_srq *srq,
		      const struct ib_srq_init_attr *init)
{
	const struct ib_srq_attr *attr = &init->attr;
	union pvr_cmd_req req = {};
	union pvr_cmd_resp resp;
	int err;

	req.hdr.cmd = cpu_to_le32(PVR_CMD_CREATE_SRQ);
	req.create_srq.pdir_dma = cpu_to_le64(srq->mem.pdir.dir.dma);
	req.create_srq.pd_handle =
		cpu_to_le32(to_pvr_pd(srq->ibsrq.pd)->handle);
	req.create_srq.nchunks = cpu_to_le32(srq->mem.pdir.npages);
	req.create_srq.attrs.max_wr = cpu_to_le32(attr->max_wr);
	req.create_srq.attrs.max_sge = cpu_to_le32(attr->max_sge);
	req.create_srq.attrs.srq_limit = cpu_to_le32(attr->srq_limit);
	if (init->srq_type == IB_SRQT_XRC)
		fill_xrc(init, &req.create_srq);
	err = pvr_cmd(dev, &req, &resp);
	if (err)
		return err;
	pvr_pdir_was_read(dev, &srq->mem.pdir);
	srq->handle = le32_to_cpu(resp.create_srq.srqn);
	err = pvr_handle_insert(dev, &dev->srqs, srq->handle, srq);
	if (err)
		remove_srq(dev, srq);
	return err;
}

static void destroy_srq(struct pvr_dev *dev, struct pvr_srq *srq)
{
	xa_erase_irq(&dev->srqs, srq->handle);
	remove_srq(dev, srq);
	pvr_ref_drain(&srq->ref);
}

static int reply(struct pvr_srq *srq, struct ib_udata *udata)
{
	struct pvrdma_create_srq_resp resp = { .srqn = srq->handle };

	return udata ? pvr_udata_out(udata, &resp, sizeof(resp)) : 0;
}

int pvr_create_srq(struct ib_srq *ibsrq, struct ib_srq_init_attr *init,
		   struct ib_udata *udata)
{
	struct pvr_dev *dev = to_pvr_dev(ibsrq->device);
	struct pvr_srq *srq = to_pvr_srq(ibsrq);
	int err;

	err = check_srq(dev, init, udata);
	if (err)
		return err;
	if (!udata)
		round_attr(&init->attr);
	mutex_init(&srq->lock);
	pvr_ref_init(&srq->ref);
	err = pages_init(dev, srq, &init->attr, udata);
	if (err)
		goto err_pages;
	err = create_srq(dev, srq, init);
	if (err)
		goto err_pages;
	if (init->srq_type == IB_SRQT_XRC)
		ibsrq->ext.xrc.srq_num = srq->handle;
	err = reply(srq, udata);
	if (err)
		goto err_srq;
	return 0;

err_srq:
	destroy_srq(dev, srq);
err_pages:
	pages_free(srq);
	return err;
}

/* @mem: the new ring; used only with PVR_SRQ_MAX_WR. */
static int modify_srq(struct pvr_srq *srq, const struct ib_srq_attr *attr,
		      int mask, struct pvr_srq_mem *mem)
{
	struct pvr_dev *dev = to_pvr_dev(srq->ibsrq.device);
	union pvr_cmd_req req = {};
	int err;

	req.hdr.cmd = cpu_to_le32(PVR_CMD_MODIFY_SRQ);
	req.modify_srq.srq_handle = cpu_to_le32(srq->handle);
	req.modify_srq.attr_mask = cpu_to_le32(mask);
	req.modify_srq.attrs.srq_limit = cpu_to_le32(attr->srq_limit);
	if (mask & PVR_SRQ_MAX_WR) {
		req.modify_srq.attrs.max_wr = cpu_to_le32(attr->max_wr);
		req.modify_srq.attrs.max_sge = cpu_to_le32(srq->max_sge);
		req.modify_srq.pdir_dma = cpu_to_le64(mem->pdir.dir.dma);
		req.modify_srq.nchunks = cpu_to_le32(mem->pdir.npages);
	}
	err = pvr_cmd(dev, &req, NULL);
	if (!err && mem)
		pvr_pdir_was_read(dev, &mem->pdir);
	return err;
}

/* Switch a kernel SRQ to the ring @mem. On success @mem is the former ring. */
static int move_kernel_srq(struct pvr_srq *srq, const struct ib_srq_attr *attr,
			   int mask, struct pvr_srq_mem *mem)
{
	struct pvr_dev *dev = to_pvr_dev(srq->ibsrq.device);
	struct pvr_srq_move move = { .ring_shm = mem_ring(mem),
				     .db_suppress_shm =
					     mem_db_suppressed(dev, mem),
				     .n = attr->max_wr };
	int err;

	err = pvr_srq_move_begin(&srq->wq, &move);
	if (err)
		return err;
	err = modify_srq(srq, attr, mask, mem);
	if (err) {
		pvr_srq_move_undo(&srq->wq, &move);
		return err;
	}
	swap(srq->mem, *mem);
	/*
	 * The only load of prod_tail: it is the number of requests that the device
	 * copied.
	 */
	err = pvr_srq_move_end(
		&srq->wq, &move,
		le32_to_cpu(READ_ONCE(move.ring_shm->prod_tail)));
	if (err)
		pvr_dev_fail(dev, "it moved more requests than an SRQ had");
	return err;
}

static int move_user_srq(struct pvr_srq *srq, const struct ib_srq_attr *attr,
			 int mask, struct pvr_srq_mem *mem)
{
	int err = modify_srq(srq, attr, mask, mem);

	if (!err)
		swap(srq->mem, *mem);
	return err;
}

static int resize_locked(struct pvr_srq *srq, struct ib_srq_attr *attr,
			 int mask, struct ib_udata *udata)
{
	struct pvr_dev *dev = to_pvr_dev(srq->ibsrq.device);
	struct pvr_srq_mem mem = {};
	int err;

	if (!(dev->features & PVR_EXT_RESIZE))
		return -EOPNOTSUPP;
	if (!max_wr_ok(dev, attr->max_wr, udata))
		return -EINVAL;
	attr->max_wr = roundup_pow_of_two(attr->max_wr);
	err = mem_get(dev, &mem, srq_bytes(attr->max_wr, srq->max_sge), udata);
	if (!err)
		err = udata ? move_user_srq(srq, attr, mask, &mem)
			    : move_kernel_srq(srq, attr, mask, &mem);
	mem_put(&mem); /* the old one, or the new one after an error */
	return err;
}

int pvr_modify_srq(struct ib_srq *ibsrq, struct ib_srq_attr *attr,
		   enum ib_srq_attr_mask mask, struct ib_udata *udata)
{
	struct pvr_srq *srq = to_pvr_srq(ibsrq);
	int err;

	if (mask & ~(IB_SRQ_MAX_WR | IB_SRQ_LIMIT))
		return -EINVAL;
	mutex_lock(&srq->lock);
	if (mask & IB_SRQ_MAX_WR)
		err = resize_locked(srq, attr, mask, udata);
	else
		err = modify_srq(srq, attr, mask, NULL);
	mutex_unlock(&srq->lock);
	return err;
}

int pvr_query_srq(struct ib_srq *ibsrq, struct ib_srq_attr *attr)
{
	union pvr_cmd_req req = {};
	union pvr_cmd_resp resp;
	int err;

	req.hdr.cmd = cpu_to_le32(PVR_CMD_QUERY_SRQ);
	req.handle.handle = cpu_to_le32(to_pvr_srq(ibsrq)->handle);
	err = pvr_cmd(to_pvr_dev(ibsrq->device), &req, &resp);
	if (err)
		return err;
	attr->max_wr = le32_to_cpu(resp.query_srq.attrs.max_wr);
	attr->max_sge = le32_to_cpu(resp.query_srq.attrs.max_sge);
	attr->srq_limit = le32_to_cpu(resp.query_srq.attrs.srq_limit);
	return 0;
}

int pvr_destroy_srq(struct ib_srq *ibsrq, struct ib_udata *udata)
{
	struct pvr_srq *srq = to_pvr_srq(ibsrq);

	destroy_srq(to_pvr_dev(ibsrq->device), srq);
	pages_free(srq);
	mutex_destroy(&srq->lock);
	return 0;
}
