/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/* Differences between the supported kernels. */
#ifndef PVR_COMPAT_H
#define PVR_COMPAT_H

#include <linux/version.h>
#include <rdma/ib_umem.h>
#include <rdma/ib_umem_odp.h>
#include <rdma/ib_verbs.h>
#include <rdma/uverbs_ioctl.h>

/* Newer kernels, some 6.1.y included, have the block iterator in a header of its own. */
#ifdef PVR_HAVE_RDMA_ITER_H
#include <rdma/iter.h>
#endif

#ifdef PVR_HAVE_HMM_DMA_MAP
#include <linux/hmm.h>
#include <linux/pci-p2pdma.h>
#endif

/*
 * Since 7.2 a buffer can also come from an attribute. This driver supports only
 * addresses.
 */
#ifdef PVR_HAVE_UMEM_GET_VA
#define pvr_ib_umem_get ib_umem_get_va
#else
#define pvr_ib_umem_get ib_umem_get
#endif

/*
 * Since 6.11 create_cq receives the attribute bundle that holds the udata.
 * PVR_CREATE_CQ_ARG is the type of the third argument, pvr_cq_udata() its udata.
 */
#if LINUX_VERSION_CODE >= KERNEL_VERSION(6, 11, 0)
#define PVR_CREATE_CQ_ARG struct uverbs_attr_bundle
static inline struct ib_udata *pvr_cq_udata(struct uverbs_attr_bundle *attrs)
{
	return attrs ? &attrs->driver_udata : NULL;
}
#else
#define PVR_CREATE_CQ_ARG struct ib_udata
static inline struct ib_udata *pvr_cq_udata(struct ib_udata *udata)
{
	return udata;
}
#endif

/* Since 7.2 only CQs of user space can be resized, by an operation of another name. */
#ifdef PVR_HAVE_RESIZE_USER_CQ
#define PVR_RESIZE_CQ_OP(fn) .resize_user_cq = fn,
#define PVR_RESIZE_CQE unsigned int
#else
#define PVR_RESIZE_CQ_OP(fn) .resize_cq = fn,
#define PVR_RESIZE_CQE int
#endif

/* Until 7.x, block devices over RDMA query the CPUs of completion vectors. */
#ifdef PVR_HAVE_VECTOR_AFFINITY
#define PVR_VECTOR_AFFINITY_OP(fn) .get_vector_affinity = fn,
#else
#define PVR_VECTOR_AFFINITY_OP(fn)
#endif

/*
 * Later kernels bind QPs to counters of a port, and drivers allocate the counters.
 * ib_core zeroes them and calls counter_init without a check for NULL.
 */
#ifdef PVR_HAVE_COUNTER_INIT
#define PVR_COUNTER_PORT_PARAM , u32 port
struct pvr_rdma_counter {
	struct rdma_counter core;
};
static inline void pvr_counter_init(struct rdma_counter *core)
{
}
#define PVR_COUNTER_OBJ                   \
	.counter_init = pvr_counter_init, \
	INIT_RDMA_OBJ_SIZE(rdma_counter, pvr_rdma_counter, core),
#else
#define PVR_COUNTER_PORT_PARAM
#define PVR_COUNTER_OBJ
#endif

/*
 * Since 6.17 reg_user_mr and reg_user_mr_dmabuf have an argument for DMA handles, which this
 * driver refuses. Since 6.11 the latter receives the attribute bundle.
 */
#if LINUX_VERSION_CODE >= KERNEL_VERSION(6, 17, 0)
#define PVR_REG_MR_DMAH_PARAM struct ib_dmah *dmah,
#define PVR_REG_MR_DMAH_SET (dmah != NULL)
#define PVR_REG_DMABUF_ARG struct ib_dmah *dmah, struct uverbs_attr_bundle *
#else
#define PVR_REG_MR_DMAH_PARAM
#define PVR_REG_MR_DMAH_SET false
#if LINUX_VERSION_CODE >= KERNEL_VERSION(6, 11, 0)
#define PVR_REG_DMABUF_ARG struct uverbs_attr_bundle *
#else
#define PVR_REG_DMABUF_ARG struct ib_udata *
#endif
#endif

/*
 * Later kernels dispatch the NIC's events themselves, unless the driver has this
 * operation.
 */
#ifdef PVR_HAVE_REPORT_PORT_EVENT
#define PVR_REPORT_PORT_EVENT(fn) .report_port_event = fn,
#else
#define PVR_REPORT_PORT_EVENT(fn)
#endif

/* Since 6.10 drivers add details to the lists of SRQs. */
#ifdef PVR_HAVE_FILL_RES_SRQ
#define PVR_FILL_RES_SRQ_OPS(fill, fill_raw) \
	.fill_res_srq_entry = fill, .fill_res_srq_entry_raw = fill_raw,
#else
#define PVR_FILL_RES_SRQ_OPS(fill, fill_raw)
#endif

/*
 * ib_core has FLUSH and ATOMIC WRITE since 6.2. It refuses unknown access rights, so
 * programs need that for FLUSH. ATOMIC WRITE has no right of its own.
 */
#if LINUX_VERSION_CODE >= KERNEL_VERSION(6, 2, 0)
#define PVR_KERNEL_EXT_FLUSH (PVR_EXT_FLUSH | PVR_EXT_FLUSH_PERSISTENT)
#define PVR_CAP_FLUSH_GLOBAL IB_DEVICE_FLUSH_GLOBAL
#define PVR_CAP_FLUSH_PERSISTENT IB_DEVICE_FLUSH_PERSISTENT
#define PVR_CAP_ATOMIC_WRITE IB_DEVICE_ATOMIC_WRITE
#else
#define PVR_KERNEL_EXT_FLUSH 0
#define PVR_CAP_FLUSH_GLOBAL 0
#define PVR_CAP_FLUSH_PERSISTENT 0
#define PVR_CAP_ATOMIC_WRITE BIT_ULL(40) /* of user space */
#endif

/* On-demand paging needs pages of the CPU that are pages of the device. */
#if defined(CONFIG_INFINIBAND_ON_DEMAND_PAGING) && PAGE_SHIFT == 12
#define PVR_KERNEL_EXT_ON_DEMAND PVR_EXT_ON_DEMAND
#else
#define PVR_KERNEL_EXT_ON_DEMAND 0
#endif

struct mmu_interval_notifier;
struct mmu_interval_notifier_ops;

/* Without the option a kernel has only two of these functions, and no region needs them. */
#ifndef CONFIG_INFINIBAND_ON_DEMAND_PAGING
static inline struct ib_umem_odp *
ib_umem_odp_alloc_implicit(struct ib_device *ibdev, int access)
{
	return ERR_PTR(-EOPNOTSUPP);
}

static inline struct ib_umem_odp *
ib_umem_odp_alloc_child(struct ib_umem_odp *root, unsigned long addr,
			size_t size,
			const struct mmu_interval_notifier_ops *ops)
{
	return ERR_PTR(-EOPNOTSUPP);
}

static inline int ib_umem_odp_map_dma_and_lock(struct ib_umem_odp *odp,
					       u64 start, u64 size, u64 access,
					       bool fault)
{
	return -EOPNOTSUPP;
}

static inline void ib_umem_odp_unmap_dma_pages(struct ib_umem_odp *odp,
					       u64 start, u64 end)
{
}
#endif

#ifndef CONFIG_MMU_NOTIFIER
static inline void mmu_interval_set_seq(struct mmu_interval_notifier *notifier,
					unsigned long seq)
{
}
#endif

/*
 * pvr_odp_access(): the rights that the region needs of each page.
 * pvr_odp_dma(): the DMA address of a page, or DMA_MAPPING_ERROR if it is absent or lacks one of
 * these rights. The device has rights of a region only, so it must not get such a page: it may
 * belong to a file or to other processes.
 *
 * pvr_odp_is_mapped(): whether a page is mapped for DMA. umem_mutex is held.
 * pvr_odp_has_pages(): whether the device may have pages of these addresses. umem_mutex is held,
 * or no page is added.
 *
 * pvr_odp_unmap(): unmap the pages of these addresses for DMA. umem_mutex is held.
 *
 * Since 6.16 the driver maps resident pages for DMA. Before, ib_uverbs does it.
 */
#ifdef PVR_HAVE_HMM_DMA_MAP
static inline u64 pvr_odp_access(const struct ib_umem_odp *odp)
{
	return odp->umem.writable ? HMM_PFN_WRITE : 0;
}

static inline u64 pvr_odp_page(struct ib_umem_odp *odp, u64 address)
{
	return (address - ib_umem_start(odp)) >> PAGE_SHIFT;
}

/*
 * hmm_range_fault(), which has no umem_mutex, may store HMM_PFN_DMA_MAPPED again after an
 * invalidation has cleared it. Where a mapping has to be undone, dma_list has its address, which
 * is then that of the former page.
 */
static inline void pvr_odp_drop_stale(struct ib_umem_odp *odp, u64 page)
{
	if (odp->map.dma_list && odp->map.dma_list[page] == DMA_MAPPING_ERROR)
		odp->map.pfn_list[page] &= ~HMM_PFN_DMA_MAPPED;
}

static inline bool pvr_odp_is_mapped(const struct ib_umem_odp *odp, u64 page)
{
	return odp->map.pfn_list[page] & HMM_PFN_DMA_MAPPED;
}

static inline void pvr_odp_unmap(struct ib_umem_odp *odp, u64 start, u64 end)
{
	u64 first = pvr_odp_page(odp, start);
	u64 last = pvr_odp_page(odp, end + PAGE_SIZE - 1);
	u64 page;

	for (page = first; page < last; page++)
		pvr_odp_drop_stale(odp, page);
	ib_umem_odp_unmap_dma_pages(odp, start, end);
	for (page = first; odp->map.dma_list && page < last; page++)
		odp->map.dma_list[page] = DMA_MAPPING_ERROR;
}

static inline dma_addr_t pvr_odp_dma(struct device *dma_dev,
				     struct ib_umem_odp *odp, u64 page)
{
	u64 needed = HMM_PFN_VALID | pvr_odp_access(odp);
	struct pci_p2pdma_map_state p2p = {};
	dma_addr_t dma;
	bool is_new;

	if ((odp->map.pfn_list[page] & needed) != needed)
		return DMA_MAPPING_ERROR;
	pvr_odp_drop_stale(odp, page);
	is_new = !(odp->map.pfn_list[page] & HMM_PFN_DMA_MAPPED);
	dma = hmm_dma_map_pfn(dma_dev, &odp->map, page, &p2p);
	odp->npages += is_new && dma != DMA_MAPPING_ERROR;
	return dma;
}

/*
 * By the flags of the pages: npages is too low if hmm_range_fault(), which has no umem_mutex,
 * stores a flag again that an invalidation has cleared meanwhile.
 */
static inline bool pvr_odp_has_pages(struct ib_umem_odp *odp, u64 start,
				     u64 end)
{
	u64 page = pvr_odp_page(odp, start);
	u64 last = pvr_odp_page(odp, end + PAGE_SIZE - 1);

	for (; page < last; page++)
		if (READ_ONCE(odp->map.pfn_list[page]) & HMM_PFN_DMA_MAPPED)
			return true;
	return false;
}
#else
static inline bool pvr_odp_is_mapped(const struct ib_umem_odp *odp, u64 page)
{
	return odp->dma_list[page];
}

static inline void pvr_odp_unmap(struct ib_umem_odp *odp, u64 start, u64 end)
{
	ib_umem_odp_unmap_dma_pages(odp, start, end);
}

static inline u64 pvr_odp_access(const struct ib_umem_odp *odp)
{
	return ODP_READ_ALLOWED_BIT |
	       (odp->umem.writable ? ODP_WRITE_ALLOWED_BIT : 0);
}

static inline dma_addr_t pvr_odp_dma(struct device *dma_dev,
				     struct ib_umem_odp *odp, u64 page)
{
	u64 needed = pvr_odp_access(odp);
	dma_addr_t dma = odp->dma_list[page];

	return (dma & needed) == needed ? dma & ODP_DMA_ADDR_MASK
					: DMA_MAPPING_ERROR;
}

static inline bool pvr_odp_has_pages(struct ib_umem_odp *odp, u64 start,
				     u64 end)
{
	return READ_ONCE(odp->npages);
}
#endif

#endif /* PVR_COMPAT_H */
