/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/* Resident pages of on-demand memory, in the kernels that this driver supports. */
#ifndef PVR_ODP_COMPAT_H
#define PVR_ODP_COMPAT_H

#include <rdma/ib_umem_odp.h>

/* Since 6.16 the driver maps resident pages for DMA. Before, ib_uverbs does it. */
#ifdef PVR_HAVE_HMM_DMA_MAP
#include <linux/hmm.h>
#include <linux/pci-p2pdma.h>

static inline u64 pvr_odp_access(const struct ib_umem_odp *odp)
{
	return odp->umem.writable ? HMM_PFN_WRITE : 0;
}

/* Return: the DMA address of a resident page, or DMA_MAPPING_ERROR. */
static inline dma_addr_t pvr_odp_dma(struct device *dma_dev,
				     struct ib_umem_odp *odp, u64 page)
{
	struct pci_p2pdma_map_state p2p = {};
	dma_addr_t dma;
	bool is_new;

	if (!(odp->map.pfn_list[page] & HMM_PFN_VALID))
		return DMA_MAPPING_ERROR;
	is_new = !(odp->map.pfn_list[page] & HMM_PFN_DMA_MAPPED);
	dma = hmm_dma_map_pfn(dma_dev, &odp->map, page, &p2p);
	odp->npages += is_new && dma != DMA_MAPPING_ERROR;
	return dma;
}
#else
static inline u64 pvr_odp_access(const struct ib_umem_odp *odp)
{
	return ODP_READ_ALLOWED_BIT |
	       (odp->umem.writable ? ODP_WRITE_ALLOWED_BIT : 0);
}

static inline dma_addr_t pvr_odp_dma(struct device *dma_dev,
				     struct ib_umem_odp *odp, u64 page)
{
	dma_addr_t dma = odp->dma_list[page];

	return dma ? dma & ODP_DMA_ADDR_MASK : DMA_MAPPING_ERROR;
}
#endif

#endif /* PVR_ODP_COMPAT_H */
