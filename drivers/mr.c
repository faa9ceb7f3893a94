// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* Memory regions: user memory, DMA regions, and fast registration. */
#include <rdma/ib_umem.h>

#include "pvrdma.h"

#define MR_ACCESS                                            \
	(PVR_ACCESS_LOCAL_WRITE | PVR_ACCESS_REMOTE_WRITE |  \
	 PVR_ACCESS_REMOTE_READ | PVR_ACCESS_REMOTE_ATOMIC | \
	 PVR_ACCESS_MW_BIND)

u32 pvr_mr_access(const struct pvr_dev *dev)
{
	return MR_ACCESS |
	       (dev->features & PVR_EXT_FLUSH ? PVR_ACCESS_FLUSH_GLOBAL : 0) |
	       (dev->features & PVR_EXT_FLUSH_PERSISTENT
			? PVR_ACCESS_FLUSH_PERSISTENT
			: 0);
}

int pvr_create_mr(struct pvr_mr *mr, struct ib_pd *ibpd, union pvr_cmd_req *req)
{
	union pvr_cmd_resp resp;
	int err;

	req->hdr.cmd = cpu_to_le32(PVR_CMD_CREATE_MR);
	req->create_mr.pd_handle = cpu_to_le32(to_pvr_pd(ibpd)->handle);
	err = pvr_cmd(to_pvr_dev(ibpd->device), req, &resp);
	if (err)
		return err;
	mr->handle = le32_to_cpu(resp.create_mr.mr_handle);
	mr->ibmr.lkey = le32_to_cpu(resp.create_mr.lkey);
	mr->ibmr.rkey = le32_to_cpu(resp.create_mr.rkey);
	return 0;
}

/* Keep the memory of a region that the device did not destroy. */
static void keep_mr(struct pvr_dev *dev, struct pvr_mr *mr)
{
	if (mr->dm)
		pvr_dev_fail(dev, "it refused to release device memory");
	else
		pvr_keep(dev, &mr->pdir, &mr->umem);
}

/*
 * A program can bind a window at any time until the device executes the command. If the PD
 * never had a window, the answer of a busy region is a defect.
 * Return: 0, or -EBUSY: bound windows keep the region busy.
 */
static int destroy_mr(struct pvr_mr *mr, struct ib_pd *ibpd)
{
	struct pvr_dev *dev = to_pvr_dev(ibpd->device);
	int err;

	err = pvr_cmd_try_destroy(dev, PVR_CMD_DESTROY_MR, mr->handle);
	if (err == -EBUSY) {
		/* Read after the command: pvr_alloc_mw() sets it before its own. */
		if (READ_ONCE(to_pvr_pd(ibpd)->had_windows))
			return err;
		err = pvr_cmd_refused(dev, PVR_CMD_DESTROY_MR, mr->handle, err);
	}
	if (err)
		keep_mr(dev, mr);
	return 0;
}

void pvr_mr_free(struct pvr_mr *mr)
{
	pvr_odp_exit(mr);
	pvr_pdir_exit(&mr->pdir);
	ib_umem_release(mr->umem);
	kfree(mr);
}

/* Free a region that the device does not have, except memory that @owner shares. */
static void free_but_shared(struct pvr_mr *mr, const struct pvr_mr *owner)
{
	if (mr->umem == owner->umem)
		mr->umem = NULL;
	pvr_mr_free(mr);
}

struct ib_mr *pvr_get_dma_mr(struct ib_pd *ibpd, int access)
{
	union pvr_cmd_req req = {};
	struct pvr_mr *mr;
	int err;

	/* The region is all memory, so it must not have remote access rights. */
	if (access & ~IB_ACCESS_LOCAL_WRITE)
		return ERR_PTR(-EOPNOTSUPP);
	mr = kzalloc(sizeof(*mr), GFP_KERNEL);
	if (!mr)
		return ERR_PTR(-ENOMEM);
	req.create_mr.access_flags = cpu_to_le32(access);
	req.create_mr.flags = cpu_to_le32(PVR_MR_FLAG_DMA);
	err = pvr_create_mr(mr, ibpd, &req);
	if (err) {
		pvr_mr_free(mr);
		return ERR_PTR(err);
	}
	return &mr->ibmr;
}

/*
 * Without PVR_EXT_MR_LAYOUT the device supports only 4 KiB pages. Otherwise use the
 * largest pages possible, for a small page list. Work request addresses do not restrict
 * them, because the command has the offset in the first page as a field of its own.
 */
static unsigned long best_page_size(struct pvr_dev *dev, struct ib_umem *umem)
{
	if (!(dev->features & PVR_EXT_MR_LAYOUT))
		return PVR_PAGE_SIZE;
	return ib_umem_find_best_pgoff(umem, PVR_MR_PAGE_SIZES, U64_MAX);
}

/* Three directory levels need PVR_EXT_MR_LAYOUT. */
static int dir_init(struct pvr_dev *dev, struct pvr_mr *mr, u64 npages)
{
	if (dev->features & PVR_EXT_MR_LAYOUT)
		return pvr_pdir_init_large(&mr->pdir, &dev->dir_pages, npages);
	return pvr_pdir_init(&mr->pdir, &dev->dir_pages, npages, false);
}

/*
 * Give a region its memory, or pass an ERR_PTR on. On failure the caller calls pvr_mr_free().
 */
static int set_umem(struct pvr_dev *dev, struct pvr_mr *mr,
		    struct ib_umem *umem)
{
	unsigned long page_size;

	if (IS_ERR(umem))
		return PTR_ERR(umem);
	mr->umem = umem;
	page_size = best_page_size(dev, umem);
	if (!page_size)
		return -EINVAL;
	mr->page_shift = ilog2(page_size);
	return 0;
}

static int enter_pages(struct pvr_dev *dev, struct pvr_mr *mr)
{
	unsigned long page_size = BIT(mr->page_shift);
	int err;

	err = dir_init(dev, mr, ib_umem_num_dma_blocks(mr->umem, page_size));
	if (!err)
		pvr_pdir_set_umem(&mr->pdir, 0, mr->umem, page_size);
	return err;
}

static bool can_replace(const struct pvr_dev *dev)
{
	return dev->features & PVR_EXT_MR_LAYOUT;
}

u64 pvr_mr_iova(const struct pvr_mr *mr)
{
	return mr->access & IB_ZERO_BASED ? 0 : mr->virt;
}

/*
 * Without PVR_EXT_MR_LAYOUT the device uses only the page offset of an address. So iova
 * must have the same page offset as the memory.
 */
static int check_user_mr(struct pvr_dev *dev, u64 start, u64 length, u64 iova,
			 int access)
{
	bool layout = dev->features & PVR_EXT_MR_LAYOUT;

	if (access & ~(pvr_mr_access(dev) | IB_ZERO_BASED | IB_ACCESS_HUGETLB |
		       IB_ACCESS_OPTIONAL))
		return -EOPNOTSUPP;
	if (!length || length > dev->caps.max_mr_size || iova + length < iova ||
	    (!layout && offset_in_page(start ^ iova))) {
		ibdev_dbg(
			&dev->ibdev,
			"MR of %llu bytes at %#llx as %#llx: expected 1 .. %llu bytes%s\n",
			length, start, iova, dev->caps.max_mr_size,
			layout ? "" : ", equal page offsets");
		return -EINVAL;
	}
	return 0;
}

/*
 * Create the region of mr->umem. It replaces @old, unless that is NULL or the device
 * cannot replace. On failure the caller calls pvr_mr_free().
 */
static int create_user_mr(struct pvr_mr *mr, struct ib_pd *ibpd,
			  const struct pvr_mr *old)
{
	struct pvr_dev *dev = to_pvr_dev(ibpd->device);
	union pvr_cmd_req req = {};
	struct pvr_cmd_create_mr *cmd = &req.create_mr;
	int err;

	err = enter_pages(dev, mr);
	if (err)
		return err;
	cmd->start = cpu_to_le64(pvr_mr_iova(mr));
	cmd->length = cpu_to_le64(mr->umem->length);
	cmd->pdir_dma = cpu_to_le64(mr->pdir.dir.dma);
	cmd->access_flags = cpu_to_le32(mr->access & pvr_mr_access(dev));
	cmd->nchunks = cpu_to_le32(mr->pdir.npages);
	if (dev->features & PVR_EXT_MR_LAYOUT) {
		cmd->flags = cpu_to_le32(PVR_MR_FLAG_LAYOUT);
		cmd->offset = cpu_to_le64(
			ib_umem_dma_offset(mr->umem, BIT(mr->page_shift)));
		cmd->page_shift = cpu_to_le32(mr->page_shift);
		cmd->pdir_levels = cpu_to_le32(pvr_pdir_levels(&mr->pdir));
	}
	if (old && can_replace(dev)) {
		cmd->flags |= cpu_to_le32(PVR_MR_FLAG_REPLACE);
		cmd->mr_handle = cpu_to_le32(old->handle);
	}
	err = pvr_create_mr(mr, ibpd, &req);
	if (!err)
		pvr_pdir_was_read(dev, &mr->pdir);
	return err;
}

/* Pin memory and register it. */
static struct pvr_mr *reg_memory(struct ib_pd *ibpd, u64 start, u64 length,
				 u64 virt, int access, const struct pvr_mr *old)
{
	struct pvr_mr *mr = kzalloc(sizeof(*mr), GFP_KERNEL);
	struct pvr_dev *dev = to_pvr_dev(ibpd->device);
	int err;

	if (!mr)
		return ERR_PTR(-ENOMEM);
	mr->virt = virt;
	mr->access = access;
	err = check_user_mr(dev, start, length, pvr_mr_iova(mr), access);
	if (!err)
		err = set_umem(dev, mr,
			       pvr_umem_pin(dev, start, length, access));
	if (!err)
		err = create_user_mr(mr, ibpd, old);
	if (!err)
		return mr;
	pvr_mr_free(mr);
	return ERR_PTR(err);
}

/* Register the memory of @old again, without pinning it again. */
static struct pvr_mr *reg_same_memory(struct ib_pd *ibpd, struct pvr_mr *old,
				      int access)
{
	struct pvr_mr *mr = kzalloc(sizeof(*mr), GFP_KERNEL);
	int err;

	if (!mr)
		return ERR_PTR(-ENOMEM);
	mr->umem = old->umem;
	mr->page_shift = old->page_shift;
	mr->virt = old->virt;
	mr->access = access;
	err = check_user_mr(to_pvr_dev(ibpd->device), mr->umem->address,
			    mr->umem->length, pvr_mr_iova(mr), access);
	if (!err)
		err = create_user_mr(mr, ibpd, old);
	if (!err)
		return mr;
	free_but_shared(mr, old);
	return ERR_PTR(err);
}

/* On failure the caller calls pvr_mr_free(). */
static int create_mr_of_pages(struct pvr_mr *mr, struct ib_pd *ibpd,
			      const dma_addr_t *dma, u64 offset, u64 length)
{
	struct pvr_dev *dev = to_pvr_dev(ibpd->device);
	u32 i, npages = (offset + length + PAGE_SIZE - 1) >> PAGE_SHIFT;
	union pvr_cmd_req req = {};
	int err;

	req.create_mr.flags = cpu_to_le32(PVR_MR_FLAG_LAYOUT);
	req.create_mr.access_flags = cpu_to_le32(mr->access & MR_ACCESS);
	if (!length)
		return pvr_create_mr(mr, ibpd, &req);

	err = pvr_pdir_init(&mr->pdir, &dev->dir_pages, npages, false);
	if (err)
		return err;
	for (i = 0; i < npages; i++)
		pvr_pdir_set(&mr->pdir, i, dma[i]);
	req.create_mr.length = cpu_to_le64(length);
	req.create_mr.pdir_dma = cpu_to_le64(mr->pdir.dir.dma);
	req.create_mr.nchunks = cpu_to_le32(npages);
	req.create_mr.offset = cpu_to_le64(offset);
	req.create_mr.page_shift = cpu_to_le32(PAGE_SHIFT);
	req.create_mr.pdir_levels = cpu_to_le32(pvr_pdir_levels(&mr->pdir));
	err = pvr_create_mr(mr, ibpd, &req);
	if (!err)
		pvr_pdir_was_read(dev, &mr->pdir);
	return err;
}

struct ib_mr *pvr_mr_of_pages(struct ib_pd *ibpd, const dma_addr_t *dma,
			      u64 offset, u64 length, int access)
{
	struct pvr_mr *mr;
	int err;

	if (access & ~(MR_ACCESS | IB_ZERO_BASED | IB_ACCESS_OPTIONAL))
		return ERR_PTR(-EOPNOTSUPP);
	mr = kzalloc(sizeof(*mr), GFP_KERNEL);
	if (!mr)
		return ERR_PTR(-ENOMEM);
	mr->access = access;
	mr->dm = true;
	err = create_mr_of_pages(mr, ibpd, dma, offset, length);
	if (!err)
		return &mr->ibmr;
	pvr_mr_free(mr);
	return ERR_PTR(err);
}

struct ib_mr *pvr_reg_user_mr(struct ib_pd *ibpd, u64 start, u64 length,
			      u64 iova, int access,
			      PVR_REG_MR_DMAH_PARAM struct ib_udata *udata)
{
	struct pvr_mr *mr;

	if (PVR_REG_MR_DMAH_SET)
		return ERR_PTR(-EOPNOTSUPP);
	if (access & IB_ACCESS_ON_DEMAND)
		return pvr_odp_reg(ibpd, start, length, iova, access, udata);
	mr = reg_memory(ibpd, start, length, iova, access, NULL);
	return IS_ERR(mr) ? ERR_CAST(mr) : &mr->ibmr;
}

/* The exporter must not move the pages while the region exists. */
struct ib_mr *pvr_reg_user_mr_dmabuf(struct ib_pd *ibpd, u64 offset, u64 length,
				     u64 virt, int fd, int access,
				     PVR_REG_DMABUF_ARG attrs)
{
	struct pvr_dev *dev = to_pvr_dev(ibpd->device);
	struct pvr_mr *mr;
	int err;

	if (PVR_REG_MR_DMAH_SET)
		return ERR_PTR(-EOPNOTSUPP);
	mr = kzalloc(sizeof(*mr), GFP_KERNEL);
	if (!mr)
		return ERR_PTR(-ENOMEM);
	mr->virt = virt;
	mr->access = access;
	err = check_user_mr(dev, offset, length, pvr_mr_iova(mr), access);
	if (!err)
		err = set_umem(
			dev, mr,
			pvr_umem_dmabuf_pin(dev, offset, length, fd, access));
	if (!err)
		err = create_user_mr(mr, ibpd, NULL);
	if (!err)
		return &mr->ibmr;
	pvr_mr_free(mr);
	return ERR_PTR(err);
}

/*
 * Exchange everything that differs between two regions, so that ibmr keeps its address.
 */
static void exchange(struct pvr_mr *mr, struct pvr_mr *new)
{
	swap(mr->umem, new->umem);
	swap(mr->pdir, new->pdir);
	swap(mr->virt, new->virt);
	swap(mr->access, new->access);
	swap(mr->page_shift, new->page_shift);
	swap(mr->handle, new->handle);
	swap(mr->ibmr.lkey, new->ibmr.lkey);
	swap(mr->ibmr.rkey, new->ibmr.rkey);
}

/*
 * Return: whether the memory can stay pinned for a re-registration with @access.
 */
static bool pinned_for(const struct pvr_mr *mr, int flags, int access)
{
	if (flags & IB_MR_REREG_TRANS)
		return false;
	return mr->umem->writable || !ib_access_writable(access);
}

/*
 * Destroy @mr at the device, unless @new has replaced it there. A device that cannot replace
 * has no windows, see negotiate() of shared.c, so no program keeps one of them busy. Both
 * may have the same memory, so it cannot be kept for one of them.
 */
static int retire(struct pvr_mr *mr, const struct pvr_mr *new)
{
	struct pvr_dev *dev = to_pvr_dev(mr->ibmr.device);
	int err;

	if (can_replace(dev))
		return 0;
	err = pvr_cmd_destroy(dev, PVR_CMD_DESTROY_MR, mr->handle);
	if (err && pvr_cmd_destroy(dev, PVR_CMD_DESTROY_MR, new->handle))
		pvr_dev_fail(dev,
			     "it refused to destroy either of two regions");
	return err;
}

/*
 * An error leaves the old region unchanged. With PVR_EXT_MR_LAYOUT the new region
 * replaces the old one and the keys stay. Otherwise the device has both for a moment, and
 * the keys change.
 * Return: NULL, so that ib_core keeps the object, or an ERR_PTR.
 */
struct ib_mr *pvr_rereg_user_mr(struct ib_mr *ibmr, int flags, u64 start,
				u64 length, u64 virt, int access,
				struct ib_pd *ibpd, struct ib_udata *udata)
{
	struct pvr_mr *new, *mr = to_pvr_mr(ibmr);
	int err;

	if (flags & ~IB_MR_REREG_SUPPORTED)
		return ERR_PTR(-EOPNOTSUPP);
	if (!(flags & IB_MR_REREG_ACCESS))
		access = mr->access;
	if ((mr->access | access) & IB_ACCESS_ON_DEMAND)
		return ERR_PTR(-EOPNOTSUPP);
	/* To be pinned again, it must be imported again. */
	if (!(flags & IB_MR_REREG_TRANS) && mr->umem->is_dmabuf &&
	    !pinned_for(mr, flags, access))
		return ERR_PTR(-EOPNOTSUPP);
	if (pinned_for(mr, flags, access))
		new = reg_same_memory(ibpd, mr, access);
	else if (flags & IB_MR_REREG_TRANS)
		new = reg_memory(ibpd, start, length, virt, access, mr);
	else
		new = reg_memory(ibpd, mr->umem->address, mr->umem->length,
				 mr->virt, access, mr);
	if (IS_ERR(new))
		return ERR_CAST(new);
	err = retire(mr, new);
	if (!err)
		exchange(mr, new);
	free_but_shared(new, mr);
	return ERR_PTR(err); /* 0 is NULL */
}

struct ib_mr *pvr_alloc_mr(struct ib_pd *ibpd, enum ib_mr_type type,
			   u32 max_num_sg)
{
	struct pvr_dev *dev = to_pvr_dev(ibpd->device);
	union pvr_cmd_req req = {};
	u32 max = dev->caps.max_fast_reg_page_list_len / PVR_PAGES_PER_CPU_PAGE;
	u32 npages = max_num_sg * PVR_PAGES_PER_CPU_PAGE;
	struct pvr_mr *mr;
	int err;

	if (type != IB_MR_TYPE_MEM_REG ||
	    !(dev->caps.bmme_flags & PVR_BMME_FAST_REG_WR))
		return ERR_PTR(-EOPNOTSUPP);
	if (!max_num_sg || max_num_sg > max)
		return ERR_PTR(-EINVAL);
	mr = kzalloc(sizeof(*mr), GFP_KERNEL);
	if (!mr)
		return ERR_PTR(-ENOMEM);
	err = pvr_pdir_init(&mr->pdir, &dev->dir_pages, npages, false);
	if (err)
		goto err_free;
	req.create_mr.flags = cpu_to_le32(PVR_MR_FLAG_FRMR);
	req.create_mr.nchunks = cpu_to_le32(npages);
	err = pvr_create_mr(mr, ibpd, &req);
	if (err)
		goto err_free;
	return &mr->ibmr;

err_free:
	pvr_mr_free(mr);
	return ERR_PTR(err);
}

/*
 * The device's page list has pages of 4 KiB. It begins with the one that has the first byte of
 * the region.
 */
static int set_page(struct ib_mr *ibmr, u64 addr)
{
	struct pvr_mr *mr = to_pvr_mr(ibmr);
	u64 end = addr + ibmr->page_size;

	if (!mr->npages)
		addr = ibmr->iova & ~(u64)(PVR_PAGE_SIZE - 1);
	if ((end - addr) >> PVR_PAGE_SHIFT > mr->pdir.npages - mr->npages)
		return -ENOMEM;
	for (; addr < end; addr += PVR_PAGE_SIZE)
		pvr_pdir_set(&mr->pdir, mr->npages++, addr);
	return 0;
}

/*
 * The device reads this page list when it executes the REG_MR. A consumer maps the region
 * again only after that.
 */
int pvr_map_mr_sg(struct ib_mr *ibmr, struct scatterlist *sg, int nents,
		  unsigned int *offset)
{
	struct pvr_mr *mr = to_pvr_mr(ibmr);
	int n;

	if (ibmr->page_size < PVR_PAGE_SIZE || ibmr->page_size > PAGE_SIZE ||
	    !is_power_of_2(ibmr->page_size))
		return -EINVAL;
	mr->npages = 0;
	n = ib_sg_to_pages(ibmr, sg, nents, offset, set_page);
	/* Without the rest of the last page. */
	if (n > 0)
		mr->npages = ((ibmr->iova & (PVR_PAGE_SIZE - 1)) +
			      ibmr->length + PVR_PAGE_SIZE - 1) >>
			     PVR_PAGE_SHIFT;
	return n;
}

int pvr_dereg_mr(struct ib_mr *ibmr, struct ib_udata *udata)
{
	struct pvr_mr *mr = to_pvr_mr(ibmr);
	int err;

	if (mr->access & IB_ACCESS_ON_DEMAND) {
		pvr_odp_destroy(mr);
		return 0;
	}
	err = destroy_mr(mr, ibmr->pd);
	if (!err)
		pvr_mr_free(mr);
	return err;
}
