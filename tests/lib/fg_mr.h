/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/* Memory regions of fake guests. */
#ifndef FG_MR_H
#define FG_MR_H

#include <rdma/vmw_pvrdma-abi.h>

#include "fg_buf.h"
#include "fg_pd.h"

/* Where programs of fake guests believe their buffers to be: no host address. */
#define FG_USER_VA 0x7a5500000000ull

#define FG_ACCESS_ALL                                                                \
	(PVR_ACCESS_LOCAL_WRITE | PVR_ACCESS_REMOTE_WRITE | PVR_ACCESS_REMOTE_READ | \
	 PVR_ACCESS_REMOTE_ATOMIC)

struct fg_mr {
	struct fg_guest *guest;
	uint8_t *va; /* this process's view of the first byte; NULL for DMA MRs */
	uint64_t start; /* the guest's address of it */
	uint64_t length;
	uint32_t handle, lkey, rkey;
};

/* CREATE_MR with any request; all of @resp on success. */
uint32_t fg_create_mr(struct fg_guest *guest, const struct pvr_cmd_create_mr *req,
		      struct pvr_resp_create_mr *resp);

/* The request that registers @length bytes from @offset of @buf, at FG_USER_VA. */
struct pvr_cmd_create_mr fg_mr_request(const struct fg_pd *pd, const struct fg_buf *buf,
				       size_t offset, size_t length, uint32_t access);

/*
 * A directory of @levels over the pages at these bus addresses, which may repeat. Its
 * own pages stay taken as long as the guest has RAM.
 */
uint64_t fg_pdir(struct fg_ram *ram, uint32_t levels, const uint64_t *gpa, uint32_t npages);
/* The request with PVR_MR_FLAG_LAYOUT, all access, two levels; @offset into the pages. */
struct pvr_cmd_create_mr fg_layout_request(const struct fg_pd *pd, uint64_t pdir,
					   uint32_t page_shift, uint64_t start, uint64_t offset,
					   uint64_t length);
/* Any request that gives a region; its va is NULL. */
uint32_t fg_mr_create_as(const struct fg_pd *pd, const struct pvr_cmd_create_mr *req,
			 struct fg_mr *mr);

/* All of @buf. */
uint32_t fg_mr_create(const struct fg_pd *pd, const struct fg_buf *buf, uint32_t access,
		      struct fg_mr *mr);
/* A part of @buf; @offset must be in its first page. */
uint32_t fg_mr_create_part(const struct fg_pd *pd, const struct fg_buf *buf, size_t offset,
			   size_t length, uint32_t access, struct fg_mr *mr);
/* The kernel's MR of all bus addresses. */
uint32_t fg_mr_create_dma(const struct fg_pd *pd, struct fg_mr *mr);
/* A memory window: @flag is PVR_MR_FLAG_MW1 or _MW2. */
uint32_t fg_mw_create(const struct fg_pd *pd, uint32_t flag, struct fg_mr *mw);
uint32_t fg_mr_destroy(struct fg_mr *mr);

/* A piece of @mr as work requests name it. */
static inline struct pvrdma_sge fg_sge(const struct fg_mr *mr, uint64_t offset, uint32_t length)
{
	return (struct pvrdma_sge){ mr->start + offset, length, mr->lkey };
}

#endif /* FG_MR_H */
