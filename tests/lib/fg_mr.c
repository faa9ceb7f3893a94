// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* Memory regions. */
#include "fg_mr.h"

#include <string.h>

#include "fg_cmd.h"

uint32_t fg_create_mr(struct fg_guest *guest, const struct pvr_cmd_create_mr *req,
		      struct pvr_resp_create_mr *resp)
{
	return fg_cmd(guest, req, sizeof(*req), resp, sizeof(*resp));
}

struct pvr_cmd_create_mr fg_mr_request(const struct fg_pd *pd, const struct fg_buf *buf,
				       size_t offset, size_t length, uint32_t access)
{
	size_t pages = (offset % PVR_PAGE_SIZE + length + PVR_PAGE_SIZE - 1) / PVR_PAGE_SIZE;

	return (struct pvr_cmd_create_mr){
		.hdr = FG_CMD_HDR(PVR_CMD_CREATE_MR),
		.start = FG_USER_VA + offset,
		.length = length,
		.pdir_dma = buf->pdir,
		.pd_handle = pd->handle,
		.access_flags = access,
		.nchunks = (uint32_t)pages,
	};
}

/* Pages of entries, each of which leads to 512 of the entries given. */
static uint32_t pdir_level(struct fg_ram *ram, const uint64_t *entry, uint32_t n, uint64_t *page)
{
	uint32_t pages = (n + PVR_PDIR_ENTRIES - 1) / PVR_PDIR_ENTRIES;

	for (uint32_t i = 0; i < pages; i++) {
		uint32_t number = fg_ram_get_page(ram), first = i * PVR_PDIR_ENTRIES;
		uint32_t used = n - first < PVR_PDIR_ENTRIES ? n - first : PVR_PDIR_ENTRIES;

		memcpy(fg_page_va(ram, number), entry + first, used * sizeof(*entry));
		page[i] = fg_page_gpa(ram, number);
	}
	return pages;
}

uint64_t fg_pdir(struct fg_ram *ram, uint32_t levels, const uint64_t *gpa, uint32_t npages)
{
	uint64_t page[2][4 * PVR_PDIR_ENTRIES] = { 0 };

	if (npages > 4 * PVR_PDIR_MAX_PAGES)
		fg_die("a directory of %u pages", npages);
	for (uint32_t level = 0; level < levels; level++) {
		npages = pdir_level(ram, gpa, npages, page[level % 2]);
		gpa = page[level % 2];
	}
	if (npages != 1)
		fg_die("%u levels are too few", levels);
	return gpa[0];
}

struct pvr_cmd_create_mr fg_layout_request(const struct fg_pd *pd, uint64_t pdir,
					   uint32_t page_shift, uint64_t start, uint64_t offset,
					   uint64_t length)
{
	return (struct pvr_cmd_create_mr){
		.hdr = FG_CMD_HDR(PVR_CMD_CREATE_MR),
		.start = start,
		.length = length,
		.pdir_dma = pdir,
		.pd_handle = pd->handle,
		.access_flags = FG_ACCESS_ALL,
		.flags = PVR_MR_FLAG_LAYOUT,
		.nchunks = (uint32_t)(((offset + length - 1) >> page_shift) + 1),
		.offset = offset,
		.page_shift = page_shift,
		.pdir_levels = 2,
	};
}

static uint32_t mr_create(const struct fg_pd *pd, const struct pvr_cmd_create_mr *req, uint8_t *va,
			  struct fg_mr *mr)
{
	struct pvr_resp_create_mr resp;
	uint32_t err = fg_create_mr(pd->ctx->guest, req, &resp);

	if (err)
		return err;
	*mr = (struct fg_mr){
		.guest = pd->ctx->guest,
		.va = va,
		.start = req->start,
		.length = req->length,
		.handle = resp.mr_handle,
		.lkey = resp.lkey,
		.rkey = resp.rkey,
	};
	return 0;
}

uint32_t fg_mr_create_as(const struct fg_pd *pd, const struct pvr_cmd_create_mr *req,
			 struct fg_mr *mr)
{
	return mr_create(pd, req, NULL, mr);
}

uint32_t fg_mr_create_part(const struct fg_pd *pd, const struct fg_buf *buf, size_t offset,
			   size_t length, uint32_t access, struct fg_mr *mr)
{
	struct pvr_cmd_create_mr req = fg_mr_request(pd, buf, offset, length, access);

	if (offset >= PVR_PAGE_SIZE)
		fg_die("an MR that skips %zu bytes of its pages", offset);
	return mr_create(pd, &req, buf->va + offset, mr);
}

uint32_t fg_mr_create(const struct fg_pd *pd, const struct fg_buf *buf, uint32_t access,
		      struct fg_mr *mr)
{
	return fg_mr_create_part(pd, buf, 0, buf->size, access, mr);
}

uint32_t fg_mr_create_dma(const struct fg_pd *pd, struct fg_mr *mr)
{
	struct pvr_cmd_create_mr req = {
		.hdr = FG_CMD_HDR(PVR_CMD_CREATE_MR),
		.pd_handle = pd->handle,
		.access_flags = PVR_ACCESS_LOCAL_WRITE,
		.flags = PVR_MR_FLAG_DMA,
	};

	return mr_create(pd, &req, NULL, mr);
}

uint32_t fg_mw_create(const struct fg_pd *pd, uint32_t flag, struct fg_mr *mw)
{
	/* Fields that the device must ignore hold garbage. */
	struct pvr_cmd_create_mr req = {
		.hdr = FG_CMD_HDR(PVR_CMD_CREATE_MR),
		.start = UINT64_MAX,
		.length = UINT64_MAX,
		.pdir_dma = UINT64_MAX,
		.pd_handle = pd->handle,
		.access_flags = UINT32_MAX,
		.flags = flag,
		.nchunks = UINT32_MAX,
	};

	return mr_create(pd, &req, NULL, mw);
}

uint32_t fg_mr_destroy(struct fg_mr *mr)
{
	return fg_cmd_destroy(mr->guest, PVR_CMD_DESTROY_MR, mr->handle);
}
