/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * Regions that are registered and invalidated by work requests (IBTA vol. 1, 10.6.4.4).
 *
 * Memory for the largest page list is set aside when the region is made, so that
 * nothing is allocated later. The low byte of the key is the consumer's.
 */
#include <errno.h>

#include "core/mr.h"

#define FAST_ACCESS (PVR_MR_ACCESS & ~PVR_ACCESS_MW_BIND)

static int fast_check(const struct pvr_mr *mr, const struct pvrdma_sq_wqe_hdr *wqe)
{
	uint32_t access = wqe->wr.fast_reg.access_flags & ~PVR_ACCESS_OPTIONAL;
	uint64_t start = wqe->wr.fast_reg.iova_start, length = wqe->wr.fast_reg.length;

	if (pvr_mr_is_valid(mr) || wqe->wr.fast_reg.page_shift != PVR_PAGE_SHIFT ||
	    wqe->wr.fast_reg.page_list_len > mr->max_pages)
		return -EINVAL;
	if (!pvr_mr_range_ok(start, length, UINT32_MAX) ||
	    pvr_mr_span_pages(start, length) > wqe->wr.fast_reg.page_list_len)
		return -EINVAL;
	return access & ~FAST_ACCESS || !pvr_mr_access_ok(access) ? -EINVAL : 0;
}

int pvr_mr_fast_register(struct pvr_adapter *adapter, const struct pvr_pd *pd,
			 const struct pvrdma_sq_wqe_hdr *wqe)
{
	/* The low byte of the key is the consumer's and may be a new one. */
	struct pvr_mr *mr = pvr_table_get(&adapter->mrs, wqe->wr.fast_reg.rkey >> 8);
	uint32_t access = wqe->wr.fast_reg.access_flags & FAST_ACCESS;
	int err;

	if (!mr || mr->kind != PVR_MR_FAST || mr->pd != pd)
		return -EINVAL;
	err = fast_check(mr, wqe);
	if (!err)
		err = pvr_pages_refill(adapter, wqe->wr.fast_reg.pl_pdir_dma,
				       wqe->wr.fast_reg.page_list_len,
				       access & PVR_ACCESS_LOCAL_WRITE, &mr->pages);
	if (err)
		return err;
	mr->key = wqe->wr.fast_reg.rkey;
	mr->start = wqe->wr.fast_reg.iova_start;
	mr->offset = mr->start % PVR_PAGE_SIZE;
	mr->length = wqe->wr.fast_reg.length;
	mr->access = access | PVR_MR_VALID;
	return 0;
}
