// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* User contexts. Each has a doorbell page, which its process maps. */
#include <linux/mm.h>
#include <rdma/uverbs_std_types.h>

#include "odp.h"

#define UVERBS_MODULE_NAME pvr_uverbs
#include <rdma/uverbs_named_ioctl.h>

/*
 * Processes map whole pages of the CPU. So a context has all doorbell pages of its own, and
 * uses the first one.
 */
static int uar_alloc(struct pvr_dev *dev)
{
	int groups = dev->num_uars / PVR_PAGES_PER_CPU_PAGE, group;

	if (groups < 2)
		return -ENOSPC;
	group = ida_alloc_range(&dev->uars, 1, groups - 1, GFP_KERNEL);
	return group < 0 ? group : group * (int)PVR_PAGES_PER_CPU_PAGE;
}

static void uar_free(struct pvr_dev *dev, int uar)
{
	ida_free(&dev->uars, uar / PVR_PAGES_PER_CPU_PAGE);
}

static u64 uar_pfn(const struct pvr_dev *dev, int uar)
{
	return (pci_resource_start(dev->pdev, PVR_BAR_UAR) >> PVR_PAGE_SHIFT) +
	       uar;
}

/*
 * Return: the extensions that the provider requested and the device has; 0 for a provider
 * without a request.
 */
static u32 provider_features(const struct pvr_dev *dev, struct ib_udata *udata)
{
	struct pvr_alloc_ucontext req;

	if (udata->inlen < sizeof(req) ||
	    ib_copy_from_udata(&req, udata, sizeof(req)) ||
	    req.magic != PVR_UCTX_MAGIC)
		return 0;
	return req.features & dev->features;
}

static int create_uc(struct pvr_dev *dev, struct pvr_ucontext *ctx)
{
	union pvr_cmd_req req = {};
	union pvr_cmd_resp resp;
	int err;

	req.hdr.cmd = cpu_to_le32(PVR_CMD_CREATE_UC);
	req.create_uc.pfn = cpu_to_le64(uar_pfn(dev, ctx->uar));
	err = pvr_cmd(dev, &req, &resp);
	if (err)
		return err;
	ctx->handle = le32_to_cpu(resp.create_uc.ctx_handle);
	if (!ctx->handle) {
		pvr_dev_fail(dev,
			     "user context got handle 0, the driver's own");
		return -EIO;
	}
	return 0;
}

/* A page that the device did not release gets no other user. */
static void destroy_uc(struct pvr_dev *dev, struct pvr_ucontext *ctx)
{
	if (!pvr_cmd_destroy(dev, PVR_CMD_DESTROY_UC, ctx->handle))
		uar_free(dev, ctx->uar);
}

static struct pvrdma_alloc_ucontext_resp answer(const struct pvr_ucontext *ctx)
{
	const struct pvr_dev *dev = to_pvr_dev(ctx->ibuc.device);

	return (struct pvrdma_alloc_ucontext_resp){
		.qp_tab_size = dev->caps.max_qp,
		.reserved = ctx->features,
	};
}

int pvr_alloc_ucontext(struct ib_ucontext *ibuc, struct ib_udata *udata)
{
	struct pvr_ucontext *ctx = to_pvr_ucontext(ibuc);
	struct pvr_dev *dev = to_pvr_dev(ibuc->device);
	struct pvrdma_alloc_ucontext_resp resp;
	int err;

	ctx->uar = uar_alloc(dev);
	if (ctx->uar < 0)
		return ctx->uar;
	err = create_uc(dev, ctx);
	if (err) {
		uar_free(dev, ctx->uar);
		return err;
	}
	ctx->features = provider_features(dev, udata);
	resp = answer(ctx);
	err = pvr_udata_out(udata, &resp, sizeof(resp));
	if (err)
		destroy_uc(dev, ctx);
	return err;
}

/* Import of the context: return the response of alloc_ucontext again. */
int pvr_query_ucontext(struct ib_ucontext *ibuc,
		       struct uverbs_attr_bundle *attrs)
{
	struct pvrdma_alloc_ucontext_resp resp = answer(to_pvr_ucontext(ibuc));

	return uverbs_copy_to(attrs, PVR_ATTR_QUERY_CONTEXT_RESP, &resp,
			      sizeof(resp));
}

void pvr_dealloc_ucontext(struct ib_ucontext *ibuc)
{
	struct pvr_ucontext *ctx = to_pvr_ucontext(ibuc);
	struct pvr_dev *dev = to_pvr_dev(ibuc->device);

	if (ctx->odp_queue)
		pvr_odp_queue_end(ctx->odp_queue);
	destroy_uc(dev, ctx);
}

/*
 * ib_core removes the mappings of pvr_mmap() before it calls this. The operation must
 * exist: otherwise open contexts would block unloading of the driver.
 */
void pvr_disassociate_ucontext(struct ib_ucontext *ibuc)
{
}

int pvr_mmap(struct ib_ucontext *ibuc, struct vm_area_struct *vma)
{
	struct pvr_ucontext *ctx = to_pvr_ucontext(ibuc);
	struct pvr_dev *dev = to_pvr_dev(ibuc->device);

	if (vma->vm_pgoff)
		return pvr_dm_mmap(ibuc, vma);
	if (vma->vm_end - vma->vm_start != PAGE_SIZE ||
	    (vma->vm_flags & VM_EXEC)) {
		ibdev_dbg(
			ibuc->device,
			"mmap of %lu bytes at page %lu, expected the doorbell page: %lu at 0\n",
			vma->vm_end - vma->vm_start, vma->vm_pgoff, PAGE_SIZE);
		return -EINVAL;
	}
	return rdma_user_mmap_io(
		ibuc, vma, uar_pfn(dev, ctx->uar) / PVR_PAGES_PER_CPU_PAGE,
		PAGE_SIZE, pgprot_noncached(vma->vm_page_prot), NULL);
}

/*
 * Return: the handle of the caller's context; 0, the driver's own, for kernel callers.
 */
u32 pvr_udata_ctx(struct ib_udata *udata)
{
	struct pvr_ucontext *ctx =
		rdma_udata_to_drv_context(udata, struct pvr_ucontext, ibuc);

	return ctx ? ctx->handle : 0;
}

/*
 * Return: PVR_EXT_* negotiated with the caller's provider; 0 for kernel callers.
 */
u32 pvr_udata_features(struct ib_udata *udata)
{
	struct pvr_ucontext *ctx =
		rdma_udata_to_drv_context(udata, struct pvr_ucontext, ibuc);

	return ctx ? ctx->features : 0;
}

static int
UVERBS_HANDLER(PVR_METHOD_CLOCK_QUERY)(struct uverbs_attr_bundle *attrs)
{
	struct ib_ucontext *ibuc = ib_uverbs_get_ucontext(attrs);
	struct pvr_clock_query_resp resp;
	int err;

	if (IS_ERR(ibuc))
		return PTR_ERR(ibuc);
	if (!(to_pvr_ucontext(ibuc)->features & PVR_EXT_CQ_TIMESTAMP))
		return -EOPNOTSUPP;
	err = pvr_clock_read(to_pvr_dev(ibuc->device), &resp);
	if (err)
		return err;
	return uverbs_copy_to(attrs, PVR_ATTR_CLOCK_QUERY_RESP, &resp,
			      sizeof(resp));
}

DECLARE_UVERBS_NAMED_METHOD(
	PVR_METHOD_CLOCK_QUERY,
	UVERBS_ATTR_PTR_OUT(PVR_ATTR_CLOCK_QUERY_RESP,
			    UVERBS_ATTR_TYPE(struct pvr_clock_query_resp),
			    UA_MANDATORY));

ADD_UVERBS_METHODS(pvr_clock_methods, UVERBS_OBJECT_DEVICE,
		   &UVERBS_METHOD(PVR_METHOD_CLOCK_QUERY));

ADD_UVERBS_ATTRIBUTES_SIMPLE(
	pvr_query_context, UVERBS_OBJECT_DEVICE, UVERBS_METHOD_QUERY_CONTEXT,
	UVERBS_ATTR_PTR_OUT(PVR_ATTR_QUERY_CONTEXT_RESP,
			    UVERBS_ATTR_TYPE(struct pvrdma_alloc_ucontext_resp),
			    UA_MANDATORY));

const struct uapi_definition pvr_ucontext_uapi[] = {
	UAPI_DEF_CHAIN_OBJ_TREE(UVERBS_OBJECT_DEVICE, &pvr_query_context),
	UAPI_DEF_CHAIN_OBJ_TREE(UVERBS_OBJECT_DEVICE, &pvr_clock_methods),
	{},
};
