// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* Regions on demand: registration, page faults, advice. See odp.h. */
#include <linux/completion.h>
#include <rdma/ib_umem_odp.h>
#include <rdma/ib_user_ioctl_verbs.h>

#include "odp.h"

#define FAULT_TRIES 5

/* ------------------------------------------------------------ page faults */

static int query_fault(struct pvr_mr *mr, u64 *first, u32 *npages)
{
	union pvr_cmd_req req = {};
	union pvr_cmd_resp resp;
	int err;

	req.hdr.cmd = cpu_to_le32(PVR_CMD_QUERY_FAULT);
	req.handle.handle = cpu_to_le32(mr->handle);
	err = pvr_odp_cmd(mr, &req, &resp);
	if (err)
		return err;
	*first = le64_to_cpu(resp.query_fault.first);
	*npages = le32_to_cpu(resp.query_fault.npages);
	return *npages > PVR_SET_PAGES_MAX ? -EPROTO : 0;
}

/*
 * The kernel gives up with EBUSY after a second in which others changed the page tables. On a
 * busy machine one such second says nothing about the page.
 */
static int resolve_fault(struct pvr_mr *mr, u64 first, u32 npages)
{
	int err = -EBUSY;
	int i;

	for (i = 0; i < FAULT_TRIES && (err == -EBUSY || err == -EAGAIN); i++)
		err = pvr_odp_resolve(mr, first, npages, true);
	return err;
}

static void fault_once(struct pvr_mr *mr)
{
	u32 npages;
	u64 first;
	int err;

	if (query_fault(mr, &first, &npages))
		return;
	err = resolve_fault(mr, first, npages);
	if (!err)
		return;
	ibdev_dbg(mr->ibmr.device, "MR %#x: page fault at page %llu: %pe\n",
		  mr->handle, first, ERR_PTR(err));
	pvr_odp_refuse(mr, first);
}

static void odp_put(struct pvr_mr *mr)
{
	if (refcount_dec_and_test(&mr->odp->users))
		pvr_mr_free(mr);
}

static void fault_work(struct work_struct *work)
{
	struct pvr_odp *odp = container_of(work, struct pvr_odp, fault_work);

	fault_once(odp->mr);
	odp_put(odp->mr);
}

void pvr_odp_event(struct pvr_dev *dev, u32 handle)
{
	struct pvr_mr *mr;
	unsigned long flags;

	xa_lock_irqsave(&dev->odp_mrs, flags);
	mr = xa_load(&dev->odp_mrs, handle);
	if (mr) {
		refcount_inc(&mr->odp->users);
		if (!queue_work(mr->odp->queue->wq, &mr->odp->fault_work))
			refcount_dec(&mr->odp->users);
	}
	xa_unlock_irqrestore(&dev->odp_mrs, flags);
}

/* ------------------------------------------------------------ life cycle */

static bool is_all_addresses(u64 start, u64 length)
{
	return !start && length == U64_MAX;
}

/* The device's pages have 4 KiB, so memory of huge pages needs nothing else. */
static struct ib_umem *get_umem(struct pvr_dev *dev, u64 start, u64 length,
				int access)
{
	access &= ~IB_ACCESS_HUGETLB;
	if (is_all_addresses(start, length))
		return pvr_umem_odp_implicit(dev, access);
	return pvr_umem_odp(dev, start, length, access, &pvr_odp_ops);
}

/* Return: the queue that @ctx got with its first region, with a use for this region. */
static struct pvr_odp_queue *get_queue(struct pvr_dev *dev,
				       struct pvr_ucontext *ctx)
{
	struct pvr_odp_queue *queue = ctx ? READ_ONCE(ctx->odp_queue) : NULL;
	struct pvr_odp_queue *other;

	if (!queue) {
		queue = pvr_odp_queue_get(dev);
		if (IS_ERR(queue))
			return queue;
		other = ctx ? cmpxchg(&ctx->odp_queue, NULL, queue) : NULL;
		if (other) {
			pvr_odp_queue_end(queue);
			queue = other;
		}
	}
	refcount_inc(&queue->users);
	return queue;
}

static int init_queue(struct pvr_mr *mr, struct pvr_ucontext *ctx)
{
	struct pvr_dev *dev = to_pvr_dev(mr->ibmr.device);
	struct pvr_odp_queue *queue = get_queue(dev, ctx);

	if (IS_ERR(queue))
		return PTR_ERR(queue);
	mr->odp = pvr_odp_alloc(dev, queue);
	if (mr->odp) {
		mr->odp->own_queue = !ctx;
		return 0;
	}
	if (!ctx)
		pvr_odp_queue_end(queue);
	pvr_odp_queue_put(queue);
	return -ENOMEM;
}

/* On failure the caller calls pvr_odp_exit(). */
static int odp_init(struct pvr_mr *mr, struct pvr_ucontext *ctx, u64 start,
		    u64 length)
{
	struct ib_umem *umem;
	int err;

	err = init_queue(mr, ctx);
	if (err)
		return err;
	mr->odp->mr = mr;
	INIT_WORK(&mr->odp->fault_work, fault_work);
	umem = get_umem(to_pvr_dev(mr->ibmr.device), start, length, mr->access);
	if (IS_ERR(umem))
		return PTR_ERR(umem);
	pvr_odp_set_umem(mr, umem);
	mr->page_shift = PAGE_SHIFT;
	return 0;
}

static int create_at_device(struct pvr_mr *mr, struct ib_pd *ibpd)
{
	bool implicit = pvr_odp_is_implicit(mr);
	union pvr_cmd_req req = {};
	struct pvr_cmd_create_mr *cmd = &req.create_mr;

	cmd->flags = cpu_to_le32(PVR_MR_FLAG_LAYOUT | PVR_MR_FLAG_ON_DEMAND);
	cmd->start = cpu_to_le64(pvr_mr_iova(mr));
	cmd->length = cpu_to_le64(implicit ? PVR_ODP_IMPLICIT_BYTES
					   : mr->umem->length);
	cmd->access_flags = cpu_to_le32(
		mr->access & pvr_mr_access(to_pvr_dev(ibpd->device)));
	cmd->offset = cpu_to_le64(offset_in_page(mr->umem->address));
	cmd->page_shift = cpu_to_le32(PAGE_SHIFT);
	return pvr_create_mr(mr, ibpd, &req);
}

/* The device has the region. On failure it is destroyed and freed. */
static int begin(struct pvr_mr *mr)
{
	struct pvr_dev *dev = to_pvr_dev(mr->ibmr.device);
	int err;

	if (!pvr_odp_is_implicit(mr))
		pvr_odp_set_private(to_ib_umem_odp(mr->umem), mr);
	err = xa_err(
		xa_store_irq(&dev->odp_lkeys, mr->ibmr.lkey, mr, GFP_KERNEL));
	if (!err)
		err = pvr_handle_insert(dev, &dev->odp_mrs, mr->handle, mr);
	if (err)
		pvr_odp_destroy(mr);
	return err;
}

static int check(const struct pvr_dev *dev, u64 start, u64 length, u64 iova,
		 int access)
{
	int known = pvr_mr_access(dev) | IB_ZERO_BASED | IB_ACCESS_HUGETLB |
		    IB_ACCESS_ON_DEMAND | IB_ACCESS_OPTIONAL;

	if (!(dev->features & PVR_EXT_ON_DEMAND) ||
	    access & (~known | IB_ACCESS_MW_BIND))
		return -EOPNOTSUPP;
	if (is_all_addresses(start, length))
		return iova ? -EINVAL : 0;
	if (!length || length > PVR_ODP_IMPLICIT_BYTES || iova + length < iova)
		return -EINVAL;
	return 0;
}

struct ib_mr *pvr_odp_reg(struct ib_pd *ibpd, u64 start, u64 length, u64 iova,
			  int access, struct ib_udata *udata)
{
	struct pvr_ucontext *ctx =
		rdma_udata_to_drv_context(udata, struct pvr_ucontext, ibuc);
	struct pvr_mr *mr = kzalloc(sizeof(*mr), GFP_KERNEL);
	int err;

	if (!mr)
		return ERR_PTR(-ENOMEM);
	mr->ibmr.device = ibpd->device;
	mr->ibmr.pd = ibpd;
	mr->virt = iova;
	mr->access = access;
	err = check(to_pvr_dev(ibpd->device), start, length, pvr_mr_iova(mr),
		    access);
	if (!err)
		err = odp_init(mr, ctx, start, length);
	if (!err)
		err = create_at_device(mr, ibpd);
	if (err) {
		pvr_mr_free(mr);
		return ERR_PTR(err);
	}
	err = begin(mr);
	return err ? ERR_PTR(err) : &mr->ibmr;
}

static void end_own_queue(struct pvr_odp *odp)
{
	if (odp->own_queue)
		pvr_odp_queue_end(odp->queue);
	odp->own_queue = false;
}

void pvr_odp_destroy(struct pvr_mr *mr)
{
	struct pvr_dev *dev = to_pvr_dev(mr->ibmr.device);

	xa_erase_irq(&dev->odp_lkeys, mr->ibmr.lkey);
	if (xa_load(&dev->odp_mrs, mr->handle) == mr)
		xa_erase_irq(&dev->odp_mrs, mr->handle);
	if (cancel_work(&mr->odp->fault_work))
		odp_put(mr);
	/* Later commands would reach another region, which may get the handle now. */
	down_write(&mr->odp->alive);
	if (pvr_cmd_destroy(dev, PVR_CMD_DESTROY_MR, mr->handle))
		pvr_dev_fail(dev, "it refused to destroy a region on demand");
	mr->odp->gone = true;
	up_write(&mr->odp->alive);
	end_own_queue(mr->odp);
	odp_put(mr);
}

void pvr_odp_exit(struct pvr_mr *mr)
{
	if (!mr->odp)
		return;
	end_own_queue(mr->odp);
	pvr_odp_free(mr);
}

/* ------------------------------------------------------------ advice */

/*
 * Advice is a work item, so that a killed program does not wait for its pages. Whichever of both
 * ends last frees it.
 */
struct advice {
	struct work_struct work;
	struct completion done;
	refcount_t users; /* the caller and the work item */
	struct pvr_mr *mr; /* with a use */
	u64 first;
	u64 npages;
	bool fault;
	bool given_up; /* by the caller */
	int err; /* once done */
};

static void advice_put(struct advice *advice)
{
	if (refcount_dec_and_test(&advice->users))
		kfree(advice);
}

/* Return: a region that stays until odp_put(), or NULL. */
static struct pvr_mr *find(struct ib_pd *ibpd, u32 lkey)
{
	struct pvr_dev *dev = to_pvr_dev(ibpd->device);
	struct pvr_mr *mr;

	xa_lock_irq(&dev->odp_lkeys);
	mr = xa_load(&dev->odp_lkeys, lkey);
	if (mr &&
	    (mr->ibmr.pd != ibpd || !refcount_inc_not_zero(&mr->odp->users)))
		mr = NULL;
	xa_unlock_irq(&dev->odp_lkeys);
	return mr;
}

static u64 length_of(const struct pvr_mr *mr)
{
	return pvr_odp_is_implicit(mr) ? PVR_ODP_IMPLICIT_BYTES
				       : mr->umem->length;
}

static int execute_advice(struct advice *advice)
{
	u64 first = advice->first, npages = advice->npages;
	int err = 0;
	u32 n;

	for (; npages && !err; npages -= n, first += n) {
		if (READ_ONCE(advice->given_up) ||
		    READ_ONCE(advice->mr->odp->gone))
			return -ECANCELED;
		cond_resched();
		n = min_t(u64, npages, PVR_SET_PAGES_MAX);
		err = pvr_odp_resolve(advice->mr, first, n, advice->fault);
	}
	return err;
}

static void advice_work(struct work_struct *work)
{
	struct advice *advice = container_of(work, struct advice, work);

	advice->err = execute_advice(advice);
	odp_put(advice->mr);
	complete(&advice->done);
	advice_put(advice);
}

#define LOOK_INTERVAL (HZ / 2)

static bool is_given_up(int err)
{
	return err == -EINTR || err == -ESHUTDOWN;
}

/*
 * A restart waits for all calls of programs, and a page may never come. Return: the result,
 * -EINTR if the caller is killed, or -ESHUTDOWN if the device stops.
 */
static int await_advice(struct pvr_dev *dev, struct advice *advice)
{
	long left;

	for (;;) {
		left = wait_for_completion_killable_timeout(&advice->done,
							    LOOK_INTERVAL);
		if (left > 0)
			return advice->err;
		if (left < 0)
			return -EINTR;
		if (!test_bit(PVR_DEV_LIVE, &dev->flags) || pvr_dev_dead(dev))
			return -ESHUTDOWN;
	}
}

/* Takes over the use of @mr. Return: as await_advice(), or -ENOMEM. */
static int fetch_pages(struct pvr_dev *dev, struct pvr_mr *mr, u64 first,
		       u64 npages, bool fault)
{
	struct advice *advice = kzalloc(sizeof(*advice), GFP_KERNEL);
	int err;

	if (!advice) {
		odp_put(mr);
		return -ENOMEM;
	}
	INIT_WORK(&advice->work, advice_work);
	init_completion(&advice->done);
	refcount_set(&advice->users, 2);
	advice->mr = mr;
	advice->first = first;
	advice->npages = npages;
	advice->fault = fault;
	queue_work(mr->odp->queue->wq, &advice->work);
	err = await_advice(dev, advice);
	WRITE_ONCE(advice->given_up, true);
	if (is_given_up(err) && cancel_work(&advice->work)) {
		odp_put(mr);
		advice_put(advice);
	}
	advice_put(advice);
	return err;
}

/* @err: set to the result of a range that is in order. */
static int fetch_range(struct ib_pd *ibpd,
		       enum ib_uverbs_advise_mr_advice advice,
		       const struct ib_sge *sge, int *err)
{
	struct pvr_mr *mr = find(ibpd, sge->lkey);
	u64 start;
	int bad = 0;

	if (!mr)
		return -EINVAL;
	start = sge->addr - pvr_mr_iova(mr);
	if (start > length_of(mr) || sge->length > length_of(mr) - start)
		bad = -EINVAL;
	else if (advice == IB_UVERBS_ADVISE_MR_ADVICE_PREFETCH_WRITE &&
		 !(mr->access & IB_ACCESS_LOCAL_WRITE))
		bad = -EPERM;
	if (bad || !sge->length) {
		odp_put(mr);
		return bad;
	}
	start += offset_in_page(mr->umem->address);
	*err = fetch_pages(
		to_pvr_dev(ibpd->device), mr, start >> PAGE_SHIFT,
		((start + sge->length - 1) >> PAGE_SHIFT) -
			(start >> PAGE_SHIFT) + 1,
		advice != IB_UVERBS_ADVISE_MR_ADVICE_PREFETCH_NO_FAULT);
	return 0;
}

/* Without the flag FLUSH a program is not told that pages could not be fetched. */
int pvr_advise_mr(struct ib_pd *ibpd, enum ib_uverbs_advise_mr_advice advice,
		  u32 flags, struct ib_sge *sg_list, u32 num_sge,
		  struct uverbs_attr_bundle *attrs)
{
	struct pvr_dev *dev = to_pvr_dev(ibpd->device);
	int bad, err;
	u32 i;

	if (!(dev->features & PVR_EXT_ON_DEMAND) ||
	    advice > IB_UVERBS_ADVISE_MR_ADVICE_PREFETCH_NO_FAULT)
		return -EOPNOTSUPP;
	for (i = 0; i < num_sge; i++) {
		err = 0;
		bad = fetch_range(ibpd, advice, &sg_list[i], &err);
		if (bad)
			return bad;
		if (err == -ESHUTDOWN)
			return -EIO;
		if (err == -EINTR ||
		    (err && flags & IB_UVERBS_ADVISE_MR_FLAG_FLUSH))
			return err;
	}
	return 0;
}

void pvr_odp_caps(const struct pvr_dev *dev, struct ib_device_attr *attr)
{
	const u32 ops = IB_ODP_SUPPORT_SEND | IB_ODP_SUPPORT_RECV |
			IB_ODP_SUPPORT_WRITE | IB_ODP_SUPPORT_READ |
			IB_ODP_SUPPORT_ATOMIC | IB_ODP_SUPPORT_SRQ_RECV;

	if (!(dev->features & PVR_EXT_ON_DEMAND))
		return;
	attr->kernel_cap_flags |= IBK_ON_DEMAND_PAGING;
	attr->odp_caps.general_caps = IB_ODP_SUPPORT | IB_ODP_SUPPORT_IMPLICIT;
	attr->odp_caps.per_transport_caps.rc_odp_caps = ops;
	attr->odp_caps.per_transport_caps.xrc_odp_caps = ops;
	/* Without responses a receiver on another host loses what finds no page. */
	attr->odp_caps.per_transport_caps.uc_odp_caps = IB_ODP_SUPPORT_SEND |
							IB_ODP_SUPPORT_WRITE;
	attr->odp_caps.per_transport_caps.ud_odp_caps = IB_ODP_SUPPORT_SEND;
}
