// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* Pages of regions on demand: resident, entered at the device, and taken away. */
#include <linux/dma-mapping.h>
#include <linux/mmu_notifier.h>
#include <linux/sched/mm.h>

#include "odp.h"

#define SWEEP_MIN 64

bool pvr_odp_is_implicit(const struct pvr_mr *mr)
{
	return to_ib_umem_odp(mr->umem)->is_implicit_odp;
}

/* The address of page 0 of the region. */
static u64 base_of(const struct pvr_mr *mr)
{
	return pvr_odp_is_implicit(mr)
		       ? 0
		       : ib_umem_start(to_ib_umem_odp(mr->umem));
}

/* ------------------------------------------------------------ commands */

int pvr_odp_cmd(struct pvr_mr *mr, union pvr_cmd_req *req,
		union pvr_cmd_resp *resp)
{
	int err = -ECANCELED;

	down_read(&mr->odp->alive);
	if (!mr->odp->gone)
		err = pvr_cmd(to_pvr_dev(mr->ibmr.device), req, resp);
	up_read(&mr->odp->alive);
	return err;
}

static int set_pages(struct pvr_mr *mr, enum pvr_pages_state state, u64 first,
		     u32 npages)
{
	union pvr_cmd_req req = {};

	req.hdr.cmd = cpu_to_le32(PVR_CMD_SET_PAGES);
	req.set_pages.mr_handle = cpu_to_le32(mr->handle);
	req.set_pages.npages = cpu_to_le32(npages);
	req.set_pages.first = cpu_to_le64(first);
	req.set_pages.list_dma = cpu_to_le64(mr->odp->list.dma);
	req.set_pages.state = cpu_to_le32(state);
	return pvr_odp_cmd(mr, &req, NULL);
}

void pvr_odp_refuse(struct pvr_mr *mr, u64 first)
{
	set_pages(mr, PVR_PAGES_REFUSED, first, 1);
}

/* A dead device does no DMA. */
static void remove_pages(struct pvr_mr *mr, u64 first, u64 npages)
{
	struct pvr_dev *dev = to_pvr_dev(mr->ibmr.device);
	int err = 0;
	u32 n;

	/* Of a region that is gone, @dev may have been stopped. */
	for (; npages && !err; npages -= n, first += n) {
		n = min_t(u64, npages, PVR_SET_ABSENT_MAX);
		err = set_pages(mr, PVR_PAGES_ABSENT, first, n);
	}
	if (err && err != -ECANCELED && !pvr_dev_dead(dev))
		pvr_dev_fail(dev, "it refused to give up pages");
}

/* ------------------------------------------------------------ notifiers */

static bool invalidate(struct mmu_interval_notifier *notifier,
		       const struct mmu_notifier_range *range,
		       unsigned long seq)
{
	struct ib_umem_odp *umem =
		container_of(notifier, struct ib_umem_odp, notifier);
	u64 start = max_t(u64, ib_umem_start(umem), range->start);
	u64 end = min_t(u64, ib_umem_end(umem), range->end);
	struct pvr_mr *mr;

	if (!mmu_notifier_range_blockable(range))
		return false;
	mutex_lock(&umem->umem_mutex);
	mmu_interval_set_seq(notifier, seq);
	mr = umem->private; /* NULL: the device has no pages of it */
	if (mr && start < end && pvr_odp_has_pages(umem, start, end)) {
		remove_pages(mr, (start - base_of(mr)) >> PAGE_SHIFT,
			     (end - start) >> PAGE_SHIFT);
		pvr_odp_unmap(umem, start, end);
	}
	mutex_unlock(&umem->umem_mutex);
	return true;
}

const struct mmu_interval_notifier_ops pvr_odp_ops = {
	.invalidate = invalidate,
};

void pvr_odp_set_umem(struct pvr_mr *mr, struct ib_umem *umem)
{
	mr->umem = umem;
	/*
	 * Only the notifier of a child keeps the mm_struct, and the region may be used by other
	 * processes after its own has ended.
	 */
	if (pvr_odp_is_implicit(mr))
		mmgrab(umem->owning_mm);
}

void pvr_odp_set_private(struct ib_umem_odp *umem, struct pvr_mr *mr)
{
	mutex_lock(&umem->umem_mutex);
	umem->private = mr;
	mutex_unlock(&umem->umem_mutex);
}

/* ------------------------------------------------------------ children */

static struct ib_umem_odp *child_create(struct pvr_mr *mr, unsigned long index)
{
	struct ib_umem_odp *root = to_ib_umem_odp(mr->umem);
	struct ib_umem_odp *child;
	int err;

	/* A process that has ended must not get another notifier. */
	if (!mmget_not_zero(root->umem.owning_mm))
		return ERR_PTR(-ESRCH);
	child = ib_umem_odp_alloc_child(root, index * PVR_ODP_CHILD_BYTES,
					PVR_ODP_CHILD_BYTES, &pvr_odp_ops);
	mmput(root->umem.owning_mm);
	if (IS_ERR(child))
		return child;
	pvr_odp_set_private(child, mr);
	err = xa_err(xa_store(&mr->odp->children, index, child, GFP_KERNEL));
	if (err) {
		ib_umem_odp_release(child);
		return ERR_PTR(err);
	}
	mr->odp->num_children++;
	return child;
}

/* The memory of page @page of the region. */
static struct ib_umem_odp *umem_at(struct pvr_mr *mr, u64 page)
{
	struct ib_umem_odp *child;

	if (!pvr_odp_is_implicit(mr))
		return to_ib_umem_odp(mr->umem);
	child = xa_load(&mr->odp->children, page / PVR_ODP_CHILD_PAGES);
	return child ? child : child_create(mr, page / PVR_ODP_CHILD_PAGES);
}

/*
 * A process that maps memory at ever new addresses leaves children without pages. A sweep each
 * time their number has doubled costs each new child a constant.
 */
static void sweep(struct pvr_odp *odp)
{
	struct ib_umem_odp *child;
	unsigned long index;

	if (odp->num_children < odp->sweep_at)
		return;
	xa_for_each(&odp->children, index, child) {
		/* With pvr_odp.lock no page is added. */
		if (pvr_odp_has_pages(child, ib_umem_start(child),
				      ib_umem_end(child)))
			continue;
		xa_erase(&odp->children, index);
		odp->num_children--;
		ib_umem_odp_release(child);
	}
	odp->sweep_at = max_t(unsigned long, SWEEP_MIN, 2 * odp->num_children);
}

/* ------------------------------------------------------------ faults */

/*
 * Fill the list with the pages from @first on that are resident and have the region's rights.
 * Return: their number.
 */
static u32 fill_list(struct pvr_mr *mr, struct ib_umem_odp *umem, u64 first,
		     u32 npages)
{
	struct device *dma_dev = &to_pvr_dev(mr->ibmr.device)->pdev->dev;
	__le64 *list = mr->odp->list.va;
	dma_addr_t dma;
	u32 i;

	for (i = 0; i < npages; i++) {
		dma = pvr_odp_dma(dma_dev, umem, first + i);
		if (dma_mapping_error(dma_dev, dma))
			break;
		list[i] = cpu_to_le64(dma);
	}
	return i;
}

/* Enter resident pages at the device: @page of the region is @first of @umem. */
static int enter_locked(struct pvr_mr *mr, struct ib_umem_odp *umem, u64 page,
			u64 first, u32 npages, bool all)
{
	u32 n;
	int err;

	lockdep_assert_held(&umem->umem_mutex);
	for (; npages; npages -= n, page += n, first += n) {
		n = fill_list(mr, umem, first, npages);
		if (!n && all)
			return -EFAULT;
		err = n ? set_pages(mr, PVR_PAGES_PRESENT, page, n) : 0;
		if (err)
			return err;
		n = n ? n : 1;
	}
	return 0;
}

static int resolve_part(struct pvr_mr *mr, struct ib_umem_odp *umem, u64 page,
			u32 npages, bool fault)
{
	u64 va = base_of(mr) + (page << PAGE_SHIFT);
	int err;

	err = ib_umem_odp_map_dma_and_lock(umem, va, (u64)npages << PAGE_SHIFT,
					   pvr_odp_access(umem), fault);
	if (err < 0)
		return err;
	/* The lock is held: invalidate() waits, and finds the pages at the device. */
	err = enter_locked(mr, umem, page,
			   (va - ib_umem_start(umem)) >> PAGE_SHIFT, npages,
			   fault);
	mutex_unlock(&umem->umem_mutex);
	return err;
}

/* Return: the number of pages from @first on that are as the first one: mapped for DMA, or not. */
static u32 count_alike(struct ib_umem_odp *umem, u64 first, u32 npages,
		       bool *mapped)
{
	u32 n = 1;

	mutex_lock(&umem->umem_mutex);
	*mapped = pvr_odp_is_mapped(umem, first);
	while (n < npages && pvr_odp_is_mapped(umem, first + n) == *mapped)
		n++;
	mutex_unlock(&umem->umem_mutex);
	return n;
}

/*
 * Without faults, leave out what is mapped: hmm_range_fault() takes no lock of the page tables, so
 * it may find a present page absent while a thread changes the page's entry. ib_uverbs warns if
 * such a page is mapped.
 */
static int resolve_absent(struct pvr_mr *mr, struct ib_umem_odp *umem, u64 page,
			  u32 npages)
{
	u64 first =
		(base_of(mr) + (page << PAGE_SHIFT) - ib_umem_start(umem)) >>
		PAGE_SHIFT;
	bool mapped;
	int err = 0;
	u32 n;

	for (; npages && !err; npages -= n, page += n, first += n) {
		n = count_alike(umem, first, npages, &mapped);
		if (!mapped)
			err = resolve_part(mr, umem, page, n, false);
	}
	return err;
}

int pvr_odp_resolve(struct pvr_mr *mr, u64 first, u32 npages, bool fault)
{
	struct ib_umem_odp *umem;
	int err = 0;
	u64 end;
	u32 n;

	mutex_lock(&mr->odp->lock);
	sweep(mr->odp);
	while (npages && !err) {
		umem = umem_at(mr, first);
		if (IS_ERR(umem)) {
			err = PTR_ERR(umem);
			break;
		}
		end = (ib_umem_end(umem) - base_of(mr)) >> PAGE_SHIFT;
		if (first >= end) {
			err = -EPROTO;
			break;
		}
		n = min_t(u64, npages, end - first);
		err = fault ? resolve_part(mr, umem, first, n, true)
			    : resolve_absent(mr, umem, first, n);
		npages -= n;
		first += n;
	}
	mutex_unlock(&mr->odp->lock);
	return err;
}

/* ------------------------------------------------------------ life cycle */

struct pvr_odp *pvr_odp_alloc(struct pvr_dev *dev, struct pvr_odp_queue *queue)
{
	struct pvr_odp *odp = kzalloc(sizeof(*odp), GFP_KERNEL);

	if (!odp)
		return NULL;
	odp->list.va = dma_alloc_coherent(&dev->pdev->dev, PVR_PAGE_SIZE,
					  &odp->list.dma, GFP_KERNEL);
	if (!odp->list.va) {
		kfree(odp);
		return NULL;
	}
	mutex_init(&odp->lock);
	init_rwsem(&odp->alive);
	xa_init(&odp->children);
	odp->sweep_at = SWEEP_MIN;
	odp->queue = queue;
	refcount_set(&odp->users, 1);
	/* The region may outlive a restart. */
	get_device(&dev->ibdev.dev);
	return odp;
}

/* Notifiers of both use @mr until they are released, and children use their root. */
static void release_umems(struct pvr_mr *mr)
{
	struct mm_struct *grabbed = NULL;
	struct ib_umem_odp *child;
	unsigned long index;

	xa_for_each(&mr->odp->children, index, child)
		ib_umem_odp_release(child);
	xa_destroy(&mr->odp->children);
	if (mr->umem && pvr_odp_is_implicit(mr))
		grabbed = mr->umem->owning_mm;
	ib_umem_release(mr->umem);
	mr->umem = NULL;
	if (grabbed)
		mmdrop(grabbed);
}

void pvr_odp_free(struct pvr_mr *mr)
{
	struct pvr_dev *dev = to_pvr_dev(mr->ibmr.device);
	struct pvr_odp *odp = mr->odp;

	release_umems(mr);
	dma_free_coherent(&dev->pdev->dev, PVR_PAGE_SIZE, odp->list.va,
			  odp->list.dma);
	pvr_odp_queue_put(odp->queue);
	kfree(odp);
	put_device(&dev->ibdev.dev);
}
