/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/* Regions that work requests register. */
#ifndef UNIT_FAST_REG_H
#define UNIT_FAST_REG_H

#include "rndv.h"

#define FAST_IOVA 0x10000000ull

/* Return: ERR of CREATE_MR for a region of up to @pages pages. */
static inline uint32_t fast_mr_create(const struct fg_pd *pd, uint32_t pages, struct fg_mr *mr)
{
	const struct pvr_cmd_create_mr req = {
		.hdr = FG_CMD_HDR(PVR_CMD_CREATE_MR),
		.pd_handle = pd->handle,
		.flags = PVR_MR_FLAG_FRMR,
		.nchunks = pages,
	};

	return fg_mr_create_as(pd, &req, mr);
}

/* FAST_REG_MR of all of @buf at FAST_IOVA with all access, not yet rung. */
static inline struct pvrdma_sq_wqe_hdr *put_fast_reg(struct fg_end *end, uint64_t wr_id,
						     const struct fg_buf *buf, uint32_t rkey)
{
	struct pvrdma_sq_wqe_hdr *wqe = expose_put(end, wr_id, PVRDMA_WR_FAST_REG_MR, 0);

	memset(&wqe->wr, 0, sizeof(wqe->wr));
	wqe->wr.fast_reg.iova_start = FAST_IOVA;
	wqe->wr.fast_reg.pl_pdir_dma = buf->pdir;
	wqe->wr.fast_reg.page_shift = PVR_PAGE_SHIFT;
	wqe->wr.fast_reg.page_list_len = buf->npages;
	wqe->wr.fast_reg.length = (uint32_t)buf->size;
	wqe->wr.fast_reg.access_flags = FG_ACCESS_ALL;
	wqe->wr.fast_reg.rkey = rkey;
	return wqe;
}

#endif /* UNIT_FAST_REG_H */
