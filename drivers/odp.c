// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * On-demand paging: regions whose memory is not pinned.
 *
 * DOC: pages of a region on demand
 *
 * The device reports a page fault by an event. A work item then makes the pages resident and
 * enters them at the device. Before the kernel takes a page away, invalidate() removes it from
 * the device. umem_mutex orders both: the device never keeps a page that the kernel has taken.
 * pvr_cmd_chan.lock is inside umem_mutex. No holder of it allocates memory, so an invalidation
 * during memory reclaim makes progress.
 */
#include <linux/dma-mapping.h>
#include <linux/mmu_notifier.h>

#include "odp_compat.h"
#include "pvrdma.h"

static int set_pages(struct pvr_mr *mr, enum pvr_pages_state state, u64 first,
		     u32 npages)
{
	union pvr_cmd_req req = {};

	req.hdr.cmd = cpu_to_le32(PVR_CMD_SET_PAGES);
	req.set_pages.mr_handle = cpu_to_le32(mr->handle);
	req.set_pages.npages = cpu_to_le32(npages);
	req.set_pages.first = cpu_to_le64(first);
	req.set_pages.list_dma = cpu_to_le64(mr->odp_list.dma);
	req.set_pages.state = cpu_to_le32(state);
	return pvr_cmd(to_pvr_dev(mr->ibmr.device), &req, NULL);
}

/* A dead device does no DMA. */
static void remove_pages(struct pvr_mr *mr, u64 first, u64 npages)
{
	struct pvr_dev *dev = to_pvr_dev(mr->ibmr.device);
	u32 n;

	for (; npages; npages -= n, first += n) {
		n = min_t(u64, npages, PVR_SET_ABSENT_MAX);
		if (pvr_dev_dead(dev))
			return;
		if (set_pages(mr, PVR_PAGES_ABSENT, first, n))
			pvr_dev_fail(dev, "it refused to give up pages");
	}
}

static bool invalidate(struct mmu_interval_notifier *notifier,
		       const struct mmu_notifier_range *range,
		       unsigned long seq)
{
	struct ib_umem_odp *odp =
		container_of(notifier, struct ib_umem_odp, notifier);
	u64 start = max_t(u64, ib_umem_start(odp), range->start);
	u64 end = min_t(u64, ib_umem_end(odp), range->end);
	struct pvr_mr *mr;

	if (!mmu_notifier_range_blockable(range))
		return false;
	mutex_lock(&odp->umem_mutex);
	mmu_interval_set_seq(notifier, seq);
	mr = odp->private; /* NULL: the device has no pages of it */
	if (mr) {
		remove_pages(mr, (start - ib_umem_start(odp)) >> PAGE_SHIFT,
			     (end - start) >> PAGE_SHIFT);
		ib_umem_odp_unmap_dma_pages(odp, start, end);
	}
	mutex_unlock(&odp->umem_mutex);
	return true;
}

static const struct mmu_interval_notifier_ops odp_ops = {
	.invalidate = invalidate,
};

/* Enter resident pages at the device. */
static int enter_locked(struct pvr_mr *mr, u64 first, u32 npages)
{
	struct ib_umem_odp *odp = to_ib_umem_odp(mr->umem);
	struct device *dma_dev = &to_pvr_dev(mr->ibmr.device)->pdev->dev;
	__le64 *list = mr->odp_list.va;
	dma_addr_t dma;
	u32 i;

	lockdep_assert_held(&odp->umem_mutex);
	for (i = 0; i < npages; i++) {
		dma = pvr_odp_dma(dma_dev, odp, first + i);
		if (dma_mapping_error(dma_dev, dma))
			return -EFAULT;
		list[i] = cpu_to_le64(dma);
	}
	return set_pages(mr, PVR_PAGES_PRESENT, first, npages);
}

static int resolve(struct pvr_mr *mr, u64 first, u32 npages)
{
	struct ib_umem_odp *odp = to_ib_umem_odp(mr->umem);
	int err;

	if (npages > PVR_SET_PAGES_MAX || first >= ib_umem_odp_num_pages(odp) ||
	    npages > ib_umem_odp_num_pages(odp) - first)
		return -EPROTO;
	err = ib_umem_odp_map_dma_and_lock(
		odp, ib_umem_start(odp) + (first << PAGE_SHIFT),
		(u64)npages << PAGE_SHIFT, pvr_odp_access(odp), true);
	if (err < 0)
		return err;
	/* The lock is held: invalidate() waits, and finds the pages at the device. */
	err = enter_locked(mr, first, npages);
	mutex_unlock(&odp->umem_mutex);
	return err;
}

static int query_fault(struct pvr_mr *mr, u64 *first, u32 *npages)
{
	union pvr_cmd_req req = {};
	union pvr_cmd_resp resp;
	int err;

	req.hdr.cmd = cpu_to_le32(PVR_CMD_QUERY_FAULT);
	req.handle.handle = cpu_to_le32(mr->handle);
	err = pvr_cmd(to_pvr_dev(mr->ibmr.device), &req, &resp);
	if (err)
		return err;
	*first = le64_to_cpu(resp.query_fault.first);
	*npages = le32_to_cpu(resp.query_fault.npages);
	return 0;
}

static void fault_work(struct work_struct *work)
{
	struct pvr_mr *mr = container_of(work, struct pvr_mr, fault_work);
	u32 npages;
	u64 first;
	int err;

	if (query_fault(mr, &first, &npages))
		return;
	err = resolve(mr, first, npages);
	if (!err)
		return;
	ibdev_dbg(mr->ibmr.device, "MR %#x: page fault at page %llu: %pe\n",
		  mr->handle, first, ERR_PTR(err));
	set_pages(mr, PVR_PAGES_REFUSED, first, 1);
}

void pvr_odp_event(struct pvr_dev *dev, u32 handle)
{
	struct pvr_mr *mr;
	unsigned long flags;

	xa_lock_irqsave(&dev->odp_mrs, flags);
	mr = xa_load(&dev->odp_mrs, handle);
	if (mr)
		schedule_work(&mr->fault_work);
	xa_unlock_irqrestore(&dev->odp_mrs, flags);
}

static void set_private(struct pvr_mr *mr, struct pvr_mr *private)
{
	struct ib_umem_odp *odp = to_ib_umem_odp(mr->umem);

	mutex_lock(&odp->umem_mutex);
	odp->private = private;
	mutex_unlock(&odp->umem_mutex);
}

int pvr_odp_init(struct pvr_mr *mr, u64 start, u64 length)
{
	struct pvr_dev *dev = to_pvr_dev(mr->ibmr.device);
	struct ib_umem *umem;

	if (!(dev->features & PVR_EXT_ON_DEMAND) ||
	    mr->access & (IB_ACCESS_MW_BIND | IB_ACCESS_HUGETLB))
		return -EOPNOTSUPP;
	umem = pvr_umem_odp(dev, start, length, mr->access, &odp_ops);
	if (IS_ERR(umem))
		return PTR_ERR(umem);
	mr->umem = umem;
	mr->page_shift = PAGE_SHIFT;
	INIT_WORK(&mr->fault_work, fault_work);
	mr->odp_list.va = dma_alloc_coherent(&dev->pdev->dev, PVR_PAGE_SIZE,
					     &mr->odp_list.dma, GFP_KERNEL);
	return mr->odp_list.va ? 0 : -ENOMEM;
}

int pvr_odp_start(struct pvr_mr *mr)
{
	struct pvr_dev *dev = to_pvr_dev(mr->ibmr.device);
	int err;

	set_private(mr, mr);
	err = pvr_handle_insert(dev, &dev->odp_mrs, mr->handle, mr);
	if (err)
		pvr_odp_destroy(mr);
	return err;
}

void pvr_odp_destroy(struct pvr_mr *mr)
{
	struct pvr_dev *dev = to_pvr_dev(mr->ibmr.device);
	struct ib_umem_odp *odp = to_ib_umem_odp(mr->umem);

	if (xa_load(&dev->odp_mrs, mr->handle) == mr)
		xa_erase_irq(&dev->odp_mrs, mr->handle);
	/* Its commands must not reach another region, which may get the handle now. */
	cancel_work_sync(&mr->fault_work);
	/* No invalidation may find a region that the device no longer has. */
	mutex_lock(&odp->umem_mutex);
	if (pvr_cmd_destroy(dev, PVR_CMD_DESTROY_MR, mr->handle))
		pvr_dev_fail(dev, "it refused to destroy a region on demand");
	odp->private = NULL;
	mutex_unlock(&odp->umem_mutex);
}

void pvr_odp_exit(struct pvr_mr *mr)
{
	if (mr->odp_list.va)
		dma_free_coherent(&to_pvr_dev(mr->ibmr.device)->pdev->dev,
				  PVR_PAGE_SIZE, mr->odp_list.va,
				  mr->odp_list.dma);
}

void pvr_odp_caps(const struct pvr_dev *dev, struct ib_device_attr *attr)
{
	if (!(dev->features & PVR_EXT_ON_DEMAND))
		return;
	attr->kernel_cap_flags |= IBK_ON_DEMAND_PAGING;
	attr->odp_caps.general_caps = IB_ODP_SUPPORT;
	attr->odp_caps.per_transport_caps.rc_odp_caps =
		IB_ODP_SUPPORT_SEND | IB_ODP_SUPPORT_RECV |
		IB_ODP_SUPPORT_WRITE | IB_ODP_SUPPORT_READ |
		IB_ODP_SUPPORT_ATOMIC | IB_ODP_SUPPORT_SRQ_RECV;
}
