// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Device memory: memory of the adapter that programs allocate, fill and register.
 *
 * DOC: Backing of device memory
 *
 * The memory of a virtual adapter and of the guest is the same host memory. So device
 * memory is guest pages that the driver owns, and the device accesses them like other
 * pages. Programs for device memory run unchanged, without a speed gain.
 */
#include <linux/dma-mapping.h>
#include <linux/mm.h>
#include <rdma/uverbs_std_types.h>

#include "pvrdma.h"

#define UVERBS_MODULE_NAME pvr_uverbs
#include <rdma/uverbs_named_ioctl.h>

static struct pvr_dm *to_dm(struct rdma_user_mmap_entry *entry)
{
	return container_of(entry, struct pvr_dm, entry);
}

static struct device *dma_dev(struct pvr_dm *dm)
{
	return &dm->dev->pdev->dev;
}

static void pages_free(struct pvr_dm *dm)
{
	u32 i;

	for (i = 0; i < dm->npages; i++) {
		dma_unmap_page(dma_dev(dm), dm->dma[i], PAGE_SIZE,
			       DMA_BIDIRECTIONAL);
		__free_page(dm->pages[i]);
	}
	kvfree(dm->dma);
	kvfree(dm->pages);
}

static int page_add(struct pvr_dm *dm)
{
	struct page *page = alloc_page(GFP_KERNEL_ACCOUNT | __GFP_ZERO);
	dma_addr_t dma;

	if (!page)
		return -ENOMEM;
	dma = dma_map_page(dma_dev(dm), page, 0, PAGE_SIZE, DMA_BIDIRECTIONAL);
	if (dma_mapping_error(dma_dev(dm), dma)) {
		__free_page(page);
		return -ENOMEM;
	}
	dm->pages[dm->npages] = page;
	dm->dma[dm->npages++] = dma;
	/* With a bounce buffer, program and device would see different bytes. */
	return dma_need_sync(dma_dev(dm), dma) ? -EOPNOTSUPP : 0;
}

/* On failure pages_free() cleans up. */
static int pages_alloc(struct pvr_dm *dm, u32 n)
{
	int err = 0;

	dm->pages = kvcalloc(n, sizeof(*dm->pages), GFP_KERNEL);
	dm->dma = kvcalloc(n, sizeof(*dm->dma), GFP_KERNEL);
	if (!dm->pages || !dm->dma)
		return -ENOMEM;
	while (!err && dm->npages < n)
		err = page_add(dm);
	return err;
}

/*
 * The object is freed and no mmap() runs. Mappings keep their pages by the page counts.
 */
void pvr_mmap_free(struct rdma_user_mmap_entry *entry)
{
	struct pvr_dm *dm = to_dm(entry);

	atomic64_sub(dm->npages * PAGE_SIZE, &dm->dev->dm_bytes);
	pages_free(dm);
	kfree(dm);
}

static bool reserve(struct pvr_dev *dev, u64 bytes)
{
	if (atomic64_add_return(bytes, &dev->dm_bytes) <= PVR_DM_BYTES)
		return true;
	atomic64_sub(bytes, &dev->dm_bytes);
	return false;
}

static struct pvr_dm *dm_new(struct pvr_dev *dev, struct ib_ucontext *ibuc,
			     u64 bytes)
{
	struct pvr_dm *dm = kzalloc(sizeof(*dm), GFP_KERNEL_ACCOUNT);
	int err;

	if (!dm)
		return ERR_PTR(-ENOMEM);
	dm->dev = dev;
	err = pages_alloc(dm, bytes / PAGE_SIZE);
	/* Offset 0 is the doorbell page. */
	if (!err)
		err = rdma_user_mmap_entry_insert_range(ibuc, &dm->entry, bytes,
							1, U32_MAX);
	if (!err)
		return dm;
	pages_free(dm);
	kfree(dm);
	return ERR_PTR(err);
}

struct ib_dm *pvr_alloc_dm(struct ib_device *ibdev, struct ib_ucontext *ibuc,
			   struct ib_dm_alloc_attr *attr,
			   struct uverbs_attr_bundle *attrs)
{
	struct pvr_dev *dev = to_pvr_dev(ibdev);
	struct pvr_dm *dm;
	u64 bytes;

	/* Zero-based regions need PVR_EXT_MR_LAYOUT. */
	if (!(dev->features & PVR_EXT_MR_LAYOUT))
		return ERR_PTR(-EOPNOTSUPP);
	if (!attr->length || attr->length > PVR_DM_BYTES ||
	    attr->alignment > PAGE_SHIFT || attr->flags)
		return ERR_PTR(-EINVAL);
	bytes = PAGE_ALIGN(attr->length);
	if (!reserve(dev, bytes))
		return ERR_PTR(-ENOMEM);
	dm = dm_new(dev, ibuc, bytes);
	if (!IS_ERR(dm))
		return &dm->ibdm;
	atomic64_sub(bytes, &dev->dm_bytes);
	return ERR_CAST(dm);
}

int pvr_dealloc_dm(struct ib_dm *ibdm, struct uverbs_attr_bundle *attrs)
{
	rdma_user_mmap_entry_remove(&to_pvr_dm(ibdm)->entry);
	return 0;
}

/* ib_core has checked that the range lies within the object. */
struct ib_mr *pvr_reg_dm_mr(struct ib_pd *ibpd, struct ib_dm *ibdm,
			    struct ib_dm_mr_attr *attr,
			    struct uverbs_attr_bundle *attrs)
{
	struct pvr_dm *dm = to_pvr_dm(ibdm);

	return pvr_mr_of_pages(ibpd, &dm->dma[attr->offset >> PAGE_SHIFT],
			       offset_in_page(attr->offset), attr->length,
			       attr->access_flags);
}

int pvr_dm_mmap(struct ib_ucontext *ibuc, struct vm_area_struct *vma)
{
	struct rdma_user_mmap_entry *entry =
		rdma_user_mmap_entry_get(ibuc, vma);
	struct pvr_dm *dm;
	int err;

	if (!entry)
		return -EINVAL;
	dm = to_dm(entry);
	err = vm_map_pages_zero(vma, dm->pages, dm->npages);
	rdma_user_mmap_entry_put(entry);
	return err;
}

static int UVERBS_HANDLER(PVR_METHOD_DM_QUERY)(struct uverbs_attr_bundle *attrs)
{
	struct ib_dm *ibdm =
		uverbs_attr_get_obj(attrs, PVR_ATTR_DM_QUERY_HANDLE);
	struct pvr_dm *dm = to_pvr_dm(ibdm);
	struct pvr_dm_query_resp resp = {
		.length = ibdm->length,
		.mmap_offset = rdma_user_mmap_get_offset(&dm->entry),
	};

	return uverbs_copy_to(attrs, PVR_ATTR_DM_QUERY_RESP, &resp,
			      sizeof(resp));
}

DECLARE_UVERBS_NAMED_METHOD(
	PVR_METHOD_DM_QUERY,
	UVERBS_ATTR_IDR(PVR_ATTR_DM_QUERY_HANDLE, UVERBS_OBJECT_DM,
			UVERBS_ACCESS_READ, UA_MANDATORY),
	UVERBS_ATTR_PTR_OUT(PVR_ATTR_DM_QUERY_RESP,
			    UVERBS_ATTR_TYPE(struct pvr_dm_query_resp),
			    UA_MANDATORY));

ADD_UVERBS_METHODS(pvr_dm_methods, UVERBS_OBJECT_DM,
		   &UVERBS_METHOD(PVR_METHOD_DM_QUERY));

const struct uapi_definition pvr_dm_uapi[] = {
	UAPI_DEF_CHAIN_OBJ_TREE(UVERBS_OBJECT_DM, &pvr_dm_methods),
	{},
};
