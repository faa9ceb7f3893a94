// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* Memory regions: user memory, all of DMA space, and fast registration. */
#include <rdma/ib_umem.h>

#include "pvrdma.h"

#define MR_ACCESS                                                              \
	(PVR_ACCESS_LOCAL_WRITE | PVR_ACCESS_REMOTE_WRITE |                    \
	 PVR_ACCESS_REMOTE_READ | PVR_ACCESS_REMOTE_ATOMIC |                   \
	 PVR_ACCESS_MW_BIND)

/* Let the device make the region that @req describes, and take over its keys. */
static int create_mr(struct pvr_mr *mr, struct ib_pd *ibpd,
		     union pvr_cmd_req *req)
{
	union pvr_cmd_resp resp;
	int err;

	req->hdr.cmd = PVR_CMD_CREATE_MR;
	req->create_mr.pd_handle = to_pvr_pd(ibpd)->handle;
	err = pvr_cmd(to_pvr_dev(ibpd->device), req, &resp);
	if (err)
		return err;
	mr->handle = resp.create_mr.mr_handle;
	mr->ibmr.lkey = resp.create_mr.lkey;
	mr->ibmr.rkey = resp.create_mr.rkey;
	return 0;
}

static void mr_free(struct pvr_mr *mr)
{
	pvr_pdir_exit(&mr->pdir);
	ib_umem_release(mr->umem);
	kfree(mr);
}

struct ib_mr *pvr_get_dma_mr(struct ib_pd *ibpd, int access)
{
	union pvr_cmd_req req = {};
	struct pvr_mr *mr;
	int err;

	/* All of memory: no peer may ever get at it. */
	if (access & ~IB_ACCESS_LOCAL_WRITE)
		return ERR_PTR(-EOPNOTSUPP);
	mr = kzalloc(sizeof(*mr), GFP_KERNEL);
	if (!mr)
		return ERR_PTR(-ENOMEM);
	req.create_mr.access_flags = access;
	req.create_mr.flags = PVR_MR_FLAG_DMA;
	err = create_mr(mr, ibpd, &req);
	if (err) {
		mr_free(mr);
		return ERR_PTR(err);
	}
	return &mr->ibmr;
}

/* Pin the memory and describe its pages. On failure mr_free() cleans up. */
static int user_pages(struct pvr_dev *dev, struct pvr_mr *mr, u64 start,
		      u64 length, int access)
{
	struct ib_umem *umem = pvr_ib_umem_get(&dev->ibdev, start, length, access);
	int err;

	if (IS_ERR(umem))
		return PTR_ERR(umem);
	mr->umem = umem;
	err = pvr_pdir_init(&mr->pdir, &dev->pdev->dev,
			    ib_umem_num_dma_blocks(umem, PVR_PAGE_SIZE), false);
	if (!err)
		pvr_pdir_set_umem(&mr->pdir, 0, umem);
	return err;
}

/*
 * The device knows one address of a region: that by which work requests name its
 * first byte. It only looks at the offset in the page, so any iova will do that
 * has the same offset as the memory.
 */
static int check_user_mr(struct pvr_dev *dev, u64 start, u64 length, u64 iova,
			 int access)
{
	if (access & IB_ACCESS_ON_DEMAND)
		return -EOPNOTSUPP;
	if (!length || length > dev->caps.max_mr_size ||
	    iova + length < iova || offset_in_page(start ^ iova)) {
		ibdev_dbg(&dev->ibdev,
			  "MR of %llu bytes at %#llx as %#llx: expected 1 .. %llu bytes, equal page offsets\n",
			  length, start, iova, dev->caps.max_mr_size);
		return -EINVAL;
	}
	return 0;
}

struct ib_mr *pvr_reg_user_mr(struct ib_pd *ibpd, u64 start, u64 length,
			      u64 iova, int access,
			      PVR_REG_MR_DMAH_PARAM struct ib_udata *udata)
{
	struct pvr_dev *dev = to_pvr_dev(ibpd->device);
	union pvr_cmd_req req = {};
	struct pvr_mr *mr;
	int err;

	if (PVR_REG_MR_DMAH_SET)
		return ERR_PTR(-EOPNOTSUPP);
	err = check_user_mr(dev, start, length, iova, access);
	if (err)
		return ERR_PTR(err);
	mr = kzalloc(sizeof(*mr), GFP_KERNEL);
	if (!mr)
		return ERR_PTR(-ENOMEM);
	err = user_pages(dev, mr, start, length, access);
	if (err)
		goto err_free;
	req.create_mr.start = iova;
	req.create_mr.length = length;
	req.create_mr.pdir_dma = mr->pdir.dir.dma;
	req.create_mr.access_flags = access & MR_ACCESS;
	req.create_mr.nchunks = mr->pdir.npages;
	err = create_mr(mr, ibpd, &req);
	if (err)
		goto err_free;
	return &mr->ibmr;

err_free:
	mr_free(mr);
	return ERR_PTR(err);
}

struct ib_mr *pvr_alloc_mr(struct ib_pd *ibpd, enum ib_mr_type type,
			   u32 max_num_sg)
{
	struct pvr_dev *dev = to_pvr_dev(ibpd->device);
	union pvr_cmd_req req = {};
	struct pvr_mr *mr;
	int err;

	if (type != IB_MR_TYPE_MEM_REG ||
	    !(dev->caps.bmme_flags & PVR_BMME_FAST_REG_WR))
		return ERR_PTR(-EOPNOTSUPP);
	if (!max_num_sg || max_num_sg > dev->caps.max_fast_reg_page_list_len)
		return ERR_PTR(-EINVAL);
	mr = kzalloc(sizeof(*mr), GFP_KERNEL);
	if (!mr)
		return ERR_PTR(-ENOMEM);
	err = pvr_pdir_init(&mr->pdir, &dev->pdev->dev, max_num_sg, false);
	if (err)
		goto err_free;
	req.create_mr.flags = PVR_MR_FLAG_FRMR;
	req.create_mr.nchunks = max_num_sg;
	err = create_mr(mr, ibpd, &req);
	if (err)
		goto err_free;
	return &mr->ibmr;

err_free:
	mr_free(mr);
	return ERR_PTR(err);
}

static int set_page(struct ib_mr *ibmr, u64 addr)
{
	struct pvr_mr *mr = to_pvr_mr(ibmr);

	if (mr->npages == mr->pdir.npages)
		return -ENOMEM;
	pvr_pdir_set(&mr->pdir, mr->npages++, addr);
	return 0;
}

/*
 * The page list is written where the device reads it when it executes the REG_MR:
 * consumers map a region again only after that.
 */
int pvr_map_mr_sg(struct ib_mr *ibmr, struct scatterlist *sg, int nents,
		  unsigned int *offset)
{
	if (ibmr->page_size != PVR_PAGE_SIZE)
		return -EINVAL;
	to_pvr_mr(ibmr)->npages = 0;
	return ib_sg_to_pages(ibmr, sg, nents, offset, set_page);
}

int pvr_dereg_mr(struct ib_mr *ibmr, struct ib_udata *udata)
{
	struct pvr_mr *mr = to_pvr_mr(ibmr);

	pvr_cmd_destroy(to_pvr_dev(ibmr->device), PVR_CMD_DESTROY_MR,
			mr->handle);
	mr_free(mr);
	return 0;
}
