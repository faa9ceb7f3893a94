// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* Shared receive queues, for user space. */
#include <rdma/ib_umem.h>

#include "pvrdma.h"

static int check_srq(struct pvr_dev *dev, const struct ib_srq_init_attr *init,
		     struct ib_udata *udata)
{
	const struct pvr_caps *caps = &dev->caps;

	if (!udata || init->srq_type != IB_SRQT_BASIC)
		return -EOPNOTSUPP;
	if (!is_power_of_2(init->attr.max_wr) ||
	    init->attr.max_wr > roundup_pow_of_two(caps->max_srq_wr) ||
	    init->attr.max_sge > caps->max_srq_sge ||
	    init->attr.srq_limit > init->attr.max_wr) {
		ibdev_dbg(&dev->ibdev,
			  "SRQ wants %u WRs of %u SGEs, limit %u; expected a power of two up to %u of %u\n",
			  init->attr.max_wr, init->attr.max_sge,
			  init->attr.srq_limit, caps->max_srq_wr,
			  caps->max_srq_sge);
		return -EINVAL;
	}
	return 0;
}

static u64 srq_bytes(const struct ib_srq_attr *attr)
{
	u32 stride = sizeof(struct pvrdma_rq_wqe_hdr) +
		     attr->max_sge * sizeof(struct pvrdma_sge);

	stride = max_t(u32, PVR_RQ_STRIDE_MIN, roundup_pow_of_two(stride));
	return PVR_PAGE_SIZE + (u64)attr->max_wr * stride;
}

/* On failure pages_free() cleans up. */
static int user_pages(struct pvr_dev *dev, struct pvr_srq *srq,
		      const struct ib_srq_attr *attr, struct ib_udata *udata)
{
	struct pvrdma_create_srq cmd;
	struct ib_umem *umem;
	int err;

	err = pvr_udata_in(udata, &cmd, sizeof(cmd));
	if (err)
		return err;
	umem = pvr_umem_get(dev, cmd.buf_addr, cmd.buf_size, srq_bytes(attr));
	if (IS_ERR(umem))
		return PTR_ERR(umem);
	srq->umem = umem;
	err = pvr_pdir_init(&srq->pdir, &dev->pdev->dev,
			    ib_umem_num_dma_blocks(umem, PVR_PAGE_SIZE), false);
	if (!err)
		pvr_pdir_set_umem(&srq->pdir, 0, umem, PVR_PAGE_SIZE);
	return err;
}

static void pages_free(struct pvr_srq *srq)
{
	pvr_pdir_exit(&srq->pdir);
	ib_umem_release(srq->umem);
	srq->umem = NULL;
}

static int create_srq(struct pvr_dev *dev, struct pvr_srq *srq,
		      const struct ib_srq_attr *attr)
{
	union pvr_cmd_req req = {};
	union pvr_cmd_resp resp;
	int err;

	req.hdr.cmd = PVR_CMD_CREATE_SRQ;
	req.create_srq.pdir_dma = srq->pdir.dir.dma;
	req.create_srq.pd_handle = to_pvr_pd(srq->ibsrq.pd)->handle;
	req.create_srq.nchunks = srq->pdir.npages;
	req.create_srq.attrs.max_wr = attr->max_wr;
	req.create_srq.attrs.max_sge = attr->max_sge;
	req.create_srq.attrs.srq_limit = attr->srq_limit;
	err = pvr_cmd(dev, &req, &resp);
	if (err)
		return err;
	srq->handle = resp.create_srq.srqn;
	err = pvr_handle_insert(dev, &dev->srqs, srq->handle, srq);
	if (err)
		pvr_cmd_destroy(dev, PVR_CMD_DESTROY_SRQ, srq->handle);
	return err;
}

static void destroy_srq(struct pvr_dev *dev, struct pvr_srq *srq)
{
	xa_erase_irq(&dev->srqs, srq->handle);
	pvr_cmd_destroy(dev, PVR_CMD_DESTROY_SRQ, srq->handle);
	pvr_ref_drain(&srq->ref);
}

int pvr_create_srq(struct ib_srq *ibsrq, struct ib_srq_init_attr *init,
		   struct ib_udata *udata)
{
	struct pvr_dev *dev = to_pvr_dev(ibsrq->device);
	struct pvrdma_create_srq_resp resp = {};
	struct pvr_srq *srq = to_pvr_srq(ibsrq);
	int err;

	err = check_srq(dev, init, udata);
	if (err)
		return err;
	pvr_ref_init(&srq->ref);
	err = user_pages(dev, srq, &init->attr, udata);
	if (err)
		goto err_pages;
	err = create_srq(dev, srq, &init->attr);
	if (err)
		goto err_pages;
	resp.srqn = srq->handle;
	err = pvr_udata_out(udata, &resp, sizeof(resp));
	if (err)
		goto err_srq;
	return 0;

err_srq:
	destroy_srq(dev, srq);
err_pages:
	pages_free(srq);
	return err;
}

/* Only the limit can change; the provider owns the ring. */
int pvr_modify_srq(struct ib_srq *ibsrq, struct ib_srq_attr *attr,
		   enum ib_srq_attr_mask mask, struct ib_udata *udata)
{
	union pvr_cmd_req req = {};

	if (mask != IB_SRQ_LIMIT)
		return -EOPNOTSUPP;
	req.hdr.cmd = PVR_CMD_MODIFY_SRQ;
	req.modify_srq.srq_handle = to_pvr_srq(ibsrq)->handle;
	req.modify_srq.attr_mask = PVR_SRQ_LIMIT;
	req.modify_srq.attrs.srq_limit = attr->srq_limit;
	return pvr_cmd(to_pvr_dev(ibsrq->device), &req, NULL);
}

int pvr_query_srq(struct ib_srq *ibsrq, struct ib_srq_attr *attr)
{
	union pvr_cmd_req req = {};
	union pvr_cmd_resp resp;
	int err;

	req.hdr.cmd = PVR_CMD_QUERY_SRQ;
	req.handle.handle = to_pvr_srq(ibsrq)->handle;
	err = pvr_cmd(to_pvr_dev(ibsrq->device), &req, &resp);
	if (err)
		return err;
	attr->max_wr = resp.query_srq.attrs.max_wr;
	attr->max_sge = resp.query_srq.attrs.max_sge;
	attr->srq_limit = resp.query_srq.attrs.srq_limit;
	return 0;
}

int pvr_destroy_srq(struct ib_srq *ibsrq, struct ib_udata *udata)
{
	struct pvr_srq *srq = to_pvr_srq(ibsrq);

	destroy_srq(to_pvr_dev(ibsrq->device), srq);
	pages_free(srq);
	return 0;
}
